"""Learn the step times of a variant's engines from their counters, and the times of requests with one result.

The time of a busy engine is spent on steps, on the tokens they decode and on the prompts they compute: `1 =
alpha / tau + beta * G + delta * P`, with tau the mean time of a step, and G and P the decoded and the
prompt tokens per second. vLLM counts steps. For SGLang, the mean time between two tokens stands for tau,
although steps with many sequences weigh more in it. This is a plane through the origin of (1 / tau, G, P),
which is fitted by least squares with forgetting. The engine's time is the dependent variable, because the
rates contain errors: a prompt is counted when it ends, and not while it is computed. A line of 1 / tau over
G and P would flatten with them, and make a saturated engine seem several times slower. Prior knowledge (a
declared profile, the status) counts as a few samples, so that it holds where samples say little, and fades
as far as they say more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.sizing.lengths import Lengths
from controller.sizing.records import EngineInterval, EngineReport, StepParameters

FORGETTING: Final = 0.998
"""Factor per cycle on the weight of all earlier samples; it is halved after 350 cycles with samples."""

ENOUGH_SAMPLES: Final = 8.0
"""Weight from which learned parameters take precedence over declared ones."""

_RIDGE: Final = 1e-4
"""Share of the diagonal that is added to it, so that constant loads still yield a solution."""

_BUSY_SEQUENCES: Final = 3.0
"""Mean sequences above which an engine is assumed to compute all the time."""

_BETA_RATIO: Final = 0.008
_DELTA_RATIO: Final = 0.005
"""beta / alpha and delta / alpha of common engines, used until the load has varied."""

_RATIO_WEIGHT: Final = 0.003
"""Weight of the prior ratios, relative to the mean of the samples' squares. With 0.02, the beta that was
learned in an hour of an engine with 0.3 ms (0.03 of alpha) was 0.19 ms instead of 0.35.
"""

_OUTLIER: Final = 4.0
_MOST_OUTLIERS: Final = 8
"""This many outliers in a row, off by more than that factor, are accepted as a change. The factor is large,
because excluding the slow intervals of a bursty load would flatten the line.
"""

_MOST_SPREAD: Final = 1.5
"""Factor on the tokens that a step can yield, within which counted steps are believed."""

_LEAST_TOKENS: Final = 1e-3
"""The minimum number of tokens of a sample. Prometheus extrapolates, so a number may be a fraction."""

_STEP_SECONDS: Final = (1e-5, 60.0)
"""Range of plausible step times; counters that yield others are ignored."""
_POINTS: Final = tuple(
    (sequences, prompts) for sequences in (2.0, 16.0, 64.0) for prompts in (0.0, 64.0, 512.0)
)
"""(sequences, prompt tokens) of the steps that represent known parameters as samples."""

_SCALE_STEPS: Final = 1e2
_SCALE_G: Final = 1e3
_SCALE_P: Final = 1e4
"""Units of steps, decoded and prompt tokens per second, so that the equations are well conditioned."""

Vector = tuple[float, float, float]
Symmetric = tuple[float, float, float, float, float, float]
"""A symmetric matrix of order 3: its upper triangle by rows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntervalSample:
    """One interval of one engine. Rates are per second."""

    tau_seconds: float
    decoded: float
    prompted: float
    weight: float = 1.0

    @property
    def sequences(self) -> float:
        """Mean concurrently decoding sequences."""
        return self.decoded * self.tau_seconds


