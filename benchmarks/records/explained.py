"""Explanations of recorded cycles against an oracle: ``python -m benchmarks.records.explained DIR --jobs 300``.

The oracle reads the cluster as manifests and decides by itself at which step a job stops.  What is said to help is made
in the manifests and run.  For records of :mod:`benchmarks.records.day`, whose configuration has no queue plugin.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from stromboli.builtin import full_registry
from stromboli.cluster.files.written import manifests
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.journal.segments import Segment, segments
from stromboli.model.names import GROUP_NAME
from stromboli.model.status import TaskStatus
from stromboli.sim.explanation.explain import Explanation, explain
from stromboli.sim.planning import Planning
from stromboli.study.past import planning_of
from stromboli.study.replay import Moment, Reading

VALID, STARVING, CANDIDATES, VICTIMS = 2, 1, 3, 4
TWICE: Final = 2
"""Times that one job is drawn at most."""
MORE: Final = re.compile(r"(\d+) more nodes? like (\S+)")
SMALLER: Final = re.compile(r"minMember (\d+) instead of \d+ in PodGroup (\S+)")
HEAVIER: Final = re.compile(r"weight (\d+) instead of \d+ in queue (\S+)")
Objects = list[dict[str, Any]]


class Verdict(NamedTuple):
    """Whether an explanation agrees with the oracle, and which changes do not help; a job that ``waits`` counts."""

    uid: str
    agrees: bool
    said: str
    false: list[str]
    helps: int
    waits: bool


def stops_at(objects: Objects, uid: str) -> int | None:
    """The step at which a job stops; None: at one of those of evicting, or it would be placed."""
    namespace, _, name = uid.partition("/")
    pods = [one for one in objects if one["kind"] == "Pod"]
    group = next(
        one for one in objects
        if one["kind"] == "PodGroup" and (one["metadata"]["namespace"], one["metadata"]["name"]) == (namespace, name)
    )  # fmt: skip
    mine = [pod for pod in pods if _job(pod) == uid and pod["status"]["phase"] not in ("Succeeded", "Failed")]
    placed = [pod for pod in mine if pod["spec"].get("nodeName")]
    least = group["spec"].get("minMember", 0)
    if len(mine) < least:
        return VALID
    if len(placed) >= least:
        return STARVING
    queue = {_job(one_pod): one for one_pod in pods for one in objects if _owns(one, one_pod)}
    others = [
        pod for pod in pods
        if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"] and _job(pod) != uid
        and _queue(queue.get(_job(pod))) == _queue(group)
    ]  # fmt: skip
    if not others:
        return CANDIDATES
    return None if min(map(_priority, others)) < min(map(_priority, mine)) else VICTIMS


def _job(pod: dict[str, Any]) -> str:
    meta = pod["metadata"]
    return f"{meta['namespace']}/{meta.get('annotations', {}).get(GROUP_NAME, '')}"


def _owns(one: dict[str, Any], pod: dict[str, Any]) -> bool:
    return one["kind"] == "PodGroup" and f"{one['metadata']['namespace']}/{one['metadata']['name']}" == _job(pod)


def _queue(group: dict[str, Any] | None) -> str:
    return "" if group is None else str(group["spec"].get("queue", ""))


def _priority(pod: dict[str, Any]) -> int:
    return int(pod["spec"].get("priority") or 0)


def helps(objects: Objects, uid: str, words: str, config: Config, registry: Registry, now: float) -> bool:
    """Whether a cycle on the changed objects binds a pod of the job."""
    if found := MORE.fullmatch(words):
        model = next(one for one in objects if one["kind"] == "Node" and one["metadata"]["name"] == found[2])
        more = [
            {**model, "metadata": {**model["metadata"], "name": f"{found[2]}-more-{number}"}}
            for number in range(1, int(found[1]) + 1)
        ]
        return _binds([*objects, *more], uid, config, registry, now)
    if found := SMALLER.fullmatch(words):
        changed = [
            {**one, "spec": {**one["spec"], "minMember": int(found[1])}}
            if one["kind"] == "PodGroup" and f"{one['metadata']['namespace']}/{one['metadata']['name']}" == uid else one
            for one in objects
        ]  # fmt: skip
        return _binds(changed, uid, config, registry, now)
    if found := HEAVIER.fullmatch(words):
        changed = [
            {**one, "spec": {**one["spec"], "weight": int(found[1])}}
            if one["kind"] == "Queue" and one["metadata"]["name"] == found[2] else one
            for one in objects
        ]  # fmt: skip
        return _binds(changed, uid, config, registry, now)
    raise ValueError(words)


def _binds(objects: Objects, uid: str, config: Config, registry: Registry, now: float) -> bool:
    planning = Planning(config, registry, now=now)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": objects}, file)
        file.flush()
        planning.load([file.name])
    planning.run()
    return any(bind.job == uid for bind in planning.plans[-1].binds)


def judged(moment: Moment, registry: Registry, uid: str) -> Verdict:
    """One job of one cycle."""
    objects = list(manifests(moment.rim.state, moment.cut.now))
    planning = planning_of(moment, registry)
    found: Explanation = explain(planning, uid)
    step = stops_at(objects, uid)
    agrees = found.step == step if step is not None else found.step not in (VALID, STARVING, CANDIDATES, VICTIMS)
    failing = next((one.name for one in found.steps if one.ok is False), "-")
    said = f"{found.step} {failing}, oracle {step}"
    false = [
        words for words in found.would_help
        if not helps(objects, uid, words, moment.config, registry, moment.cut.now)
    ]  # fmt: skip
    plan = planning.plans[-1]
    placed = uid in {one.job for one in plan.binds} | {one.job for one in plan.reservations}
    return Verdict(uid, agrees, said, false, len(found.would_help), not placed)


def drawn(record: Path, count: int, seed: int) -> Iterator[Verdict]:
    """Jobs that wait, of cycles drawn over all segments; these are gone through again while that brings more."""
    dice, left = random.Random(seed), count
    found = [
        one
        for folder in sorted(path for path in record.iterdir() if path.is_dir()) or [record]
        for one in segments(folder)
    ]
    times = Counter[str]()
    while left > 0:
        before = left
        for verdict in _drawn_once(found, left, dice, times):
            left -= 1
            yield verdict
        if left == before:
            return


def _drawn_once(found: list[Segment], left: int, dice: random.Random, times: Counter[str]) -> Iterator[Verdict]:
    """``left`` of them at most; ``times`` counts how often each job was drawn."""
    registry = full_registry("")
    dice.shuffle(found)
    for number, segment in enumerate(found):
        share = -(-left // (len(found) - number))
        verdicts: list[Verdict] = []
        every = dice.randrange(20, 60)

        def begun(moment: Moment, every: int = every, share: int = share, verdicts: list[Verdict] = verdicts) -> None:
            if len(verdicts) >= share or moment.entry % every:
                return
            jobs = moment.rim.state.jobs.items()
            waiting = sorted(uid for uid, job in jobs if job.facts.group.uid and job.index.get(TaskStatus.Pending))
            waiting = [uid for uid in waiting if times[uid] < TWICE]
            if waiting:
                times[uid := dice.choice(waiting)] += 1
                verdict = judged(moment, registry, uid)
                if verdict.waits:
                    verdicts.append(verdict)

        Reading(registry).read(segment, begun)
        left -= len(verdicts)
        yield from verdicts
        if left <= 0:
            return


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many explanations agree."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.explained", description=__doc__)
    parser.add_argument("record", type=Path)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    began, seen, agree, helped, false = time.process_time(), Counter[str](), 0, 0, 0
    total = 0
    for total, verdict in enumerate(drawn(options.record, options.jobs, options.seed), 1):  # noqa: B007
        agree += verdict.agrees
        helped, false = helped + verdict.helps, false + len(verdict.false)
        seen[verdict.said] += 1
        if not verdict.agrees or verdict.false:
            print(f"{verdict.uid}: {verdict.said}; does not help: {verdict.false}", flush=True)
    cpu = time.process_time() - began
    print(f"{agree} of {total} steps as the oracle says; {helped - false} of {helped} changes help; {cpu:.0f} CPU s")
    print(dict(seen))
    return 0 if agree == total and not false else 1


if __name__ == "__main__":
    raise SystemExit(main())
