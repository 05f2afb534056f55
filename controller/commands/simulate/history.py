"""The past of an exported cluster in Prometheus: the load of each model, and what its engines showed.

Requests are not recorded there. Their number in each minute is that of the requests that got a first token;
their times within it, and their lengths, are drawn: lengths from the engines' histograms, prompt and answer
separately, so that their means are those that were measured.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Final

from controller.commands.profile.profile import measure_pods
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.fitting import EngineMeasurement, selector
from controller.engines.prometheus_history import Course, PrometheusHistory
from controller.engines.requests import CredentialsConfig
from controller.observe.claim import Claim
from controller.simulation.workload import TraceEntry, TraceReplay, Workload
from controller.sizing.lengths import Lengths

_STEP_SECONDS: Final = 60.0
_LONG_STEP_SECONDS: Final = 300.0
_MOST_FINE_SECONDS: Final = 7 * 86_400.0
_WINDOWS_SECONDS: Final = (120.0, 600.0)
"""Time over which a rate is measured; the second one is for engines that are rarely scraped."""

_HOUR_SECONDS: Final = 3600.0
_TOTAL_SECONDS: Final = 300.0
_MOST_REQUESTS: Final = 3_000_000
_MOST_MISSING: Final = 0.01
_SCALES: Final = (0.5, 2.0)
"""Range of the correction of lengths to their measured mean: buckets are wide."""

_ARRIVED: Final = ("vllm:time_to_first_token_seconds_count", "sglang:time_to_first_token_seconds_count")
_PROMPTS: Final = ("vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram")
_ANSWERS: Final = ("vllm:request_generation_tokens", "sglang:generation_tokens_histogram")


@dataclass(frozen=True, kw_only=True, slots=True)
class PastVariant:
    """The pods of a Deployment, of all times."""

    name: str
    model_id: str
    namespace: str
    pods: str
    """Regular expression for the names of its pods."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Past:
    """What was read; with problems, it is incomplete."""

    workloads: Mapping[str, Workload] = field(default_factory=dict)
    """Requests by model."""

    measured: Mapping[str, EngineMeasurement] = field(default_factory=dict)
    """What the engines of each variant showed."""

    seconds: float = 0.0
    """The time that the requests cover."""

    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def past_variant(claim: Claim) -> PastVariant:
    """Return the pods of a variant whose target is a Deployment."""
    return PastVariant(
        name=claim.name,
        model_id=claim.model_id,
        namespace=claim.target.namespace,
        pods=f"{re.sub(r'[.]', r'[.]', claim.target.name)}-[a-z0-9]{{1,10}}-[a-z0-9]{{5}}",
    )


def read_past(
    url: str,
    variants: Sequence[PastVariant],
    *,
    credentials: CredentialsConfig,
    end_seconds: float,
    last_seconds: float,
) -> Past:
    """Return the past of some variants; whatever goes wrong is among its problems."""

    async def read() -> Past:
        async with (
            asyncio.timeout(_TOTAL_SECONDS),
            PrometheusHistory(url, credentials=credentials) as history,
        ):
            span = _Span(begin_seconds=end_seconds - last_seconds, end_seconds=end_seconds)
            seen = await asyncio.gather(*(_read_variant(history, item, span) for item in variants))
            return _past(variants, seen, span)

    try:
        return asyncio.run(read())
    except TimeoutError:
        text = f"Prometheus: the answers took more than {_TOTAL_SECONDS:.0f} s: use a shorter --last"
    except UnreadableMetricsError as error:
        text = str(error)
    return Past(problems=(text,))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Span:
    begin_seconds: float
    end_seconds: float

    @property
    def step_seconds(self) -> float:
        is_long = self.end_seconds - self.begin_seconds > _MOST_FINE_SECONDS
        return _LONG_STEP_SECONDS if is_long else _STEP_SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class _VariantPast:
    """What was read about one variant."""

    rates: Mapping[int, float]
    """Requests per second by the number of the step."""

    prompts: LengthBuckets
    answers: LengthBuckets
    known: EngineMeasurement


async def _read_variant(history: PrometheusHistory, variant: PastVariant, span: _Span) -> _VariantPast:
    """Read one variant. Raises UnreadableMetricsError."""
    rates = await _rates(history, variant, span)
    return _VariantPast(
        rates=rates,
        prompts=await _lengths(history, variant, span, _PROMPTS),
        answers=await _lengths(history, variant, span, _ANSWERS),
        known=await measure_pods(
            history,
            namespace=variant.namespace,
            pods=variant.pods,
            end_seconds=span.end_seconds,
            last_seconds=span.end_seconds - span.begin_seconds,
        )
        if rates
        else EngineMeasurement(),
    )


