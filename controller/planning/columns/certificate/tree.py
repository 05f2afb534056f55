"""The least that any whole mix of each model can cost, as near as the effort allows: branch and bound.

A box whose best divisible mix is whole is solved. Any other is cut in two between the whole numbers on both
sides of the divided variant. What can't hold a mix that is cheaper by more than what is tolerated is left
alone: the least of what was left, solved or not, bounds the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.certificate.boxes import SOLVED, Boxes

if TYPE_CHECKING:
    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.certificate.bounds import Models
    from controller.planning.columns.certificate.boxes import Relaxed

AT_ONCE = 32
"""How many boxes of each model are bounded in one turn, the most promising ones first."""

_RESOLUTION = 1e-12
"""Relative difference that doubles can tell for sure."""


class Tree:
    """What is left of the mixes of all models, and the cheapest ones that were met on the way."""

    def __init__(self, models: Models, roots: Boxes, known: Floats, tolerance: float) -> None:
        """Begin with what a mix of each model is known to cost, (n,); the tolerance is for all together."""
        self._models = models
        self._open = roots
        self._known = known
        self._tolerance = tolerance
        self._closed = np.full(len(known), np.inf)
        self._best = known.copy()
        self._mixes = np.zeros((len(known), roots.lower.shape[1]), dtype=np.int64)

    def run(self, most_boxes: int) -> Floats:
        """Return what no mix of each model costs less than, (n,), after so many boxes or a few more."""
        seen = 0
        while len(self._open) and seen < most_boxes:
            seen += self._turn()
            if float(np.maximum(self._best - self._least(), 0).sum()) <= self._tolerance:
                break
        return self._least()

    def cheaper(self) -> tuple[Integers, Integers]:
        """Return the models of which a cheaper mix than the known one was met, (m,), and those, (m, w)."""
        models = np.flatnonzero(self._best < self._known - self._slack())
        return models, self._mixes[models]

    def _turn(self) -> int:
        """Cut the most promising boxes, leave alone what is not worth it; return how many were bounded."""
        order = np.lexsort([self._open.least, self._open.model])
        model = self._open.model[order]
        rank = np.arange(len(model)) - np.searchsorted(model, model)
        now, later = self._open.of(order[rank < AT_ONCE]), self._open.of(order[rank >= AT_ONCE])
        found = self._models.relaxed(now)
        self._meet(now, found.mixes)
        cut = np.flatnonzero(found.variant != SOLVED)
        self._meet(now.of(cut), _stepped(found, cut))
        now = replace(now, least=np.maximum(now.least, found.least))
        self._close(now.of(found.variant == SOLVED))
        self._open = self._worthwhile(Boxes.joined([later, *_parts(now.of(cut), found, cut)]))
        return len(now)

    def _worthwhile(self, boxes: Boxes) -> Boxes:
        """Return the boxes that may hold a mix that matters; the others are left alone."""
        matters = boxes.least < (self._best - self._slack())[boxes.model]
        self._close(boxes.of(~matters))
        return boxes.of(matters)

    def _close(self, boxes: Boxes) -> None:
        np.minimum.at(self._closed, boxes.model, boxes.least)

    def _slack(self) -> Floats:
        """Return what is tolerated of each model, (n,): no less than what doubles can tell apart."""
        slack: Floats = self._tolerance / len(self._best) + _RESOLUTION * (1 + np.abs(self._best))
        return slack

    def _least(self) -> Floats:
        least = self._closed.copy()
        np.minimum.at(least, self._open.model, self._open.least)
        return least

    def _meet(self, boxes: Boxes, mixes: Integers) -> None:
        """Remember the cheapest mix of each model."""
        cost = self._models.cost(boxes.model, mixes) + boxes.extra
        order = np.lexsort([cost, boxes.model])
        first = order[np.flatnonzero(np.diff(boxes.model[order], prepend=-1))]
        better = first[cost[first] < self._best[boxes.model[first]]]
        self._best[boxes.model[better]] = cost[better]
        self._mixes[boxes.model[better]] = mixes[better]


def _stepped(found: Relaxed, cut: Integers) -> Integers:
    """Return mixes with one replica more where boxes are cut, (c, w): whole if one was divided there."""
    mixes: Integers = found.mixes[cut]
    at = np.arange(len(cut)), found.variant[cut]
    mixes[at] = found.count[cut] + 1
    return mixes


def _parts(boxes: Boxes, found: Relaxed, cut: Integers) -> tuple[Boxes, Boxes]:
    """Return what lies below and above the cut through each box."""
    at = np.arange(len(cut)), found.variant[cut]
    lower, upper = boxes.lower.copy(), boxes.upper.copy()
    upper[at] = found.count[cut]
    lower[at] = found.count[cut] + 1
    return replace(boxes, upper=upper), replace(boxes, lower=lower)
