"""Which keys of a resource list count: cpu, memory, pods, ephemeral storage, and scalars.

Scalars are extended resources, huge pages, attachable volumes, and what Kubernetes names itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from stromboli.model.names import ATTACHABLE_VOLUMES_PREFIX, CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY, PODS

_NATIVE: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."
_QUOTA_PREFIXES: Final = (_QUOTA_PREFIX, "limits.")
_OBJECTS_PREFIX: Final = "count/"
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = re.compile(rf"({_LABEL}(?:\.{_LABEL})*)/((?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])")
_LONGEST_DOMAIN: Final = 253
_LONGEST_NAME: Final = 63


def is_counted(name: str) -> bool:
    """Whether scheduling knows the resource; counts of objects, and what only quotas speak of, it does not."""
    known = name in (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)
    return known or (is_scalar(name) and not name.startswith(_OBJECTS_PREFIX))


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether ``name`` in a resource list is a dimension of its own, kept in :attr:`Resource.scalars`."""
    return name.startswith((HUGE_PAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX)) or _NATIVE in name or is_extended(name)


def is_extended(name: str) -> bool:
    """Whether ``name`` is an extended resource: ``domain/name`` outside kubernetes.io that a quota could name too."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA_PREFIXES):
        return False
    match = _QUALIFIED.fullmatch(_QUOTA_PREFIX + name)
    return match is not None and len(match[1]) <= _LONGEST_DOMAIN and len(match[2]) <= _LONGEST_NAME
