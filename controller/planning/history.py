"""The memory of full engines: what they held when they could take no more, by hardware and output length."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from controller.planning.saturation import is_full, output_length, round_down, tokens_in_use
from controller.planning.state import Window, WindowKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.settings import Settings
    from controller.planning.snapshot import Replica, ReplicaSample, Variant
    from controller.planning.state import PlanningState

    _Full = tuple[Variant, Replica, ReplicaSample]


def window_key(variant: Variant, sample: ReplicaSample) -> WindowKey | None:
    """Return where this engine's observations belong; None while its output length is not known."""
    if sample.avg_output_tokens is None:
        return None
    return WindowKey(
        namespace=variant.namespace,
        model_id=variant.model_id,
        accelerator=variant.accelerator,
        accelerators_per_replica=variant.accelerators_per_replica,
        output_length=output_length(sample.avg_output_tokens),
    )


def full_replicas(variants: Sequence[Variant], settings: Settings) -> Iterator[_Full]:
    """Yield the replicas whose fresh report says that they are full."""
    for variant in variants:
        for replica in variant.replicas:
            sample = replica.sample
            if sample and sample.age_seconds <= settings.fresh_seconds and is_full(sample, settings):
                yield variant, replica, sample


def push(
    variants: Sequence[Variant], full: Sequence[_Full], state: PlanningState, settings: Settings
) -> dict[WindowKey, Window]:
    """Return the windows after this cycle, in which some replicas are full.

    An engine that was not full a cycle ago may still be filling up: it does not count yet. Windows of models
    that are gone, or quiet for too long, are dropped.
    """
    seen = _observations(full, state)
    models = {(variant.namespace, variant.model_id) for variant in variants} if state.windows else set()
    windows = {w.key: w for w in state.windows if (w.key.namespace, w.key.model_id) in models}
    next_windows = {
        key: Window(key=key, tokens=window.tokens, quiet_cycles=window.quiet_cycles + 1)
        for key, window in windows.items()
        if key not in seen and window.quiet_cycles < settings.window_expiry_cycles
    }
    for key, tokens in seen.items():
        before = windows[key].tokens if key in windows else ()
        next_windows[key] = Window(key=key, tokens=(*before, *tokens)[-settings.window_length :])
    return next_windows


def _observations(full: Sequence[_Full], state: PlanningState) -> dict[WindowKey, list[int]]:
    queued = set(state.queued)
    seen: dict[WindowKey, list[int]] = defaultdict(list)
    for variant, replica, sample in full:
        key = window_key(variant, sample)
        if key and (variant.namespace, replica.name) in queued:
            seen[key].append(round_down(tokens_in_use(sample)))
    return seen