def sample_of(
    interval: EngineInterval, *, lengths: Lengths | None = None, engines: int = 1
) -> IntervalSample | None:
    """Return the sample of an interval, or None if it contains no step times.

    The prompt tokens are those of the requests whose prefill ended in the interval, times the share that is
    computed and not found in a cache, by `lengths`. Engines count the latter only when a request finishes,
    and then it would seem that steps slow down long before prompts arrive. SGLang counts all prompt tokens
    so; there, first tokens times the mean length stand for them.

    With several engines in the interval, it is that of one of them, as if all had the same load. An engine
    with few sequences idles between requests. With Poisson arrivals it is busy for `1 - exp(-n)` of the time,
    with n the mean number of requests in it; the rates of a sample refer to its busy time, which is also its
    weight. Without counted steps, prompt tokens refer to the whole time: a token waits for the prompts that
    arrive while its request decodes, and those arrive at all times alike.
    """
    if interval.seconds <= 0 or interval.inter_tokens < _LEAST_TOKENS:
        return None
    tau = interval.inter_token_seconds / interval.inter_tokens
    least, most = _STEP_SECONDS
    if not least < tau < most:
        return None
    engine_seconds = interval.seconds * engines
    busy_seconds = _busy_seconds(interval, engine_seconds)
    prompt_seconds = engine_seconds
    if _are_steps_counted(interval, busy_seconds=busy_seconds, engine_seconds=engine_seconds):
        tau = busy_seconds / interval.steps
        prompt_seconds = busy_seconds
    prompted = interval.prompt_tokens
    if lengths is not None:
        if interval.begun != interval.first_tokens:
            prompted = interval.first_tokens * lengths.prompt
        prompted *= lengths.computed / lengths.prompt
    return IntervalSample(
        tau_seconds=tau,
        decoded=interval.inter_tokens / busy_seconds,
        prompted=prompted / prompt_seconds,
        weight=busy_seconds / engine_seconds,
    )


def _are_steps_counted(interval: EngineInterval, *, busy_seconds: float, engine_seconds: float) -> bool:
    """Return whether the counted steps yield as many tokens as the sequences in a step can.

    They yield fewer if several API servers of one engine (vLLM's `--api-server-count`) count each of them,
    and more with speculative decoding.
    """
    if not interval.steps:
        return False
    tokens = (interval.inter_tokens + interval.first_tokens) / interval.steps
    least = max(1.0, interval.inter_token_seconds / busy_seconds)
    most = 1 + interval.inter_token_seconds / engine_seconds  # with Poisson arrivals, as a token sees them
    return least / _MOST_SPREAD < tokens < most * _MOST_SPREAD


def _busy_seconds(interval: EngineInterval, engine_seconds: float) -> float:
    """Return how long engines computed, in seconds of all of them, as `engine_seconds` are."""
    decoding = interval.inter_token_seconds / engine_seconds
    if decoding > _BUSY_SEQUENCES:
        return engine_seconds
    # Requests whose prompts are computed keep the engine busy, too; those that wait for them do as well.
    present = decoding + interval.first_token_seconds / engine_seconds
    return engine_seconds * -math.expm1(-present)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTimes:
    """Normal equations of the observations: the symmetric matrix by rows, and the right-hand side."""

    xx: Symmetric = (0.0,) * 6
    xy: Vector = (0.0,) * 3
    samples: float = 0.0
    """Total weight of the samples."""

    outliers: int = 0
    """Number of outliers in a row, most recently."""

    def discount(self) -> StepTimes:
        """Return the equations with earlier samples discounted by one cycle."""
        return StepTimes(
            xx=tuple([item * FORGETTING for item in self.xx]),  # type: ignore[arg-type] # of the same length
            xy=tuple([item * FORGETTING for item in self.xy]),  # type: ignore[arg-type]
            samples=self.samples * FORGETTING,
            outliers=self.outliers,
        )

    def add(self, sample: IntervalSample) -> StepTimes:
        """Return the equations with one more sample, which resets the count of outliers."""
        # The dependent variable is 1, so the right-hand side consists of the sums of the regressors.
        g, p = sample.decoded / _SCALE_G, sample.prompted / _SCALE_P
        w, y = sample.weight, 1.0 / sample.tau_seconds / _SCALE_STEPS
        xx, xy = self.xx, self.xy
        return StepTimes(
            xx=(
                xx[0] + w * y * y,
                xx[1] + w * y * g,
                xx[2] + w * y * p,
                xx[3] + w * g * g,
                xx[4] + w * g * p,
                xx[5] + w * p * p,
            ),
            xy=(xy[0] + w * y, xy[1] + w * g, xy[2] + w * p),
            samples=self.samples + sample.weight,
        )


NO_TIMES: Final = StepTimes()
"""Equations without observations."""


def learn(times: StepTimes, samples: list[IntervalSample], *, expected: StepParameters | None) -> StepTimes:
    """Return the equations after a cycle; outliers are held back until there are many in a row."""
    if not samples:
        return times
    times = times.discount()
    for sample in samples:
        if _is_outlier(sample, times, expected):
            times = replace(times, outliers=times.outliers + 1)
        else:
            times = times.add(sample)
    return times


