"""Whether HyperNodes may be stored."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api.topology import SELECTOR_MISSING, SELECTORS_CLASH, HyperNode, MemberSelector
from stromboli.crds.admission.texts import invalid, together
from stromboli.model.values import patterns


def check_hyper_node(hyper_node: HyperNode) -> list[str]:
    """What is wrong with a HyperNode, as one text."""
    text = together(list(_problems(hyper_node)))
    return [text] if text else []


def _problems(hyper_node: HyperNode) -> Iterator[str]:
    if not hyper_node.spec.members:
        yield invalid("spec.members", [], "member must have at least one member")
    for number, member in enumerate(hyper_node.spec.members):
        if problem := _selector_problem(member.selector):
            yield invalid(f"spec.members[{number}].selector", "object", problem)
        regex = member.selector.regex_match
        if regex is not None and (problem := patterns.problem(regex.pattern)):
            why = f"member regexMatch pattern is invalid: {problem}"
            yield invalid("spec.members.selector.regexMatch.pattern", regex.pattern, why)


def _selector_problem(selector: MemberSelector) -> str:
    """What the schema's rules say, which not every API server evaluates."""
    ways = [selector.exact_match, selector.regex_match, selector.label_match]
    given = len(ways) - ways.count(None)
    return SELECTOR_MISSING if not given else SELECTORS_CLASH if given > 1 else ""
