"""The requests of a model in classes: those that arrive in one step, with about the same lengths."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controller.simulation.request import Request

_OUTPUT_SHARES = (0.5, 0.8, 0.95, 0.99)
_PROMPT_SHARES = (0.5, 0.8, 0.95)


@dataclass(kw_only=True, slots=True)
class LoadClass:
    """Requests of one step and similar lengths; `lag` groups those with similar output lengths.

    `needed` is the sum over its requests of the least share, over all variants, that a request has of the
    class's work on a variant, and `most` the maximum of a request. If all work on a variant counts as 1, the
    requests that are served need at least `needed` less `most` for each one that is dropped.
    """

    step: int
    lag: int
    requests: int
    work_seconds: Mapping[str, float]
    """Work of all requests that a variant can serve in time, by variant."""

    needed: float
    most: float


@dataclass(kw_only=True, slots=True)
class Load:
    """All classes, the longest output of each lag group, and the requests that no variant serves in time."""

    classes: list[LoadClass] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    requests: int = 0
    hopeless: int = 0


def load_of(
    requests: Sequence[Request],
    work_seconds: Mapping[str, Callable[[Request], float]],
    *,
    since_us: int,
    step_seconds: float,
) -> Load:
    """Return the classes of the requests that arrive from `since_us` on; work is given by variant."""
    scored = [request for request in requests if request.arrival_us >= since_us]
    outputs = _bounds([request.output_tokens for request in scored], _OUTPUT_SHARES)
    prompts = _bounds([request.prompt_tokens for request in scored], _PROMPT_SHARES)
    found: dict[tuple[int, int, int], list[dict[str, float]]] = {}
    hopeless = 0
    for request in scored:
        works = {name: work(request) for name, work in work_seconds.items()}
        works = {name: work for name, work in works.items() if work < math.inf}
        hopeless += not works
        if works:
            step = int((request.arrival_us - since_us) / 1e6 / step_seconds)
            lag = bisect_left(outputs, request.output_tokens)
            found.setdefault((step, lag, bisect_left(prompts, request.prompt_tokens)), []).append(works)
    return Load(
        classes=[_class(step, lag, works) for (step, lag, _), works in sorted(found.items())],
        outputs=outputs,
        requests=len(scored),
        hopeless=hopeless,
    )


def _bounds(lengths: Sequence[int], shares: Sequence[float]) -> list[int]:
    """Return the lengths at these shares of the requests, and the longest."""
    ordered = sorted(lengths)
    return [ordered[int(share * (len(ordered) - 1))] for share in (*shares, 1.0)] if ordered else []


def _class(step: int, lag: int, works: Sequence[Mapping[str, float]]) -> LoadClass:
    totals: dict[str, float] = {}
    for item in works:
        for name, work in item.items():
            totals[name] = totals.get(name, 0.0) + work
    least = [min(work / totals[name] for name, work in item.items()) for item in works]
    return LoadClass(
        step=step,
        lag=lag,
        requests=len(works),
        work_seconds=totals,
        needed=sum(least),
        most=max(least),
    )
