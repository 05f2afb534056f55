"""All families by name, and the generation of their fleets: equal name, size and seed give equal problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from controller.planning.problem import PlacementProblem
from hack.fleets import families_loads, families_rules, families_traps

VERSION: Final = 1
"""Version of the generator, incremented by every change that alters the problems of a name."""

SIZES: Final = (20, 100, 200, 2000)

FAMILIES: Final[Mapping[str, Callable[[np.random.Generator, int], PlacementProblem]]] = {
    "F1-unlimited": families_loads.unlimited,
    "F2-plenty": families_loads.plenty,
    "F3-skew": families_loads.skew,
    "F4-tight": families_loads.tight,
    "F5-scarce": families_loads.scarce,
    "F6-tiny-load": families_loads.tiny_load,
    "F7-huge-models": families_loads.huge_models,
    "F9-zones-3": families_rules.three_zones,
    "F9-zones-10": families_rules.ten_zones,
    "F11-uneven-sizes": families_loads.uneven_sizes,
    "F12-racks": families_rules.racks,
    "F14-regret": families_traps.regret,
    "F14-dominant": families_traps.dominant,
    "F14-equal-ratios": families_traps.equal_ratios,
    "F14-ties": families_traps.ties,
    "F14-idle": families_traps.idle,
    "F14-pinned": families_traps.pinned,
    "F14-one-type": families_traps.one_type,
    "F14-one-node-each": families_traps.one_node_each,
}

SCARCE: Final = ("F3-skew", "F4-tight", "F5-scarce")
"""Families with scarce accelerator types, where optimization matters most."""

RULED: Final = ("F9-zones-3", "F9-zones-10", "F12-racks")
"""Families with topology constraints on pods, which HiGHS's model lacks; it is skipped for them."""

BY_ROOM: Final = (
    "F1-unlimited",
    "F2-plenty",
    "F3-skew",
    "F4-tight",
    "F5-scarce",
    "F6-tiny-load",
    "F7-huge-models",
)
"""Families constrained only by capacity, without traps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """One generated problem, by its parameters."""

    family: str
    size: int
    """The number of models."""
    seed: int

    @property
    def name(self) -> str:
        """Its name in progress output and tables."""
        return f"{self.family}/{self.size}/{self.seed}"

    def problem(self) -> PlacementProblem:
        """Generate the problem."""
        entropy = [VERSION, *self.family.encode(), self.size, self.seed]
        return FAMILIES[self.family](np.random.default_rng(entropy), self.size)


def select_names(prefixes: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names that equal a prefix or begin with one and a dash; all names without prefixes.

    Raises KeyError for a prefix that matches nothing.
    """
    for prefix in prefixes:
        if not any(_matches(name, prefix) for name in names):
            raise KeyError(prefix)
    return [name for name in names if not prefixes or any(_matches(name, p) for p in prefixes)]


def _matches(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}-")
