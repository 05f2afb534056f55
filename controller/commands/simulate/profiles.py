"""Engine performance as stated by a user or a VariantAutoscaling."""

from __future__ import annotations

import math

from apiserver.schema.json import Json
from controller.sizing.records import StepParameters


def stated_profile(spec: Json) -> StepParameters | None:
    """Return the profile in the spec of a VariantAutoscaling; None if it is missing or invalid."""
    parameters = (spec.get("variantProfile") or {}).get("perfParms") or {}
    decode, prefill = parameters.get("decodeParms") or {}, parameters.get("prefillParms") or {}
    try:
        return profile_of(decode["alpha"], decode["beta"], prefill["delta"], prefill.get("gamma", "0"))
    except (KeyError, ValueError):
        return None


def profile_of(alpha: str, beta: str, delta: str, gamma: str = "0") -> StepParameters:
    """Return a profile from decimal numbers as text. Raises ValueError."""
    numbers = [float(text) for text in (alpha, beta, delta, gamma)]
    if not all(math.isfinite(number) and number >= 0 for number in numbers) or not numbers[0]:
        raise ValueError("must be finite numbers of ms, alpha greater than 0 and none below 0")
    return StepParameters(alpha_ms=numbers[0], beta_ms=numbers[1], delta_ms=numbers[2], gamma_ms=numbers[3])
