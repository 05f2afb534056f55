"""Request lengths of a model: means, and the variability of prompts.

Means are tokens divided by requests, over the counts of the last minutes. Capacity needs three of them:
prompts, computed prompts and outputs. The wait behind other prompts (M/G/1) depends on the second moment of
their lengths, which follows from the histogram that engines report. The same histogram shows how many prompts
are too long for a target.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from controller.planning.load import MOST_TOKENS
from controller.sizing.records import NO_HISTOGRAM, Histogram, LengthCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class Lengths:
    """Lengths of a model's requests, in tokens."""

    prompt: float
    computed: float
    """Computed prompt tokens: those not found in the prefix cache."""

    output: float
    inequality: float = 1.0
    """E[prompt^2] / E[prompt]^2, at least 1: the factor on the mean wait behind prompts of other lengths."""

    prompts: Histogram = NO_HISTOGRAM
    """Finished requests by prompt length."""


def total(counts: Iterable[LengthCounts]) -> LengthCounts:
    """Return the sum of some counts."""
    every = list(counts)
    return LengthCounts(
        begun=sum([item.begun for item in every]),
        prompt_tokens=sum([item.prompt_tokens for item in every]),
        examined_prompt_tokens=sum([item.examined_prompt_tokens for item in every]),
        computed_prompt_tokens=sum([item.computed_prompt_tokens for item in every]),
        generation_tokens=sum([item.generation_tokens for item in every]),
        finished=sum([item.finished for item in every]),
        ended=sum([item.ended for item in every]),
        prompt_lengths=add_histograms([item.prompt_lengths for item in every]),
    )


def lengths_of(counts: LengthCounts, before: Lengths | None) -> Lengths | None:
    """Return the lengths that follow from counts, with former values where nothing was counted.

    Returns None as long as no request has begun, or none has ended.
    """
    prompt = _mean(counts.prompt_tokens, counts.begun) or (before.prompt if before else None)
    # Without aborted requests, `ended` is at most `finished`: it lacks those with a prompt in progress.
    ended = max(counts.finished, counts.ended)
    output = _mean(counts.generation_tokens, ended) or (before.output if before else None)
    if prompt is None or output is None:
        return None
    if counts.examined_prompt_tokens >= 1:
        share = counts.computed_prompt_tokens / counts.examined_prompt_tokens
    else:
        share = before.computed / before.prompt if before else 1.0
    inequality = _inequality(counts.prompt_lengths)
    if inequality is None:
        inequality = before.inequality if before else 1.0
    return Lengths(
        prompt=prompt,
        computed=max(1.0, share * prompt),
        output=max(1.0, output),
        inequality=inequality,
        prompts=counts.prompt_lengths,
    )


def add_histograms(histograms: list[Histogram]) -> Histogram:
    """Return the sum of the histograms that have the same bounds as the last one; others are dropped."""
    known = [item for item in histograms if item[0]]
    if not known:
        return NO_HISTOGRAM
    bounds = known[-1][0]
    alike = [counts for others, counts in known if others == bounds]
    return bounds, tuple(map(sum, zip(*alike, strict=True)))


def _mean(tokens: float, requests: float) -> float | None:
    """Return the mean over at least one request, capped at MOST_TOKENS, or None."""
    return min(MOST_TOKENS, tokens / requests) if requests >= 1 and tokens > 0 else None


def _inequality(histogram: Histogram) -> float | None:
    """Return E[x^2] / E[x]^2 of a histogram, with requests spread evenly within buckets, or None."""
    requests = first = second = below = counted = 0.0
    for bound, cumulative in zip(*histogram, strict=True):
        inside = max(0.0, cumulative - counted)
        counted = max(counted, cumulative)
        # The last bucket has no upper bound: it is taken to end at twice its lower one.
        high = below * 2 if math.isinf(bound) else bound
        if inside and high > 0:
            requests += inside
            first += inside * (below + high) / 2
            # E[x^2] of a uniform distribution over the bucket.
            second += inside * (below * below + below * high + high * high) / 3
        below = high
    return max(1.0, second * requests / (first * first)) if first else None
