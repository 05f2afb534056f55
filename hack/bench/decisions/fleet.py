"""Engines, variants and nodes of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from controller.closedloop.scenario import NodeGroup, VariantSetup
from controller.simulation.profile import EngineProfile
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
H100_PRICE: Final = 100.0
L40S_PRICE: Final = 32.0
CHEAP_L40S_PRICE: Final = 20.0

NODES: Final = (
    NodeGroup(accelerator="H100", accelerators=8, count=12),
    NodeGroup(accelerator="L40S", accelerators=8, count=12),
)
"""More nodes than any row needs."""

_CONTEXT_US_PER_TOKEN: Final = 0.04
_STEP_NOISE: Final = 0.3


def pair(
    *,
    initial: tuple[int, int] = (2, 2),
    l40s_price: float = L40S_PRICE,
    start_up_seconds: float = START_UP_SECONDS,
) -> tuple[VariantSetup, VariantSetup]:
    """Return the two variants of the model."""

    def variant(profile: EngineProfile, accelerator: str, price: float, replicas: int) -> VariantSetup:
        return VariantSetup(
            name=accelerator.lower(),
            profile=profile,
            accelerator=accelerator,
            price_per_hour=price,
            start_up_seconds=start_up_seconds,
            initial_replicas=replicas,
        )

    return variant(H100, "H100", H100_PRICE, initial[0]), variant(L40S, "L40S", l40s_price, initial[1])


def stating(variants: tuple[VariantSetup, ...]) -> tuple[VariantSetup, ...]:
    """Return the variants with a declared profile: the linear part of their engines' profiles."""
    return tuple(
        replace(item, stated_profile=replace(item.profile, context_us_per_token=0.0, step_noise=0.0))
        for item in variants
    )


def misfit(variants: tuple[VariantSetup, ...]) -> tuple[VariantSetup, ...]:
    """Return variants whose step times also grow with cached tokens and vary randomly, so no line fits."""
    return tuple(
        replace(
            item,
            profile=replace(item.profile, context_us_per_token=_CONTEXT_US_PER_TOKEN, step_noise=_STEP_NOISE),
        )
        for item in variants
    )


def of_model(variant: VariantSetup, model_id: str, initial_replicas: int) -> VariantSetup:
    """Return a copy of a variant for another model."""
    return replace(
        variant,
        name=f"{model_id}-{variant.name}",
        profile=replace(variant.profile, model_id=model_id),
        initial_replicas=initial_replicas,
    )
