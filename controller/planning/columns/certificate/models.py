"""Models of several cohorts side by side, narrower ones padded, and the boxes that their mixes begin as."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from controller.planning.columns.certificate.bounds import Models
from controller.planning.columns.certificate.boxes import Boxes
from controller.planning.problem import PER_MILLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from controller.planning.columns.arrays import Booleans, Floats
    from controller.planning.columns.certificate.costs import Pieces
    from controller.planning.columns.certificate.covers import Cover
    from controller.planning.columns.certificate.rows import Needs

_Number = TypeVar("_Number", np.int64, np.float64)


def models_of(costs: Sequence[Pieces], needs: Sequence[Needs]) -> Models:
    """Return the models of all cohorts in one."""
    pairs = list(zip(costs, needs, strict=True))
    return Models(
        starts=_padded([cost.starts for cost in costs]),
        ends=_padded([cost.ends for cost in costs]),
        slopes=_padded([cost.slopes for cost in costs]),
        amounts=_padded([_provided(cost, need.main) for cost, need in pairs]),
        base=np.concatenate([cost.base for cost in costs]),
        required=np.concatenate([need.main.lacking(need.lower) for need in needs]).astype(np.float64),
        share=np.concatenate([np.maximum(need.main.required, 1) / PER_MILLE for need in needs]),
        price=np.concatenate([need.main.price for need in needs]),
        second_amounts=_padded([_provided(cost, need.second) for cost, need in pairs]),
        second=np.concatenate([need.second.lacking(need.lower) for need in needs]).astype(np.float64),
    )


def roots_of(needs: Sequence[Needs]) -> Boxes:
    """Return all mixes of each model as one box, or as several where some one replica makes a difference."""
    lower, upper = _padded([need.lower for need in needs]), _padded([need.upper for need in needs])
    model = np.arange(len(lower))
    whole = Boxes(
        model=model, lower=lower, upper=upper, extra=np.zeros(len(model)), least=np.full(len(model), -np.inf)
    )
    required = np.concatenate([need.any_one.required for need in needs])
    helps = _padded([need.any_one.amounts for need in needs]) > 0
    price = np.concatenate([need.any_one.price for need in needs])
    parted = required > 0
    cost = np.where(np.isfinite(price), price, 0.0) * required
    without = np.where(np.isfinite(price), cost, np.inf)
    return Boxes.joined(
        [whole.of(~parted), *_parted(whole.of(parted), helps[parted], without[parted])],
    )


def _provided(cost: Pieces, cover: Cover) -> Floats:
    """Return what a replica of each piece provides for a requirement, (n, w, pieces)."""
    counts = cost.starts < cover.counts_to[:, :, None]
    return np.where(counts, cover.amounts[:, :, None], 0).astype(np.float64)


def _parted(boxes: Boxes, helps: Booleans, without: Floats) -> Iterator[Boxes]:
    """Yield mixes by the first of the variants that helps which has a replica; then those that have none."""
    upper = boxes.upper.copy()
    for variant, is_open in enumerate((helps & (upper > 0)).T):
        lower = boxes.lower.copy()
        lower[:, variant] = np.maximum(lower[:, variant], 1)
        part = Boxes(model=boxes.model, lower=lower, upper=upper.copy(), extra=boxes.extra, least=boxes.least)
        yield part.of(is_open)
        upper[:, variant] = np.where(helps[:, variant], 0, upper[:, variant])
    rest = Boxes(
        model=boxes.model, lower=boxes.lower, upper=upper, extra=boxes.extra + without, least=boxes.least
    )
    yield rest.of(np.isfinite(without))


def _padded(arrays: Sequence[NDArray[_Number]]) -> NDArray[_Number]:
    """Return arrays one below the other, with zeros beyond their width."""
    most: list[int] = np.max([array.shape[1:] for array in arrays], axis=0).tolist()
    wide = [np.zeros((len(array), *most), dtype=array.dtype) for array in arrays]
    for array, into in zip(arrays, wide, strict=True):
        into[tuple(slice(size) for size in array.shape)] = array
    return np.concatenate(wide)
