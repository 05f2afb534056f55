"""Learn the step times of a variant's engines from their counters.

The time of a busy engine is spent on steps, on the tokens they decode and on the prompts they compute: `1 =
alpha / tau + beta * G + delta * P`, with tau the time between two tokens, and G and P the decoded and the
prompt tokens per second. Divided by alpha this is linear in observable values: `1 / tau = 1 / alpha - (beta /
alpha) * G - (delta / alpha) * P`. It is fitted by weighted least squares with forgetting; a saturated engine
obeys the same line. Prior knowledge (a declared profile, the status, a sibling) counts as a few samples, so
that the first real ones correct it and many replace it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from controller.sizing.records import EngineInterval, StepParameters

FORGETTING: Final = 0.998
"""Factor per cycle on the weight of all earlier samples; it is halved after 350 cycles with samples."""

ENOUGH_SAMPLES: Final = 8.0
"""Weight from which learned parameters take precedence over declared ones."""

_RIDGE: Final = 1e-4
"""Share of the diagonal that is added to it, so that constant loads still yield a solution."""

_BUSY_SEQUENCES: Final = 3.0
"""Mean sequences above which an engine is assumed to compute all the time."""

_IDLE_WEIGHT: Final = 0.25
"""Weight of a sample of an engine that was idle at times, because the idle time is an estimate."""

_RATIO_WEIGHT: Final = 0.02
_BETA_RATIO: Final = 0.008
_DELTA_RATIO: Final = 0.005
"""beta / alpha and delta / alpha of common engines, used until the load has varied. Their weight is that of
about ten samples at a tenth of an engine's capacity.
"""

_CHANCE: Final = 4.0
"""Factor on the variance of the loads of samples by the number of requests alone, because lengths vary as
well.
"""

_OUTLIER: Final = 4.0
_MOST_OUTLIERS: Final = 8
"""This many outliers in a row, off by more than that factor, are accepted as a change. The factor is large,
because excluding the slow intervals of a bursty load would flatten the line.
"""

_LEAST_TOKENS: Final = 1e-3
"""The minimum number of tokens of a sample. Prometheus extrapolates, so a number may be a fraction."""

_STEP_SECONDS: Final = (1e-5, 60.0)
_POINTS: Final = tuple(
    (sequences, prompts) for sequences in (2.0, 16.0, 64.0) for prompts in (0.0, 64.0, 512.0)
)
"""(sequences, prompt tokens) of the steps that represent known parameters as samples."""

_SCALE_G: Final = 1e3
_SCALE_P: Final = 1e4

Vector = tuple[float, float, float]
Symmetric = tuple[float, float, float, float, float, float]
"""A symmetric matrix of order 3: its upper triangle by rows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One interval of one engine. Rates are per second."""

    tau_seconds: float
    decoded: float
    prompted: float
    weight: float = 1.0
    requests: float = math.inf
    """Number of requests from which the rates are counted: the fewer, the larger the share of chance."""

    @property
    def sequences(self) -> float:
        """Mean concurrently decoding sequences."""
        return self.decoded * self.tau_seconds


def sample_of(interval: EngineInterval, *, engines: int = 1) -> Sample | None:
    """Return the sample of an interval, or None if it contains no step times.

    With several engines in the interval, it is that of one of them, as if all had the same load. An engine
    with few sequences idles between requests. With Poisson arrivals it is busy for `1 - exp(-n)` of the time,
    with n the mean number of sequences; the rates of a sample refer to its busy time.
    """
    if interval.seconds <= 0 or interval.inter_tokens < _LEAST_TOKENS:
        return None
    tau = interval.inter_token_seconds / interval.inter_tokens
    least, most = _STEP_SECONDS
    if not least < tau < most:
        return None
    sequences = interval.inter_tokens / interval.seconds * tau / engines
    is_busy = sequences > _BUSY_SEQUENCES
    busy_seconds = interval.seconds * engines * (1.0 if is_busy else -math.expm1(-sequences))
    return Sample(
        tau_seconds=tau,
        decoded=interval.inter_tokens / busy_seconds,
        prompted=interval.computed_prompt_tokens / busy_seconds,
        weight=1.0 if is_busy else _IDLE_WEIGHT,
        requests=max(1.0, interval.first_tokens),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTimes:
    """Normal equations of the observations: the symmetric matrix by rows, and the right-hand side."""

    xx: Symmetric = (0.0,) * 6
    xy: Vector = (0.0,) * 3
    noise: tuple[float, float] = (0.0, 0.0)
    """Share of the squares of decoded and of prompt tokens that is due to chance."""

    samples: float = 0.0
    """Total weight of the samples."""

    outliers: int = 0
    """Number of outliers in a row, most recently."""

    def forgotten(self) -> StepTimes:
        """Return the equations with earlier samples discounted by one cycle."""
        xx, xy = self.xx, self.xy
        return StepTimes(
            xx=(
                xx[0] * FORGETTING,
                xx[1] * FORGETTING,
                xx[2] * FORGETTING,
                xx[3] * FORGETTING,
                xx[4] * FORGETTING,
                xx[5] * FORGETTING,
            ),
            xy=(xy[0] * FORGETTING, xy[1] * FORGETTING, xy[2] * FORGETTING),
            noise=(self.noise[0] * FORGETTING, self.noise[1] * FORGETTING),
            samples=self.samples * FORGETTING,
            outliers=self.outliers,
        )

    def added(self, sample: Sample) -> StepTimes:
        """Return the equations with one more sample, which resets the count of outliers."""
        g, p = -sample.decoded / _SCALE_G, -sample.prompted / _SCALE_P
        w, y = sample.weight * sample.tau_seconds, 1.0 / sample.tau_seconds
        xx, xy = self.xx, self.xy
        return StepTimes(
            xx=(
                xx[0] + w,
                xx[1] + w * g,
                xx[2] + w * p,
                xx[3] + w * g * g,
                xx[4] + w * g * p,
                xx[5] + w * p * p,
            ),
            xy=(xy[0] + w * y, xy[1] + w * y * g, xy[2] + w * y * p),
            noise=(
                self.noise[0] + w * g * g / sample.requests,
                self.noise[1] + w * p * p / sample.requests,
            ),
            samples=self.samples + sample.weight,
        )


NO_TIMES: Final = StepTimes()
"""Equations without observations."""


def learned(times: StepTimes, samples: list[Sample], *, expected: StepParameters | None) -> StepTimes:
    """Return the equations after a cycle; outliers are held back until there are many in a row."""
    if not samples:
        return times
    times = times.forgotten()
    for sample in samples:
        if _is_outlier(sample, times, expected):
            times = replace(times, outliers=times.outliers + 1)
        else:
            times = times.added(sample)
    return times


def _is_outlier(sample: Sample, times: StepTimes, expected: StepParameters | None) -> bool:
    if expected is None or times.samples < ENOUGH_SAMPLES or times.outliers >= _MOST_OUTLIERS:
        return False
    ratio = sample.tau_seconds / predicted_seconds(expected, sample)
    return not 1 / _OUTLIER < ratio < _OUTLIER


def predicted_seconds(parameters: StepParameters, sample: Sample) -> float:
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
        known = self.parameters
        return known.beta_ms / known.alpha_ms if known else _BETA_RATIO

    @property
    def delta_ratio(self) -> float:
        """Delta / alpha."""
        known = self.parameters
        return known.delta_ms / known.alpha_ms if known else _DELTA_RATIO

    @property
    def times(self) -> StepTimes:
        """The equations of samples that obey the parameters."""
        found = StepTimes()
        if self.parameters is None:
            return found
        for sequences, prompts in _POINTS:
            tau = _step_seconds(self.parameters, sequences, prompts)
            share = self.weight / len(_POINTS)
            found = found.added(
                Sample(tau_seconds=tau, decoded=sequences / tau, prompted=prompts / tau, weight=share)
            )
        return found


TYPICAL: Final = Prior()
"""The prior of a common engine of unknown speed."""


def fitted(times: StepTimes, prior: Prior = TYPICAL) -> StepParameters | None:
    """Return the parameters that fit best, or None if nothing is known.

    The ratios of beta and delta to alpha are regularized towards those of the prior, as far as samples do not
    determine them, and as far as the loads of samples differ by chance only, which would flatten the line. If
    beta or delta would be negative, both keep their prior ratios: an engine with a full batch decodes fewer
    tokens the slower it steps, whatever the cause.
    """
    xx, xy, least = times.xx, times.xy, _RATIO_WEIGHT
    if prior.parameters is not None:
        known, least = prior.times, 0.0
        xx = tuple(a + b for a, b in zip(xx, known.xx, strict=True))  # type: ignore[assignment]
        xy = tuple(a + b for a, b in zip(xy, known.xy, strict=True))  # type: ignore[assignment]
    if xx[0] <= 0:
        return None
    ratios = (prior.beta_ratio * _SCALE_G, prior.delta_ratio * _SCALE_P)
    weights = [
        _RIDGE * square + _CHANCE * noise + (least / ratio**2 if least and ratio else 0.0)
        for square, noise, ratio in zip((xx[3], xx[5]), times.noise, ratios, strict=True)
    ]
    matrix = (xx[0], xx[1], xx[2], xx[3] + weights[0], xx[4], xx[5] + weights[1])
    right = (xy[0], xy[1] + weights[0] * ratios[0], xy[2] + weights[1] * ratios[1])
    free = _solved(matrix, right)
    if free is not None and free[0] > 0 and free[1] >= 0 and free[2] >= 0:
        return _parameters(free)
    inverse = (right[0] - xx[1] * ratios[0] - xx[2] * ratios[1]) / xx[0]
    return _parameters((inverse, *ratios)) if inverse > 0 else None


def _solved(matrix: Symmetric, right: Vector) -> Vector | None:
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
    inverse, g, p = point
    alpha = 1e3 / inverse
    found = StepParameters(alpha_ms=alpha, beta_ms=alpha * g / _SCALE_G, delta_ms=alpha * p / _SCALE_P)
    return found if alpha < _STEP_SECONDS[1] * 1e3 else None
