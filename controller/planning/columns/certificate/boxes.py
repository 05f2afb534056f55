"""Parts of models' mixes, and what is known of them, for many models at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers

SOLVED = -1
"""In place of a variant to cut a box at: it has no more to tell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Boxes:
    """Parts of models' mixes: those between bounds."""

    model: Integers
    """(k,)."""

    lower: Integers
    upper: Integers
    """(k, w)."""

    extra: Floats
    """(k,): what every mix of the part costs besides."""

    least: Floats
    """(k,): what no mix of the part costs less than, as far as is known."""

    def __len__(self) -> int:
        return len(self.model)

    def of(self, chosen: Booleans | Integers) -> Boxes:
        """Return some of the parts."""
        return Boxes(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})

    @classmethod
    def joined(cls, parts: Sequence[Boxes]) -> Boxes:
        """Return all parts in one."""
        return cls(
            **{
                field.name: np.concatenate([getattr(part, field.name) for part in parts])
                for field in fields(cls)
            }
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Relaxed:
    """The best divisible mix of each of some boxes."""

    least: Floats
    """(k,): what it costs; infinite where a requirement can't be met."""

    mixes: Integers
    """(k, w): rounded down."""

    variant: Integers
    """(k,): the one to cut the box at, or SOLVED if no mix of the box costs less than `least` says."""

    count: Integers
    """(k,): replicas of that variant, up to which one part goes."""
