"""The hooks that are asked about nodes, in the form in which the engine asks them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from stromboli.framework.engine.custom_scorers import Choosers, Mapped
from stromboli.framework.engine.rows import Fit, Score, fit_of, key_of, score_of
from stromboli.framework.extension.answers import Answer, Answers
from stromboli.framework.extension.hook import by_template
from stromboli.model.task import Task


class Hooks:
    """The enabled per-node hooks of a session: predicates plugin by plugin, then scores.

    ``keys`` are what they read of a task beyond its template; ``choosers`` are asked about the candidates each time.
    """

    __slots__ = ("batch", "choosers", "fits", "keys", "scores", "unnormalised")

    def __init__(
        self,
        fits: Sequence[Sequence[Fit]],
        scores: Sequence[Score],
        unnormalised: Sequence[Score],
        batch: Sequence[Score],
        choosers: Choosers,
    ) -> None:
        self.fits, self.choosers = fits, choosers
        self.scores, self.unnormalised, self.batch = scores, unnormalised, batch
        hooks = [fit.hook for plugin in fits for fit in plugin]
        hooks += [score.hook for score in (*scores, *unnormalised, *batch)]
        keys = dict.fromkeys(key_of(hook) for hook in hooks)
        self.keys: list[Callable[[Task], Hashable]] = [key for key in keys if key is not by_template]


def hooks_of(answers: Answers, first: Sequence[Fit] = ()) -> Hooks:
    """The per-node hooks among ``answers``; ``first`` is asked before all plugins."""
    by_plugin: dict[int, list[Fit]] = {}
    for answer in answers.in_order(*answers.of("predicate"), *answers.of("predicate", "vector")):
        fit = fit_of(answer.plugin.name, answer.hook, answer.function, answer.row)
        fit.limit = answer.limit
        by_plugin.setdefault(id(answer.plugin), []).append(fit)
    scores = answers.in_order(*answers.of("node_order"), *answers.of("node_order", "vector"))
    return Hooks(
        [*([first] if first else []), *by_plugin.values()],
        [_score(answer) for answer in scores],
        [_raw(answer) for answer in answers.of("batch_node_order", "raw")],
        [_score(answer) for answer in answers.of("batch_node_order", "vector")],
        _custom_scorers(answers),
    )


def _score(answer: Answer) -> Score:
    return score_of(answer.plugin.name, answer.hook, answer.function, answer.row)


def _raw(answer: Answer) -> Score:
    score = score_of(answer.plugin.name, answer.hook, answer.function, None)
    score.normalise, score.alike = answer.normalise, answer.alike
    return score


def _custom_scorers(answers: Answers) -> Choosers:
    """The hooks that are asked about the candidates of each task."""
    reduces = {id(answer.plugin): answer.function for answer in answers.of("node_reduce")}
    return Choosers(
        [Mapped(answer.function, reduces.get(id(answer.plugin))) for answer in answers.of("node_map")],
        [answer.function for answer in answers.of("batch_node_order")],
        [answer.function for answer in answers.of("best_node")],
    )