async def _rates(history: PrometheusHistory, variant: PastVariant, span: _Span) -> Mapping[int, float]:
    step, counted = span.step_seconds, selector(_ARRIVED, namespace=variant.namespace, pods=variant.pods)
    for window in _WINDOWS_SECONDS:
        courses = await history.evaluate_range(
            f"sum(rate({counted}[{max(window, step):.0f}s]))",
            begin_seconds=span.begin_seconds + step,
            end_seconds=span.end_seconds,
            step_seconds=step,
        )
        rates = {
            round((seconds - span.begin_seconds) / step) - 1: max(0.0, rate)
            for course in courses
            for seconds, rate in course.points
        }
        if rates:
            return rates
    return {}


async def _lengths(
    history: PrometheusHistory, variant: PastVariant, span: _Span, names: Sequence[str]
) -> LengthBuckets:
    windows, seconds = _windows(span)

    async def growth(suffix: str, by: str) -> Sequence[Course]:
        series = selector(
            [f"{name}_{suffix}" for name in names], namespace=variant.namespace, pods=variant.pods
        )
        return await history.evaluate_range(
            f"sum {by} (increase({series}[{seconds}s]))",
            begin_seconds=span.end_seconds - seconds * (windows - 1),
            end_seconds=span.end_seconds,
            step_seconds=seconds,
        )

    cumulative: dict[float, float] = defaultdict(float)
    for course in await growth("bucket", "by (le)"):
        try:
            bound = float(course.labels.get("le", ""))
        except ValueError:
            continue
        cumulative[bound] += math.fsum(value for _, value in course.points)
    bounds = sorted(cumulative)
    before = dict(zip(bounds, [0.0, *(cumulative[bound] for bound in bounds)], strict=False))
    tokens = math.fsum(value for course in await growth("sum", "") for _, value in course.points)
    return LengthBuckets(
        buckets={bound: max(0.0, cumulative[bound] - before[bound]) for bound in bounds}, tokens=tokens
    )


def _windows(span: _Span) -> tuple[int, int]:
    """Return into how many equal windows of at most an hour a time is divided, and their whole seconds."""
    whole = span.end_seconds - span.begin_seconds
    windows = math.ceil(whole / _HOUR_SECONDS)
    return windows, math.ceil(whole / windows)


def _past(variants: Sequence[PastVariant], seen: Sequence[_VariantPast], span: _Span) -> Past:
    models: dict[str, list[_VariantPast]] = defaultdict(list)
    for variant, item in zip(variants, seen, strict=True):
        models[variant.model_id].append(item)
    steps = {number for item in seen for number in item.rates}
    problems: list[str] = []
    workloads: dict[str, Workload] = {}
    if not steps:
        names = ", ".join(f"{item.namespace}/{item.name}" for item in variants)
        text = (
            f"Prometheus has no series of vLLM or SGLang of the pods of {names} in the last"
            f" {_hours(span.end_seconds - span.begin_seconds)}: series must have the labels namespace and pod"
        )
        return Past(problems=(text,))
    first, last, step = min(steps), max(steps), span.step_seconds
    warnings = [*_gaps(steps, first, last, span)]
    for model_id, own in models.items():
        rates = [math.fsum(item.rates.get(number, 0.0) for item in own) for number in range(first, last + 1)]
        requests = math.fsum(rates) * step
        if requests > _MOST_REQUESTS:
            problems.append(
                f"model {model_id}: {requests / 1e6:.1f} million requests, of at most"
                f" {_MOST_REQUESTS / 1e6:.0f} million: use a shorter --last"
            )
            continue
        if requests < 1:
            problems.append(f"model {model_id}: its engines had no request in that time: use a longer --last")
            continue
        drawn = RequestSampler.of(
            model_id,
            prompts=[item.prompts for item in own],
            answers=[item.answers for item in own],
            means=next((item.known.lengths for item in own if item.known.lengths), None),
        )
        problems += drawn.problems
        warnings += drawn.warnings
        if not drawn.problems:
            workloads[model_id] = TraceReplay(trace=tuple(drawn.requests(rates, step)))
    for variant, item in zip(variants, seen, strict=True):
        warnings += [f"{variant.name}: {text}" for text in item.known.doubts if item.rates]
    return Past(
        workloads=workloads,
        measured={variant.name: item.known for variant, item in zip(variants, seen, strict=True)},
        seconds=(last - first + 1) * step,
        warnings=tuple(warnings),
        problems=tuple(problems),
    )


