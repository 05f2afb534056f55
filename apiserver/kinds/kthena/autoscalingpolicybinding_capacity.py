"""The annotation that sets the relative capacities of the replicas of heterogeneous targets.

The fields of a binding cannot express that a replica on one accelerator serves more than one on another,
which is needed to share a load among both. `stowplan.dev/capacity: llama-h100=2.5,llama-a100=1` does: the
target value of a metric applies to a replica of capacity 1, and to others in proportion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from apiserver.schema.json import Json

ANNOTATION: Final = "stowplan.dev/capacity"
"""The name of the annotation."""

_NUMBER: Final = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?\Z")
_SAYS: Final = "must be NAME=NUMBER,NAME=NUMBER with numbers from 0.001 to 9999, such as llama-h100=2.5"


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacities:
    """Capacities by target name, with one sentence for each invalid part of the annotation."""

    of: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def capacities_of(binding: Json) -> Capacities:
    """Return the capacities that a binding's annotation sets; without it, all replicas have capacity 1."""
    text = ((binding.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    if not isinstance(text, str):
        return Capacities()
    entries = [part.strip().rpartition("=") for part in text.split(",") if part.strip()]
    good = {name: float(number) for name, _, number in entries if _is_capacity(name, number)}
    return Capacities(of=good, problems=tuple(_problems(binding, entries, good)))


def _is_capacity(name: str, number: str) -> bool:
    return bool(name and _NUMBER.match(number)) and float(number) > 0


def _problems(binding: Json, entries: list[tuple[str, str, str]], good: Mapping[str, float]) -> Iterator[str]:
    where = f"metadata.annotations[{ANNOTATION}]"
    if any(not _is_capacity(name, number) for name, _, number in entries):
        yield f"{where}: {_SAYS}; invalid values count as 1"
    params = ((binding.get("spec") or {}).get("optimizerConfiguration") or {}).get("params") or []
    names = {param.get("target", {}).get("targetRef", {}).get("name") for param in params}
    if strangers := sorted(name for name in good if name not in names):
        yield f"{where}: optimizerConfiguration has no target named {', '.join(strangers)}"
