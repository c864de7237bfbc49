"""The scores of the plugins ``nodeorder`` and ``binpack``.

A score is asked for all candidates at once and gives one number each.  Divisions drop the fraction where the formulas
are written in whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt

from stromboli.errors import PluginError
from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.task import Task
from stromboli.testing.plain import matching
from stromboli.testing.plain.filters import Settings
from stromboli.testing.plain.neighbours import pod_affinity_score, topology_spread_score
from stromboli.testing.plain.world import PlainWorld, Site

Scores = Callable[[PlainWorld, Task, Sequence[Site]], Sequence[float]]

GPU = "nvidia.com/gpu"
MIB = 2**20
IMAGE_FLOOR, IMAGE_CEILING = 23 * MIB, 1000 * MIB


# -- Amounts ---------------------------------------------------------------------------------------------------------


def least_allocated(_world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[int]:
    """Mean of the free shares of cpu and memory in percent, with the task on the node."""
    return [mean_share(site, task, lambda offered, wanted: max(offered - wanted, 0)) for site in sites]


def most_allocated(_world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[int]:
    """Mean of the used shares of cpu and memory in percent, with the task on the node, at most 100 each."""
    return [mean_share(site, task, lambda offered, wanted: min(wanted, offered)) for site in sites]


def mean_share(site: Site, task: Task, part: Callable[[int, int], int]) -> int:
    """Mean of ``part(offered, wanted) * 100 / offered`` over what the node offers of cpu and memory."""
    wanted = [have + more for have, more in zip(site.nonzero, task.template.scored, strict=True)]
    offers = [(a, w) for a, w in zip(site.offers[: MEMORY + 1], wanted, strict=True) if a > 0]
    return sum(part(a, w) * 100 // a for a, w in offers) // len(offers) if offers else 0


def balanced(world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[int]:
    """How much more evenly than before cpu, memory and GPUs would be used; 0 for tasks that ask for none of them."""
    vector = task.template.vector
    gpu = world.columns.get(GPU, len(vector))
    columns = [CPU, MEMORY, gpu] if gpu < len(vector) and vector[gpu] else [CPU, MEMORY]
    if not any(vector[column] for column in columns):
        return [0] * len(sites)
    asked = {column: vector[column] for column in columns}
    nothing = dict.fromkeys(columns, 0)
    return [50 + (50 + evenness(site, asked) - evenness(site, nothing)) // 2 for site in sites]


def evenness(site: Site, more: Mapping[int, int]) -> int:
    """100 * (1 - standard deviation of the shares in use), with ``more`` by column on the node."""
    offered = {column: site.offers[column] for column in more if site.offers[column] > 0}
    shares = [min((site.requested[column] + more[column]) / offer, 1.0) for column, offer in offered.items()]
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        return int((1 - abs(shares[0] - shares[1]) / 2) * 100)
    mean = sum(shares) / len(shares)
    return int((1 - sqrt(sum((share - mean) * (share - mean) for share in shares) / len(shares))) * 100)


# -- Labels, taints, images ------------------------------------------------------------------------------------------


def node_affinity(_world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[int]:
    """Weights of the preferred node affinity earned, the most preferred candidate being 100."""
    raw = [matching.preference(task.spec, site.spec) for site in sites]
    high = max(raw)
    found = [each * 100 // high if high > 0 else each for each in raw]
    if min(raw) < 0:
        worst = found.index(min(found))
        where = f"score {found[worst]} for node {sites[worst].spec.name}"
        raise PluginError("nodeorder", f"NodeAffinity returns an invalid {where}")
    return found


def taints(_world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[int]:
    """100 without PreferNoSchedule taints that are not tolerated, 0 for the candidate with most of them."""
    raw = [matching.reluctance(task.spec, site.spec) for site in sites]
    high = max(raw)
    return [100 - (each * 100 // high if high else 0) for each in raw]


def images(world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[int]:
    """How much of the task's images a node holds: 0 at 23 MiB, 100 at 1000 MiB a container.

    An image has the size that the first node holding it states, times the share of nodes that hold it (in compat mode:
    that were known to hold it when this one came).
    """
    names = [tagged(name) for name in task.template.images]
    holders = {name: [site for site in world.sites if name in image_names(site)] for name in names}
    by_arrival = world.compat.asks("image-counts")
    ceiling = IMAGE_CEILING * len(names)

    def score(site: Site) -> int:
        held = 0
        for name in names:
            if site in holders[name]:
                count = holders[name].index(site) + 1 if by_arrival else len(holders[name])
                held += int(float(image_names(holders[name][0])[name]) * (count / len(world.sites)))
        return 100 * (min(max(held, IMAGE_FLOOR), ceiling) - IMAGE_FLOOR) // (ceiling - IMAGE_FLOOR)

    return [score(site) for site in sites] if names else [0] * len(sites)


def image_names(site: Site) -> dict[str, int]:
    """Sizes by name of the images that a node holds."""
    found: dict[str, int] = {}
    for image in site.spec.images:
        for name in image.names:
            found.setdefault(name, image.size_bytes)
    return found


def tagged(name: str) -> str:
    """An image's name with its tag, ``latest`` where it has none."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


# -- The plugins -----------------------------------------------------------------------------------------------------

IMAGES = {"imagelocality.weight": images}
"""nodeorder's score of the node alone, by the key of its weight."""

USAGE = {
    "leastrequested.weight": least_allocated,
    "mostrequested.weight": most_allocated,
    "balancedresource.weight": balanced,
}
"""nodeorder's scores by amounts."""

COMPARED = {
    "nodeaffinity.weight": node_affinity,
    "tainttoleration.weight": taints,
    "podaffinity.weight": pod_affinity_score,
    "podtopologyspread.weight": topology_spread_score,
}
"""nodeorder's scores that compare the candidates."""


def weighted(table: Mapping[str, Scores], settings: Settings) -> Scores:
    """The scores of ``table``, each times its weight, added up; those with weight 0, or none, are not asked."""
    asked = [(score, settings[key]) for key, score in table.items() if settings.get(key)]

    def made(world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[float]:
        columns = [[weight * each for each in score(world, task, sites)] for score, weight in asked]
        return [float(sum(column)) for column in zip(*columns, strict=True)] if columns else [0.0] * len(sites)

    return made


def binpack(settings: Settings) -> Scores:
    """How full the node would be: the weighted mean share of what the task asks for, 0 where it would not fit."""
    names = [name.strip() for name in settings["binpack.resources"].split(",")]
    listed = {name: settings["binpack.resources.*"].get(name, 1) for name in names if name}
    weights: dict[str, int] = {**listed, "cpu": settings["binpack.cpu"], "memory": settings["binpack.memory"]}
    factor = 100.0 * settings["binpack.weight"]

    def made(world: PlainWorld, task: Task, sites: Sequence[Site]) -> list[float]:
        vector = task.template.vector
        order = sorted(world.columns, key=lambda name: (("cpu", "memory", name).index(name), name))
        columns = {world.columns[name]: weights[name] for name in order if name in weights}
        asked = {column: w for column, w in columns.items() if column < len(vector) and vector[column] > 0}
        return [fullness(site, task, asked) * factor for site in sites]

    return made


def fullness(site: Site, task: Task, weights: Mapping[int, int]) -> float:
    """Weighted mean of (used + asked) / offered; what the node does not offer adds its weight and nothing else."""
    total = 0.0
    for column, weight in weights.items():
        after, offered = site.used[column] + task.template.vector[column], site.offers[column]
        if weight and offered:
            if after > offered:
                return 0.0
            total += after * float(weight) / offered
    return total / sum(weights.values()) if any(weights.values()) else 0.0
