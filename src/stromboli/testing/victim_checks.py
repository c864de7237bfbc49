"""Checks of hooks that name victims: of what they answer, and of the promise of those that protect."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.framework.books.hyper_nodes import TOP
from stromboli.framework.extension.answers import Answer
from stromboli.model.task import Task
from stromboli.preemption.gang_eviction import EvictionContext
from stromboli.testing.trial import MOST, Trial


def check_victims(trial: Trial) -> None:
    """Whom a protecting hook lets go among others it lets go alone, too."""
    placed = [task for task, _ in trial.session.snapshot.pods_on_nodes()][:MOST]
    for answer, actor in _questions(trial):
        let_go = trial.ask(answer.hook, answer.function, *actor, placed)
        for task in (let_go or ()) if answer.hook.protects else ():
            alone = trial.ask(answer.hook, answer.function, *actor, [task])
            if alone is not None and task not in alone:
                trial.fail(answer.hook.name, f"protects, lets {task} go among others, and does not let it go alone")


def _questions(trial: Trial) -> Iterator[tuple[Answer, tuple[object, ...]]]:
    """Hooks that name victims, and for whom they are asked."""
    actors: list[Task] = trial.waiting
    for answer in (*trial.answers("preemptable", "scalar"), *trial.answers("reclaimable", "scalar")):
        yield from ((answer, (actor,)) for actor in actors)
    for answer in trial.answers("unified_evictable", "scalar"):
        for job in list(trial.session.jobs.values())[:MOST]:
            yield answer, (EvictionContext("GangPreempt", job, TOP),)
    for answer in trial.answers("victim_tasks", "scalar"):
        yield answer, ()
