"""Whether replicas follow the published decisions: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hack.demo.observation import VariantView

UP_SECONDS = 12.0
"""A rise that stands so long must be carried out."""

DOWN_SECONDS = 35.0
"""A fall must stand longer: the samples' scale-down window and one more look of the autoscaler are in it."""


def unfollowed(views: Sequence[tuple[float, VariantView]]) -> Iterator[float]:
    """Yield the moments at which a decision stood long enough and yet was not carried out."""
    for index, (seconds, view) in enumerate(views):
        if view.desired_replicas is None or view.desired_replicas == view.current_replicas:
            continue
        patience_seconds = UP_SECONDS if view.desired_replicas > view.current_replicas else DOWN_SECONDS
        later = [v for moment, v in views[index:] if moment <= seconds + patience_seconds]
        is_over = views[-1][0] >= seconds + patience_seconds
        if is_over and _stands(later) and later[-1].current_replicas != view.desired_replicas:
            yield seconds


def _stands(views: Sequence[VariantView]) -> bool:
    return len({view.desired_replicas for view in views}) == 1
