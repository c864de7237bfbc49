"""``svc``: the pods of a job find each other by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from stromboli.api.batch import Task
from stromboli.job_plugins.hosts import MOST_DATA, MOST_ENV, all_hosts, check_size, hosts, selector
from stromboli.job_plugins.plugin import (
    AddEnv,
    AddVolume,
    Edit,
    FillIn,
    JobPlugin,
    Place,
    Wanted,
    config_map,
    flag,
    network_policy,
    service,
)

FOLDER: Final = "/etc/volcano"
"""Where containers find the lists of hosts."""


class Svc(JobPlugin):
    """A headless Service for the pods' names, a ConfigMap with lists of them, and a policy that keeps others out."""

    name = "svc"
    publish_not_ready = flag("publish-not-ready-addresses", False)
    no_policy = flag("disable-network-policy", False)
    inject_env = flag("inject-hosts-env", True)

    def problem(self) -> str:
        """Raises PluginError where the names of the pods are too many for a ConfigMap."""
        check_size(self.name, all_hosts(self.job), MOST_DATA // 2, "a ConfigMap that lists them twice")
        return ""

    def warnings(self) -> Iterator[str]:
        """Variables with which no process starts."""
        for name, text in self._data.items() if self.inject_env else ():
            if name.startswith("VC_") and len(text) > MOST_ENV:
                yield (
                    f"variable {name} has {len(text)} bytes, and Linux starts no process with more than {MOST_ENV} in "
                    "one: --inject-hosts-env=false leaves it out, and the lists stand in /etc/volcano"
                )

    @cached_property
    def _data(self) -> dict[str, str]:
        data: dict[str, str] = {}
        for task in self.job.spec.tasks:
            found = [str(host) for host in hosts(self.job, task)]
            list_name, number_name = variables(task)
            data[f"{task.name.replace('-', '_')}.host"] = "\n".join(found)
            data[list_name] = ",".join(found)
            data[number_name] = str(len(found))
        return data

    @property
    def _map(self) -> str:
        return f"{self.job.metadata.name}-svc"

    def objects(self) -> Iterator[Wanted]:
        """ConfigMap, Service and NetworkPolicy."""
        name, labels = self.job.metadata.name, selector(self.job)
        yield config_map(self._map, self._data)
        addresses = {"clusterIP": "None", "publishNotReadyAddresses": self.publish_not_ready}
        yield service(name, {**addresses, "selector": labels})
        if not self.no_policy:
            pods = {"matchLabels": labels}
            rules = {"ingress": [{"from": [{"podSelector": pods}]}], "policyTypes": ["Ingress"]}
            yield network_policy(name, {"podSelector": pods, **rules})

    @cached_property
    def _edits(self) -> tuple[Edit, ...]:
        name = self._map
        volume = AddVolume({"name": name, "configMap": {"name": name}}, {"name": name, "mountPath": FOLDER})
        names = [variable for task in self.job.spec.tasks for variable in variables(task)]
        env = tuple({"name": one, "valueFrom": {"configMapKeyRef": {"name": name, "key": one}}} for one in names)
        return (FillIn("subdomain", self.job.metadata.name), *([AddEnv(env)] if self.inject_env else []), volume)

    def pod(self, pod: Mapping[str, Any], place: Place) -> Iterator[Edit]:
        """Its name and domain, and the lists of hosts."""
        yield FillIn("hostname", pod["metadata"]["name"])
        yield from self._edits


def variables(task: Task) -> tuple[str, str]:
    """Names of the variables with a task's hosts and their number."""
    name = task.name.replace("-", "_").upper()
    return f"VC_{name}_HOSTS", f"VC_{name}_NUM"
