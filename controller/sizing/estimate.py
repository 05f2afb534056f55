"""Estimate step times of a variant that never ran: those of a sibling, scaled by accelerator performance.

Decoding is bound by memory bandwidth and prefill by arithmetic, so alpha and beta scale with the former and
delta with the latter. If an accelerator type is unknown, the price ratio stands for both, at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from controller.planning.snapshot import Variant
from controller.sizing.records import StepParameters


@dataclass(frozen=True, slots=True)
class AcceleratorClass:
    """The performance of one accelerator, from its data sheet."""

    bandwidth: float
    """Memory bandwidth in TB/s."""

    arithmetic: float
    """Dense 16-bit floating point performance in TFLOPS."""


CLASSES: Final[Mapping[str, AcceleratorClass]] = {
    "B200": AcceleratorClass(8.0, 2250.0),
    "H200": AcceleratorClass(4.8, 989.0),
    "H100": AcceleratorClass(3.35, 989.0),
    "H20": AcceleratorClass(4.0, 148.0),
    "A100": AcceleratorClass(2.0, 312.0),
    "A10G": AcceleratorClass(0.6, 70.0),
    "A10": AcceleratorClass(0.6, 125.0),
    "L40S": AcceleratorClass(0.864, 362.0),
    "L40": AcceleratorClass(0.864, 181.0),
    "L4": AcceleratorClass(0.3, 121.0),
    "T4": AcceleratorClass(0.32, 65.0),
    "V100": AcceleratorClass(0.9, 125.0),
    "MI325X": AcceleratorClass(6.0, 1307.0),
    "MI300X": AcceleratorClass(5.3, 1307.0),
    "MI250X": AcceleratorClass(3.2, 383.0),
}
"""Accelerator classes by normalized type."""


def estimate(variant: Variant, sibling: Variant, parameters: StepParameters) -> StepParameters:
    """Return step times of a variant, scaled from those of a sibling of the same model."""
    decode, prompt = _shares(variant, sibling)
    return StepParameters(
        alpha_ms=parameters.alpha_ms / decode,
        beta_ms=parameters.beta_ms / decode,
        delta_ms=parameters.delta_ms / prompt,
        gamma_ms=parameters.gamma_ms / prompt,
    )


def _shares(variant: Variant, sibling: Variant) -> tuple[float, float]:
    """Return the speed of decoding and of prefill relative to a sibling; more than 1 is faster."""
    own, other = CLASSES.get(variant.accelerator), CLASSES.get(sibling.accelerator)
    count = variant.accelerators_per_replica / max(1, sibling.accelerators_per_replica) or 1.0
    if variant.accelerator == sibling.accelerator:
        return count, count
    if own and other:
        return count * own.bandwidth / other.bandwidth, count * own.arithmetic / other.arithmetic
    price = variant.cost_per_replica / sibling.cost_per_replica if sibling.cost_per_replica else Decimal(1)
    share = min(1.0, float(price) or 1.0)
    return share, share
