"""Engines with a constant load and random counters, in simulated time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from apiserver.schema.json import Json
from controller.engines.readings import EndpointReading, Reading, Totals
from controller.engines.scraping import ScrapeResult

_RATES: Final = (0.003, 4.0)
"""Requests per second of an engine, log-uniformly distributed: most models have little load."""

_PROMPT: Final = 300.0
_OUTPUT: Final = 150.0
_ALPHA_SECONDS: Final = 0.013
_BETA_SECONDS: Final = 0.0001
_DELTA_SECONDS: Final = 0.00006
_UNEQUAL: Final = 0.03
"""Relative standard deviation of step times."""


class NoisyEngines:
    """Counters of all engines; time passes when `pass_seconds` is called."""

    def __init__(self, keys: Sequence[tuple[str, str]], *, began_seconds: float) -> None:
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._chance = np.random.default_rng(1)
        low, high = map(math.log, _RATES)
        self._rates = np.exp(self._chance.uniform(low, high, len(keys)))
        self._counters = np.zeros((7, len(keys)))
        self._running = np.zeros(len(keys), dtype=int)
        self.seconds = began_seconds
        self.is_loaded = True

    def now(self) -> float:
        """Return the simulated time in seconds."""
        return self.seconds

    def pass_seconds(self, seconds: float) -> None:
        """Advance time, with requests arriving and finishing."""
        self.seconds += seconds
        rates = self._rates if self.is_loaded else np.zeros_like(self._rates)
        came = self._chance.poisson(rates * seconds).astype(float)
        prompts = came * _PROMPT * self._chance.normal(1.0, 0.5 / np.sqrt(np.maximum(came, 1.0)))
        tokens = came * _OUTPUT * self._chance.normal(1.0, 0.5 / np.sqrt(np.maximum(came, 1.0)))
        busy = np.minimum(0.95, (tokens * _BETA_SECONDS + prompts * _DELTA_SECONDS) / seconds)
        step = _ALPHA_SECONDS / (1 - busy) * self._chance.normal(1.0, _UNEQUAL, len(came))
        between = np.maximum(0.0, tokens - came)
        first_seconds = came * (_PROMPT * _DELTA_SECONDS + step)
        self._counters += np.maximum(
            0.0, np.stack([came, prompts, tokens, came, between * step, between, first_seconds])
        )
        self._running = self._chance.poisson(rates * _OUTPUT * step)

    async def scrape(self, pods: Sequence[Json]) -> ScrapeResult:
        """Return the current counters of the pods' engines."""
        keys = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
        return ScrapeResult(
            readings={key: self._make_reading(self._numbers[key]) for key in keys}, failures={}
        )

    def _make_reading(self, number: int) -> Reading:
        first, prompts, tokens, finished, seconds, between, to_first = map(float, self._counters[:, number])
        running = int(self._running[number])
        totals = Totals(
            first_tokens=first,
            prompt_tokens=prompts,
            generation_tokens=tokens,
            finished=finished,
            begun=first,
            ended=finished,
            inter_token_seconds=seconds,
            inter_tokens=between,
            first_token_seconds=to_first,
        )
        return Reading(
            time_seconds=self.seconds,
            running=running,
            kv_tokens=400_000,
            parts={frozenset(): EndpointReading(waiting=0, totals=totals)},
            model_names=frozenset(),
        )
