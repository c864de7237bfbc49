"""``stromboli jobflow`` and ``stromboli jobtemplate``: create, list, get, describe and delete."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from stromboli.api.kinds import KINDS
from stromboli.cli.exits import BAD_INPUT
from stromboli.cli.vcctl.columns import NOTHING, Column, age, table
from stromboli.cli.vcctl.connection import AllNamespaces, Kubeconfig, Master, Namespace, failed, talk

if TYPE_CHECKING:
    from stromboli.kube.client import Client
    from stromboli.kube.resources import Resource

Json = dict[str, Any]
Name = Annotated[str, typer.Option("--name", "-N", help="Name of the object.")]
File = Annotated[str, typer.Option("--file", "-f", help="A YAML file with the objects.")]
Format = Annotated[str, typer.Option("--format", "-o", help="yaml or json.")]
SPACED: Final = 4


@dataclass(frozen=True)
class Group:
    """The commands about one kind: ``word`` is theirs, ``text`` what messages call it, ``phased`` if it has a phase."""

    kind: str
    word: str
    text: str
    phased: bool

    def resource(self) -> Resource[Json]:
        """The kind, its objects as plain JSON."""
        from stromboli.kube.resources import Resource, plain

        row = KINDS[self.kind]
        return Resource(row.api_version, row.plural, row.kind, True, plain)

    def listed(self, objects: list[Json]) -> str:
        """The table of objects."""
        titles = ("Name", "Namespace", "Phase", "Age") if self.phased else ("Name", "Namespace")
        return table([Column(title, spare=SPACED) for title in titles], map(self._row, objects))

    def _row(self, found: Json) -> list[str]:
        from stromboli.model.values.times import seconds

        meta = found["metadata"]
        created = seconds(meta.get("creationTimestamp"), "metadata.creationTimestamp")
        phase = ((found.get("status") or {}).get("state") or {}).get("phase", "")
        row = [meta["name"], meta.get("namespace", "")]
        return [*row, phase, age(time.time() - created) if created else "<unknown>"] if self.phased else row

    def each(self, file: str, verb: str, connect: tuple[str, str], act: Callable[..., Awaitable[object]]) -> None:
        """Do something with each object of a file, and say of each whether it was done; ends with 2 if one was not."""
        objects = _objects_in(file, f"{self.word} {verb}")

        async def story(client: Client) -> int:
            from stromboli.errors import ApiError

            bad = 0
            for found in objects:
                meta = found["metadata"]
                namespace = meta.setdefault("namespace", "default")
                try:
                    await act(client, self.resource(), found)
                    print(f"{verb.capitalize()}d {self.kind}: {namespace}/{meta.get('name', '')}")
                except ApiError as error:
                    print(f"Failed to {verb} {self.kind}: {error}")
                    bad += 1
            return bad

        if talk(f"{self.word} {verb}", *connect, story):
            raise typer.Exit(BAD_INPUT)

    def create(self, file: File = "", kubeconfig: Kubeconfig = "", master: Master = "") -> None:
        """Create the objects of a file."""
        self.each(file, "create", (kubeconfig, master), _create)

    def list_all(
        self,
        namespace: Namespace = "default",
        all_namespaces: AllNamespaces = False,
        kubeconfig: Kubeconfig = "",
        master: Master = "",
    ) -> None:
        """List objects, a line each."""
        where = "" if all_namespaces else namespace
        found = talk(f"{self.word} list", kubeconfig, master, lambda client: client.list_all(self.resource(), where))
        print(self.listed(found) if found else NOTHING)

    def get(
        self, name: Name = "", namespace: Namespace = "default", kubeconfig: Kubeconfig = "", master: Master = ""
    ) -> None:
        """Show one object, as a line."""
        what = f"{self.word} get"
        if not name:
            raise failed(what, f"name is mandatory to get the particular {self.text} details")
        print(
            self.listed([talk(what, kubeconfig, master, lambda client: client.get(self.resource(), name, namespace))])
        )

    def describe(
        self,
        name: Name = "",
        namespace: Namespace = "default",
        form: Format = "yaml",
        kubeconfig: Kubeconfig = "",
        master: Master = "",
    ) -> None:
        """Show an object, or all of a namespace, in full."""
        what = f"{self.word} describe"
        if form not in ("yaml", "json"):
            raise failed(what, f"Unsupported format: {form}")

        async def story(client: Client) -> list[Json]:
            resource = self.resource()
            return [await client.get(resource, name, namespace)] if name else await client.list_all(resource, namespace)

        print("\n\n".join(_shown(self, found, form) for found in talk(what, kubeconfig, master, story)))

    def delete(
        self,
        name: Name = "",
        namespace: Namespace = "default",
        file: File = "",
        kubeconfig: Kubeconfig = "",
        master: Master = "",
    ) -> None:
        """Delete an object, or those of a file."""
        what = f"{self.word} delete"
        if file:
            self.each(file, "delete", (kubeconfig, master), _delete)
            return
        if not name:
            raise failed(what, f"{self.text} name must be specified")
        talk(what, kubeconfig, master, lambda client: client.delete(self.resource(), name, namespace))
        print(f"Deleted {self.kind}: {namespace}/{name}")


def _objects_in(file: str, what: str) -> list[Json]:
    import yaml

    try:
        documents = list(yaml.safe_load_all(Path(file).read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise failed(what, f"failed to read file, err: {error}") from error
    objects = [document for document in documents if document is not None]
    if not objects or not all(isinstance(found, dict) and isinstance(found.get("metadata"), dict) for found in objects):
        raise failed(what, f"{file} holds no objects with metadata")
    return objects


async def _create(client: Client, resource: Resource[Json], found: Json) -> None:
    await client.create(resource, found, found["metadata"]["namespace"])


async def _delete(client: Client, resource: Resource[Json], found: Json) -> None:
    await client.delete(resource, found["metadata"].get("name", ""), found["metadata"]["namespace"])


def _app(group: Group) -> typer.Typer:
    app = typer.Typer(
        name=group.word, help=f"{group.kind}s: create, list, get, describe, delete.", no_args_is_help=True
    )
    commands: dict[str, Callable[..., None]] = {
        "create": group.create,
        "list": group.list_all,
        "get": group.get,
        "describe": group.describe,
        "delete": group.delete,
    }
    for name, command in commands.items():
        app.command(name)(command)
    return app


def _shown(group: Group, found: Json, form: str) -> str:
    import yaml

    row = KINDS[group.kind]
    metadata = {key: value for key, value in found["metadata"].items() if key != "managedFields"}
    whole = {"apiVersion": row.api_version, "kind": row.kind, **found, "metadata": metadata}
    return json.dumps(whole, indent=2) if form == "json" else yaml.safe_dump(whole, sort_keys=True).rstrip()


flows: Final = _app(Group("JobFlow", "jobflow", "jobflow", phased=True))
templates: Final = _app(Group("JobTemplate", "jobtemplate", "job template", phased=False))