def _gaps(steps: set[int], first: int, last: int, span: _Span) -> Iterator[str]:
    """Yield what is missing: time before the first sample, and between samples."""
    span_seconds = span.end_seconds - span.begin_seconds
    covered = (last - first + 1) * span.step_seconds
    if span_seconds - covered > max(2 * span.step_seconds, _MOST_MISSING * span_seconds):
        yield (
            f"Prometheus has samples of {_hours(covered)} of the last {_hours(span_seconds)}: only that time"
            " is simulated"
        )
    missing = last - first + 1 - len(steps)
    if missing > _MOST_MISSING * (last - first + 1):
        yield (
            f"Prometheus has no samples for {_hours(missing * span.step_seconds)} in between: no requests are"
            " simulated there"
        )


def _hours(seconds: float) -> str:
    """Return a time as hours, or minutes if it is shorter."""
    return f"{seconds / 3600:.3g} h" if seconds >= _HOUR_SECONDS else f"{seconds / 60:.3g} min"


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthBuckets:
    """Requests by length: upper bounds, requests in each bucket, and their tokens in total."""

    buckets: Mapping[float, float]
    tokens: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestSampler:
    """The distribution of the requests of one model."""

    model_id: str
    prompts: _Sampler
    answers: _Sampler
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        model_id: str,
        *,
        prompts: Sequence[LengthBuckets],
        answers: Sequence[LengthBuckets],
        means: Lengths | None,
    ) -> RequestSampler:
        """Return it for the histograms of a model's variants; the means are for engines without any."""
        samplers = {
            "prompts": _Sampler.of(prompts, means.prompt if means else None),
            "answers": _Sampler.of(answers, means.output if means else None),
        }
        problems, warnings = [], []
        for what, sampler in samplers.items():
            if not sampler.cumulative:
                problems.append(f"model {model_id}: the lengths of its {what} are unknown: use --trace")
            elif sampler.is_constant:
                warnings.append(
                    f"model {model_id}: its engines have no histogram of the lengths of {what}: all have"
                    f" {sampler.bounds[0][1]:.0f} tokens, the mean"
                )
        return cls(
            model_id=model_id,
            prompts=samplers["prompts"],
            answers=samplers["answers"],
            problems=tuple(problems),
            warnings=tuple(warnings),
        )

    def requests(self, rates: Sequence[float], step_seconds: float) -> Iterator[TraceEntry]:
        """Yield requests in order; the same rates give the same requests."""
        chance = random.Random(self.model_id)  # noqa: S311 (not used for security)
        totals = [round(total * step_seconds) for total in accumulate(rates, initial=0.0)]
        for number, (before, now) in enumerate(pairwise(totals)):
            for share in sorted(chance.random() for _ in range(now - before)):
                yield TraceEntry(
                    offset_ms=round((number + share) * step_seconds * 1000),
                    prompt_tokens=self.prompts.draw(chance),
                    output_tokens=self.answers.draw(chance),
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sampler:
    """Draws lengths from buckets, evenly within each, times a factor."""

    bounds: tuple[tuple[float, float], ...] = ()
    cumulative: tuple[float, ...] = ()
    scale: float = 1.0
    is_constant: bool = False

    @classmethod
    def of(cls, lengths: Sequence[LengthBuckets], mean: float | None) -> _Sampler:
        """Return it for some histograms with equal bounds; without any, all have the mean length."""
        buckets: dict[float, float] = defaultdict(float)
        for item in lengths:
            for bound, count in item.buckets.items():
                buckets[bound] += count
        counts = sorted(buckets.items())
        total = math.fsum(buckets.values())
        if total < 1:
            if mean is None:
                return cls()
            return cls(bounds=((mean, mean),), cumulative=(1.0,), is_constant=True)
        lows = [0.0, *(bound for bound, _ in counts[:-1])]
        bounds = [
            (low, 2 * low if math.isinf(high) else high) for low, (high, _) in zip(lows, counts, strict=True)
        ]
        middles = [(low + high) / 2 for low, high in bounds]
        middle = math.fsum(length * count for length, (_, count) in zip(middles, counts, strict=True))
        tokens = math.fsum(item.tokens for item in lengths)
        return cls(
            bounds=tuple(bounds),
            cumulative=tuple(accumulate(count for _, count in counts)),
            scale=min(_SCALES[1], max(_SCALES[0], tokens / middle)) if tokens and middle else 1.0,
        )

    def draw(self, chance: random.Random) -> int:
        """Return a length in tokens."""
        ((low, high),) = chance.choices(self.bounds, cum_weights=self.cumulative)
        return max(1, round(chance.uniform(low, high) * self.scale))
