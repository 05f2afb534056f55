"""Counters of engines for tests."""

from __future__ import annotations

from controller.engines.exposition import EndpointLabels
from controller.engines.readings import EndpointReading, Totals


def counted(
    requests: float, *, prompt_tokens: float, generation_tokens: float | None = None, in_flight: float = 0
) -> Totals:
    """Return the counters of an engine that has finished some requests, by default with 10 tokens each.

    Requests in flight have their first token only.
    """
    generated = 10 * requests if generation_tokens is None else generation_tokens
    return Totals(
        first_tokens=requests + in_flight,
        prompt_tokens=prompt_tokens,
        generation_tokens=generated + in_flight,
        finished=requests,
        begun=requests + in_flight,
        ended=requests,
        inter_token_seconds=0.02 * (generated - requests),
        inter_tokens=generated - requests,
        first_token_seconds=0.2 * (requests + in_flight),
    )


def alone(totals: Totals, *, waiting: int = 0) -> dict[EndpointLabels, EndpointReading]:
    """Return the parts of a pod that was scraped directly."""
    return {frozenset(): EndpointReading(waiting=waiting, totals=totals)}
