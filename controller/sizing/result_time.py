"""Learn the time of requests with one result, such as those of pooling and embedding models.

They have no times between tokens, from which step times are learned. Their time to first token is that of the
whole request, and an engine is taken for an M/M/1 queue: with service time s and N requests in the engine, a
request takes `T = s + s N`, and by Little's law `N = rate T`. So the engine serves `1 / s = rate + 1 / T`
requests per second at most: what it was seen to serve, and what one more request at a time would add. An
engine that computes many prompts at once serves more, which shows as its load grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.sizing.lengths import Lengths
from controller.sizing.records import EngineInterval, EngineReport, StepParameters

_SMOOTHING: Final = 0.05
"""Weight of a new interval in the moving average: about five minutes at the default interval."""

_LEAST_ALPHA: Final = 0.01
"""Share of the time that does not depend on the prompt. It is low: only then is the time spent anew for each
of several requests in an engine.
"""


def result_time(
    known: StepParameters | None,
    seen: Sequence[tuple[EngineReport, EngineInterval]],
    *,
    lengths: Lengths | None,
) -> StepParameters | None:
    """Return the parameters with the new intervals; None if requests have more than one result.

    `known` are those of the last cycle. Engines of one replica count as if all had the same load.
    """
    if lengths is None or lengths.output > 1:
        return None
    for report, interval in seen:
        if interval.inter_tokens or interval.first_tokens < 1 or interval.first_token_seconds <= 0:
            continue
        mean_seconds = interval.first_token_seconds / interval.first_tokens
        present = interval.first_token_seconds / (interval.seconds * report.engines)
        fitted = _parameters(mean_seconds / (1 + present), lengths)
        known = fitted if known is None else _smooth(known, fitted)
    return known


def _parameters(seconds: float, lengths: Lengths) -> StepParameters:
    alpha = _LEAST_ALPHA * seconds
    return StepParameters(
        alpha_ms=alpha * 1e3, beta_ms=0.0, delta_ms=(seconds - alpha) * 1e3 / lengths.computed
    )


def _smooth(known: StepParameters, fitted: StepParameters) -> StepParameters:
    return StepParameters(
        alpha_ms=known.alpha_ms + _SMOOTHING * (fitted.alpha_ms - known.alpha_ms),
        beta_ms=0.0,
        delta_ms=known.delta_ms + _SMOOTHING * (fitted.delta_ms - known.delta_ms),
    )
