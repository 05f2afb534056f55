"""The least that mixes between bounds can cost if the last replica could be divided: of many models at once.

With straight pieces of rising cost and one requirement, the best divisible mix takes the pieces by what they
cost per amount that counts, until the requirement is met or it is cheaper to miss the rest (Dantzig, 1957).
A replica counts for no more than what is required, which brings that close to the best whole mix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.certificate.boxes import SOLVED, Relaxed

if TYPE_CHECKING:
    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.certificate.boxes import Boxes

_ROUNDING = 1e-7
"""How near to a whole number a count of replicas is one."""

_LESS_THAN_ONE = 1 / 2
"""Amounts are whole numbers."""


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

    second_amounts: Floats
    """(n, w, pieces): what one replica there provides for another requirement."""

    second: Floats
    """(n,): as `required`, of that one, of which nothing may be missing."""

    def cost(self, model: Integers, mixes: Integers) -> Floats:
        """Return what whole mixes (k, w) of models (k,) cost."""
        starts, ends = self.starts[model], self.ends[model]
        held = np.clip(mixes[:, :, None] - starts, 0, ends - starts)
        missing = self.required[model] - (held * self.amounts[model]).sum(axis=(1, 2))
        cost: Floats = self.base[model] + (held * self.slopes[model]).sum(axis=(1, 2))
        share = self.share[model]
        cost += self._penalty(model, share * np.ceil(missing / share - _ROUNDING))
        lacking = self.second[model] - (held * self.second_amounts[model]).sum(axis=(1, 2))
        return np.where(lacking > _LESS_THAN_ONE, np.inf, cost)

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
        cut = self._cut(boxes, least, counts, is_short=missing > _LESS_THAN_ONE)
        return self._with_second(boxes, first, room, held, cut)

    def _with_second(
        self, boxes: Boxes, first: Integers, room: Integers, held: Floats, relaxed: Relaxed
    ) -> Relaxed:
        """Return the same with the bound by the other requirement, and cuts where a whole mix lacks it."""
        some = np.flatnonzero(self.second[boxes.model] > 0)
        if not len(some):
            return relaxed
        model, shape = boxes.model[some], (len(some), -1)
        provided = (first - self.starts[boxes.model])[some] * self.second_amounts[model]
        need = np.maximum(self.second[model] - provided.sum(axis=(1, 2)), 0.0)
        amounts = np.minimum(self.second_amounts[model], need[:, None, None]).reshape(shape)
        slopes = self.slopes[model].reshape(shape)
        taken = _taken(room[some].reshape(shape), amounts, slopes, need, np.full(len(some), np.inf))
        is_short = need - (taken * amounts).sum(axis=1) > _LESS_THAN_ONE
        least = relaxed.least.copy()
        bound = np.where(is_short, np.inf, held[some] + (taken * slopes).sum(axis=1))
        least[some] = np.maximum(least[some], bound)
        wanted = boxes.lower[some] + np.ceil(taken.reshape(room[some].shape).sum(axis=2) - _ROUNDING)
        return _cut_towards(replace(relaxed, least=least), boxes, some[~is_short], wanted[~is_short], self)

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


def _cut_towards(relaxed: Relaxed, boxes: Boxes, some: Integers, wanted: Floats, models: Models) -> Relaxed:
    """Return solved boxes cut half-way to the mixes that are wanted, where their own are no answer."""
    lacks = (relaxed.variant[some] == SOLVED) & np.isinf(models.cost(boxes.model[some], relaxed.mixes[some]))
    cut, mixes = some[lacks], relaxed.mixes[some[lacks]]
    more = wanted[lacks].astype(np.int64) - mixes
    at = np.arange(len(cut)), more.argmax(axis=1)
    variant, count = relaxed.variant.copy(), relaxed.count.copy()
    grows = more[at] > 0
    variant[cut[grows]] = at[1][grows]
    count[cut[grows]] = (mixes[at] + (more[at] - 1) // 2)[grows]
    return replace(relaxed, variant=variant, count=count)


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
