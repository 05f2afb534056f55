"""Engines, variants and nodes of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from controller.simulation.autoscaler import DEFAULT_BEHAVIOUR, Behaviour
from controller.simulation.profile import EngineProfile
from controller.simulation.scenario import NodeGroup, VariantSetup
from controller.sizing.records import Targets

MODEL: Final = "model"
TARGETS: Final = Targets(ttft_seconds=2.0, itl_seconds=0.08)
START_UP_SECONDS: Final = 120.0

H100: Final = EngineProfile(
    model_id=MODEL, alpha_ms=8, beta_ms=0.05, gamma_ms=0, delta_ms=0.03, num_gpu_blocks=24_000
)
L40S: Final = EngineProfile(
    model_id=MODEL, alpha_ms=18, beta_ms=0.12, gamma_ms=0, delta_ms=0.11, num_gpu_blocks=9000
)

Kinds = tuple[tuple[EngineProfile, float], tuple[EngineProfile, float]]
"""Engine and price per hour on an H100 and on an L40S."""

USUAL: Final[Kinds] = ((H100, 100.0), (L40S, 32.0))
CHEAP: Final[Kinds] = ((H100, 100.0), (L40S, 20.0))
LARGE: Final[Kinds] = (
    (replace(H100, alpha_ms=30, beta_ms=0.6, delta_ms=0.35), 100.0),
    (replace(L40S, alpha_ms=45, beta_ms=0.9, delta_ms=0.8), 36.0),
)
"""Engines whose ratios of beta and delta to alpha are far from those that Stowplan assumes at first."""

NODES: Final = (
    NodeGroup(accelerator="H100", accelerators=8, count=12),
    NodeGroup(accelerator="L40S", accelerators=8, count=12),
)
"""More nodes than any row needs."""


def pair(
    kinds: Kinds = USUAL,
    *,
    initial: tuple[int, int] = (2, 2),
    start_up_seconds: float = START_UP_SECONDS,
    window_seconds: int = 0,
) -> tuple[VariantSetup, VariantSetup]:
    """Return the two variants of the model; the window is that of HPAs that follow published decisions."""
    (h100, h100_price), (l40s, l40s_price) = kinds

    def variant(profile: EngineProfile, accelerator: str, price: float, replicas: int) -> VariantSetup:
        return VariantSetup(
            name=accelerator.lower(),
            profile=profile,
            accelerator=accelerator,
            price_per_hour=price,
            start_up_seconds=start_up_seconds,
            initial_replicas=replicas,
            behaviour=_window(window_seconds),
        )

    return variant(h100, "H100", h100_price, initial[0]), variant(l40s, "L40S", l40s_price, initial[1])


def _window(seconds: int) -> Behaviour:
    down = replace(DEFAULT_BEHAVIOUR.down, window_seconds=seconds)
    return replace(DEFAULT_BEHAVIOUR, down=down).without_tolerance()


def with_stated_profiles(variants: tuple[VariantSetup, ...]) -> tuple[VariantSetup, ...]:
    """Return the variants with a declared profile: that of their engines."""
    return tuple(replace(item, stated_profile=item.profile) for item in variants)


def of_model(variant: VariantSetup, model_id: str, initial_replicas: int) -> VariantSetup:
    """Return a copy of a variant for another model."""
    return replace(
        variant,
        name=f"{model_id}-{variant.name}",
        profile=replace(variant.profile, model_id=model_id),
        initial_replicas=initial_replicas,
    )
