"""What the models of the rows are asked for: recorded traces, and rates drawn along curves."""

from __future__ import annotations

from typing import Final

from controller.simulation.curve import Curve
from controller.simulation.trace import load_trace
from controller.simulation.workload import Drawn, Played, Workload

CONVERSATIONS: Final = "azure-llm-2023-conv"
CODE: Final = "azure-llm-2023-code"
_NOISE: Final = 0.1
_HOUR: Final = 3600.0


def recorded(trace: str, copies: int) -> Workload:
    """Return a shipped trace of which each request is sent so many times, with jitter."""
    return Played(trace=load_trace(trace), copies=copies)


def drawn(curve: Curve, *, noise: float = _NOISE) -> Workload:
    """Return conversations that arrive along a curve, by Poisson with slow noise."""
    return Drawn(curve=curve, lengths=load_trace(CONVERSATIONS), noise=noise)


def constant(rate: float) -> Curve:
    """Return the same rate throughout."""
    return Curve(shape="constant", high=rate)


def ramp(low: float, high: float) -> Curve:
    """Return a rate that rises evenly for an hour."""
    return Curve(shape="ramp", low=low, high=high, length_seconds=_HOUR)


def sine(low: float, high: float, *, period_seconds: float) -> Curve:
    """Return a rate that swings, beginning at its lowest."""
    return Curve(shape="sine", low=low, high=high, period_seconds=period_seconds)


def step(low: float, high: float, *, at_seconds: float) -> Curve:
    """Return a rate that jumps once."""
    return Curve(shape="step", low=low, high=high, at_seconds=at_seconds)


def spikes(low: float, high: float, *, length_seconds: float, period_seconds: float) -> Curve:
    """Return a rate that jumps for a short time again and again, the first time after half a period."""
    return Curve(
        shape="spike",
        low=low,
        high=high,
        at_seconds=period_seconds / 2,
        length_seconds=length_seconds,
        period_seconds=period_seconds,
    )