def _is_outlier(sample: IntervalSample, times: StepTimes, expected: StepParameters | None) -> bool:
    if expected is None or times.samples < ENOUGH_SAMPLES or times.outliers >= _MOST_OUTLIERS:
        return False
    ratio = sample.tau_seconds / predicted_seconds(expected, sample)
    return not 1 / _OUTLIER < ratio < _OUTLIER


def predicted_seconds(parameters: StepParameters, sample: IntervalSample) -> float:
    """Return the predicted time between two tokens for the batch and prompts of a sample, in seconds."""
    return _step_seconds(parameters, sample.sequences, sample.prompted * sample.tau_seconds)


def _step_seconds(parameters: StepParameters, sequences: float, prompt_tokens: float) -> float:
    return (parameters.alpha_ms + parameters.beta_ms * sequences + parameters.delta_ms * prompt_tokens) / 1e3


@dataclass(frozen=True, kw_only=True, slots=True)
class Prior:
    """Prior knowledge about step times."""

    parameters: StepParameters | None = None
    """None if only the ratios to alpha, those of common engines, are known."""

    weight: float = 0.0
    """Number of samples that the parameters count for."""

    @property
    def beta_ratio(self) -> float:
        """Beta / alpha."""
        parameters = self.parameters
        return parameters.beta_ms / parameters.alpha_ms if parameters else _BETA_RATIO

    @property
    def delta_ratio(self) -> float:
        """Delta / alpha."""
        parameters = self.parameters
        return parameters.delta_ms / parameters.alpha_ms if parameters else _DELTA_RATIO

    @property
    def times(self) -> StepTimes:
        """The equations of samples that obey the parameters."""
        equations = StepTimes()
        if self.parameters is None:
            return equations
        for sequences, prompts in _POINTS:
            tau = _step_seconds(self.parameters, sequences, prompts)
            share = self.weight / len(_POINTS)
            equations = equations.add(
                IntervalSample(tau_seconds=tau, decoded=sequences / tau, prompted=prompts / tau, weight=share)
            )
        return equations


TYPICAL: Final = Prior()
"""The prior of a common engine of unknown speed."""


def fit(times: StepTimes, prior: Prior = TYPICAL) -> StepParameters | None:
    """Return the parameters that fit best, or None if nothing is known.

    `alpha - beta / ratio` and `alpha - delta / ratio` are regularized towards 0, with the prior's ratios of
    beta and delta to alpha, as far as samples do not determine them. A coefficient that would be negative is
    0, and the others are fitted again.
    """
    xx, xy = times.xx, times.xy
    if prior.parameters is not None:
        if not times.samples:
            return prior.parameters
        sums = prior.times
        xx = tuple(a + b for a, b in zip(xx, sums.xx, strict=True))  # type: ignore[assignment]
        xy = tuple(a + b for a, b in zip(xy, sums.xy, strict=True))  # type: ignore[assignment]
    if xx[0] <= 0:
        return None
    weight = _RATIO_WEIGHT * xx[0] / (times.samples + prior.weight)
    ratios = prior.beta_ratio * _SCALE_G / _SCALE_STEPS, prior.delta_ratio * _SCALE_P / _SCALE_STEPS
    beta, delta = [1 / ratio if ratio else 0.0 for ratio in ratios]  # a profile may lack a coefficient
    matrix = (
        xx[0] * (1 + _RIDGE) + weight * ((beta > 0) + (delta > 0)),
        xx[1] - weight * beta,
        xx[2] - weight * delta,
        xx[3] * (1 + _RIDGE) + weight * beta**2,
        xx[4],
        xx[5] * (1 + _RIDGE) + weight * delta**2,
    )
    point = _not_negative(matrix, xy)
    if point is None or point[0] <= 0:  # full batches only, which do not show the time of an idle step
        point = _with_ratios(xx, xy, *ratios)
    return _parameters(point)


def _with_ratios(xx: Symmetric, xy: Vector, beta: float, delta: float) -> Vector:
    """Return the solution with given ratios of the second and third coefficient to the first."""
    square = xx[0] + xx[3] * beta**2 + xx[5] * delta**2
    product = xx[1] * beta + xx[2] * delta + xx[4] * beta * delta
    alpha = (xy[0] + xy[1] * beta + xy[2] * delta) / (square + 2 * product)
    return alpha, alpha * beta, alpha * delta


