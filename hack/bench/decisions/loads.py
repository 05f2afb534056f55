"""What the models of the rows are asked for: recorded traces, and rates drawn along curves."""

from __future__ import annotations

from typing import Final

from controller.simulation.curve import Curve
from controller.simulation.trace import load_trace
from controller.simulation.workload import Drawn, Played, Workload

CONVERSATIONS: Final = "azure-llm-2023-conv"
CODE: Final = "azure-llm-2023-code"
_NOISE: Final = 0.1


def recorded(trace: str, copies: int) -> Workload:
    """Return a shipped trace of which each request is sent so many times, with jitter."""
    return Played(trace=load_trace(trace), copies=copies)


def drawn(curve: Curve, *, noise: float = _NOISE) -> Workload:
    """Return conversations that arrive along a curve, by Poisson with slow noise."""
    return Drawn(curve=curve, lengths=load_trace(CONVERSATIONS), noise=noise)
