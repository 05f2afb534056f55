"""The least that mixes between bounds can cost if the last replica could be divided: of many models at once.

With straight pieces of rising cost and one requirement, the best divisible mix takes the pieces by what they
cost per amount that counts, until the requirement is met or it is cheaper to miss the rest (Dantzig, 1957).
A replica counts for no more than what is required, which brings that close to the best whole mix.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers

SOLVED = -1
"""In place of a variant to cut a box at: it has no more to tell."""

_ROUNDING = 1e-7
"""How near to a whole number a count of replicas is one."""

_LESS_THAN_ONE = 1 / 2
"""Amounts are whole numbers."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Models:
    """Costs and requirements of n models, w variants each, in pieces."""

    starts: Integers
    ends: Integers
    """(n, w, pieces): replicas where each piece begins and ends."""

    slopes: Floats
    """(n, w, pieces): cost of one replica there."""

    amounts: Floats
    """(n, w, pieces): what one replica there provides."""

    base: Floats
    """(n,): cost where the first pieces begin."""

    required: Floats
    """(n,): of what the first pieces do not provide before they begin; not above 0 where nothing is."""

    share: Floats
    """(n,): a per mille of all that is required; what is missing counts in so much."""

    price: Floats
    """(n,): of each one that is missing; infinite where none may be."""

    def cost(self, model: Integers, mixes: Integers) -> Floats:
        """Return what whole mixes (k, w) of models (k,) cost."""
        starts, ends = self.starts[model], self.ends[model]
        held = np.clip(mixes[:, :, None] - starts, 0, ends - starts)
        missing = self.required[model] - (held * self.amounts[model]).sum(axis=(1, 2))
        cost: Floats = self.base[model] + (held * self.slopes[model]).sum(axis=(1, 2))
        share = self.share[model]
        return cost + self._penalty(model, share * np.ceil(missing / share - _ROUNDING))

    def relaxed(self, boxes: Boxes) -> Relaxed:
        """Return the best divisible mix of each box."""
        model, shape = boxes.model, (len(boxes), -1)
        starts, ends = self.starts[model], self.ends[model]
        first = np.clip(boxes.lower[:, :, None], starts, ends)
        room = np.clip(boxes.upper[:, :, None], first, ends) - first
        need = self.required[model] - ((first - starts) * self.amounts[model]).sum(axis=(1, 2))
        need = np.maximum(need, 0.0)
        amounts = np.minimum(self.amounts[model], need[:, None, None]).reshape(shape)
        slopes = self.slopes[model].reshape(shape)
        taken = _taken(room.reshape(shape), amounts, slopes, need, self.price[model])
        missing = need - (taken * amounts).sum(axis=1)
        held = self.base[model] + ((first - starts) * self.slopes[model]).sum(axis=(1, 2)) + boxes.extra
        least = held + (taken * slopes).sum(axis=1) + self._penalty(model, missing)
        counts = boxes.lower + taken.reshape(room.shape).sum(axis=2)
        return self._cut(boxes, least, counts, is_short=missing > _LESS_THAN_ONE)

    def _cut(self, boxes: Boxes, least: Floats, counts: Floats, *, is_short: Booleans) -> Relaxed:
        """Return where to cut each box: at a replica that is divided, or to tell apart what is rounded.

        What is missing counts in whole per mille, and so for more in a whole mix than in a divisible one.
        """
        whole = np.rint(counts)
        is_divided = np.abs(counts - whole) > _ROUNDING
        mixes = np.where(is_divided, np.floor(counts), whole).astype(np.int64)
        is_open = boxes.lower < boxes.upper
        is_rounded = is_short & ~is_divided.any(axis=1)
        alone = is_rounded & ~is_open.any(axis=1)
        least[alone] = self.cost(boxes.model[alone], mixes[alone]) + boxes.extra[alone]
        cuts = is_divided | (is_open & is_rounded[:, None])
        variant = cuts.argmax(axis=1)
        model = np.arange(len(boxes))
        count = mixes[model, variant]
        return Relaxed(
            least=least,
            mixes=mixes,
            variant=np.where(cuts.any(axis=1), variant, SOLVED),
            count=np.minimum(count, boxes.upper[model, variant] - 1),
        )

    def _penalty(self, model: Integers, missing: Floats) -> Floats:
        """Return the price of what is missing."""
        penalty, lacks = np.zeros(len(missing)), missing > _LESS_THAN_ONE
        penalty[lacks] = self.price[model[lacks]] * missing[lacks]
        return penalty


def _taken(room: Integers, amounts: Floats, slopes: Floats, need: Floats, price: Floats) -> Floats:
    """Return how much of each piece the best divisible mix takes, (k, pieces of all variants)."""
    provides = amounts > 0
    ratio = np.where(provides, slopes / np.where(provides, amounts, 1.0), np.inf)
    ratio[slopes < 0] = -np.inf  # what pays for itself is taken whatever is needed
    order = np.argsort(ratio, axis=1, kind="stable")
    given = np.take_along_axis(room * amounts, order, axis=1)
    before = np.empty_like(given)
    np.put_along_axis(before, order, np.cumsum(given, axis=1) - given, axis=1)
    wanted = (need[:, None] - before) / np.where(provides, amounts, 1.0)
    taken = np.where(provides & (ratio <= price[:, None]), np.clip(wanted, 0.0, room), 0.0)
    return np.where(slopes < 0, room, taken)