def _not_negative(matrix: Symmetric, right: Vector) -> Vector | None:
    """Return the solution in which negative coefficients are 0, by an active-set method; None if singular."""
    free = _solve(matrix, right)
    if free is not None and free[1] < 0:
        matrix, right = _without_beta(matrix, right)
        free = _solve(matrix, right)
    if free is not None and free[2] < 0:
        matrix, right = _without_delta(matrix, right)
        free = _solve(matrix, right)
        if free is not None and free[1] < 0:
            free = _solve(*_without_beta(matrix, right))
    return free


def _without_beta(matrix: Symmetric, right: Vector) -> tuple[Symmetric, Vector]:
    """Return the equations with beta fixed at 0."""
    return (matrix[0], 0.0, matrix[2], 1.0, 0.0, matrix[5]), (right[0], 0.0, right[2])


def _without_delta(matrix: Symmetric, right: Vector) -> tuple[Symmetric, Vector]:
    """Return the equations with delta fixed at 0."""
    return (matrix[0], matrix[1], 0.0, matrix[3], 0.0, 1.0), (right[0], right[1], 0.0)


def _solve(matrix: Symmetric, right: Vector) -> Vector | None:
    """Return the solution of three equations with a positive definite matrix; None if it is singular.

    Elimination without pivoting, which is stable for such a matrix (Golub and Van Loan, LDL^T).
    """
    a, b, c, d, e, f = matrix
    under, below = b / a, c / a
    d, e, f = d - under * b, e - under * c, f - below * c
    if d <= 0:
        return None
    last = e / d
    f -= last * e
    if f <= 0:
        return None
    y = right[1] - under * right[0]
    z = (right[2] - below * right[0] - last * y) / f
    y = (y - e * z) / d
    return (right[0] - b * y - c * z) / a, y, z


def _parameters(point: Vector) -> StepParameters | None:
    alpha, beta, delta = point[0] / _SCALE_STEPS, point[1] / _SCALE_G, point[2] / _SCALE_P
    if alpha >= _STEP_SECONDS[1]:
        return None
    return StepParameters(alpha_ms=alpha * 1e3, beta_ms=beta * 1e3, delta_ms=delta * 1e3)


_SMOOTHING: Final = 0.05
"""Weight of a new interval in the moving average: about five minutes at the default interval."""

_LEAST_ALPHA: Final = 0.01
"""Share of the time of a request with one result that does not depend on the prompt. It is low: only then is
the time spent anew for each of several requests in an engine.
"""


def result_time(
    parameters: StepParameters | None,
    seen: Sequence[tuple[EngineReport, EngineInterval]],
    *,
    lengths: Lengths | None,
) -> StepParameters | None:
    """Return the time of requests with one result, such as embeddings; None if requests have more.

    They have no times between tokens. Their time to first token is that of the whole request, and an engine
    is taken for an M/M/1 queue: with service time s and N requests in the engine, a request takes
    `T = s + s N`, and by Little's law `N = rate T`. So the engine serves `1 / s = rate + 1 / T` requests per
    second at most: what it was seen to serve, and what one more request at a time would add. An engine that
    computes many prompts at once serves more, which shows as its load grows. Engines of one replica count as
    if all had the same load. `parameters` are those of the last cycle.
    """
    if lengths is None or lengths.output > 1:
        return None
    for report, interval in seen:
        if interval.inter_tokens or interval.first_tokens < 1 or interval.first_token_seconds <= 0:
            continue
        mean_seconds = interval.first_token_seconds / interval.first_tokens
        present = interval.first_token_seconds / (interval.seconds * report.engines)
        seconds = mean_seconds / (1 + present)
        alpha = _LEAST_ALPHA * seconds * 1e3
        delta = (seconds - _LEAST_ALPHA * seconds) * 1e3 / lengths.computed
        if parameters is not None:
            alpha = parameters.alpha_ms + _SMOOTHING * (alpha - parameters.alpha_ms)
            delta = parameters.delta_ms + _SMOOTHING * (delta - parameters.delta_ms)
        parameters = StepParameters(alpha_ms=alpha, beta_ms=0.0, delta_ms=delta)
    return parameters
