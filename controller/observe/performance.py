"""Read declared and published performance."""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json
from controller.planning.ranges import MOST_START_SECONDS
from controller.sizing.records import MAX_NUM_SEQS, Learned, Profile, StepParameters

_LARGEST: Final = 1e9
_SMALLEST: Final = 1e-6


def profile_of(declared: Json | None) -> tuple[Profile | None, tuple[str, ...]]:
    """Return the declared profile, or None with the reason why it cannot be used."""
    parms = (declared or {}).get("perfParms")
    if not declared or not parms:
        return None, ()
    numbers: dict[str, float] = {}
    missing = []
    for phase, name in (
        ("decodeParms", "alpha"),
        ("decodeParms", "beta"),
        ("prefillParms", "gamma"),
        ("prefillParms", "delta"),
    ):
        value = _number((parms.get(phase) or {}).get(name))
        if value is None:
            missing.append(f"{phase}.{name}")
        else:
            numbers[f"{name}_ms"] = value
    if missing or not numbers["alpha_ms"]:
        what = ", ".join(missing) or "decodeParms.alpha"
        demand = f"must be 0 or {_SMALLEST} to {_LARGEST:.0f} ms, alpha not 0"
        return None, (f"variantProfile.perfParms is not used: {what} {demand}",)
    batch = max(1, int(declared.get("maxBatchSize") or MAX_NUM_SEQS))
    return Profile(parameters=StepParameters(**numbers), max_batch_size=batch), ()


def learned_of(published: Json | None) -> Learned | None:
    """Return the learned performance from a status, or None if it has none that is valid."""
    if not published:
        return None
    decode, prefill = published.get("decodeParms") or {}, published.get("prefillParms") or {}
    alpha, beta, delta = (
        _number(decode.get("alpha")),
        _number(decode.get("beta")),
        _number(prefill.get("delta")),
    )
    samples = _number(published.get("samples"))
    if not alpha or beta is None or delta is None or not samples:
        return None
    tokens = published.get("kvCacheTokens")
    return Learned(
        parameters=StepParameters(alpha_ms=alpha, beta_ms=beta, delta_ms=delta),
        samples=samples,
        kv_tokens=tokens if isinstance(tokens, int) and tokens > 0 else None,
        utilization=_number(published.get("utilization"), most=1.0) or None,
    )


def start_seconds_of(published: Json) -> float | None:
    """Return the published start-up time, in seconds; None if there is none that is valid."""
    return _number(published.get("startSeconds"), most=MOST_START_SECONDS)


def _number(value: object, *, most: float = _LARGEST) -> float | None:
    """Return a value as a number if it is 0, or neither too small nor too large for calculations; else None.

    The value may be text or a number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if found == 0 or _SMALLEST <= found <= most else None
