"""Draws requests like those of the past: their number is known, and the distribution of their lengths.

Prompts and answers are drawn separately: histograms do not show which belong together.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from controller.simulation.workload import TraceEntry
from controller.sizing.lengths import Lengths

_SCALES: Final = (0.5, 2.0)
"""Range of the correction of lengths to their measured mean: buckets are wide."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthCounts:
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
        prompts: Sequence[LengthCounts],
        answers: Sequence[LengthCounts],
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
    def of(cls, lengths: Sequence[LengthCounts], mean: float | None) -> _Sampler:
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
