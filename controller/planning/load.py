"""How much a model is asked for, and how much one replica serves: what sizing tells planning.

Rates are requests per second. Requests of one model are alike here: capacity is counted for the lengths that
the model's requests have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from controller.planning.ranges import MAX_REPLICAS, MOST_START_SECONDS, out_of_range

RATE_UNIT = 1e-6
"""Planning counts rates in whole millionths of a request per second."""

MOST_RATE = 10**9
"""More requests per second than any model has."""

MOST_REQUESTS = 10**9
"""More requests than ever wait."""

MOST_TOKENS = 10**9
"""More tokens than any request has."""

REQUESTS = "requests/s"
"""What loads count unless they say otherwise."""


class Signal(StrEnum):
    """How well a model's demand is known."""

    FRESH = "Fresh"
    """Every ready replica reported recently: may scale both ways."""

    QUORUM = "Quorum"
    """Some replicas have been silent for longer than is waited for: the others decide, both ways."""

    HELD = "Held"
    """Some reports are old or missing: may scale up, never down."""

    UNKNOWN = "Unknown"
    """No usable report: what is, stays."""

    @property
    def decides(self) -> bool:
        """Whether it may scale down as well as up."""
        return self in {Signal.FRESH, Signal.QUORUM}


class CapacitySource(StrEnum):
    """Where a variant's capacity per replica comes from, best first."""

    STATED = "Stated"
    """A person said so, for a plan of what might be."""

    LEARNED = "Learned"
    """From the step times of its own engines."""

    LAST_KNOWN = "LastKnown"
    """From step times that its engines showed before the controller started, or when they last ran."""

    PROFILE = "Profile"
    """From the declared profile, by the queue model."""

    ESTIMATED = "Estimated"
    """It never ran: from its siblings' step times and what its accelerator is worth beside theirs."""

    UNKNOWN = "Unknown"
    """Nothing to go by."""


class Target(StrEnum):
    """What limits the rate of one replica."""

    TTFT = "TTFT"
    ITL = "ITL"
    BATCH = "batch"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimit:
    """A limit on what one replica serves. Raises ValueError for a rate that is not above 0, or endless."""

    target: Target
    text: str
    """What must hold, such as `TTFT 2 s` or `a batch of 256`."""

    requests_per_second: float

    def __post_init__(self) -> None:
        """Refuse what limits nothing, and what can never be met."""
        if not 0 < self.requests_per_second < math.inf:
            raise ValueError(
                f"requests_per_second: must be greater than 0 and finite, was {self.requests_per_second}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """What one replica serves within its targets. Raises ValueError for a rate that is none."""

    requests_per_second: float
    source: CapacitySource
    limits: tuple[RateLimit, ...] = ()
    """All that were looked at, the tightest first; none where only the rate is known."""

    is_usable: bool = True
    """Whether new replicas may be counted on; what runs serves all the same."""

    unreachable: tuple[str, ...] = ()
    """Targets that no load is small enough for, each with the best that can be reached. They do not count."""

    def __post_init__(self) -> None:
        """Refuse what is no rate."""
        wrong = out_of_range(requests_per_second=(self.requests_per_second, 0, MOST_RATE))
        if wrong:
            raise ValueError("; ".join(wrong))

    @property
    def rate(self) -> int:
        """Whole millionths of a request per second, rounded down: what a replica runs at."""
        return math.floor(round(self.requests_per_second / RATE_UNIT, 6))


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelLoad:
    """What one model is asked for. Raises ValueError when a number is out of its range or not a number."""

    namespace: str
    model_id: str
    signal: Signal = Signal.FRESH
    signal_age_seconds: float | None = None
    """Age of the oldest report that counts; None without one."""

    ready_replicas: int = 0
    silent_replicas: int = 0
    """Ready replicas without a usable report."""

    requests_per_second: float | None = None
    """Now; None when unknown."""

    upper_requests_per_second: float = 0.0
    """Bound of what arrives until replicas that are started now are ready."""

    start_seconds: float = 0.0
    """How long that takes."""

    backlog_requests: float = 0.0
    """Requests that will still wait by then, to be worked off besides."""

    prompt_tokens: float | None = None
    output_tokens: float | None = None
    """Mean length of a request; None when unknown."""

    measure: str = REQUESTS
    """What sentences call the unit of rates and capacities; that of a binding is replicas."""

    mixes_at_cost: bool = False
    """Whether unlike replicas serve together as well as alike ones, so that nothing but cost speaks against a
    mix; else there is one main variant."""

    required_requests_per_second: float = 0.0
    """Capacity that there must be."""

    releasable_requests_per_second: float | None = None
    """Capacity beyond this may go; at least what is required. None: nothing may go."""

    def __post_init__(self) -> None:
        """Refuse what no load can be."""
        releasable = self.releasable_requests_per_second
        wrong = out_of_range(
            signal_age_seconds=(self.signal_age_seconds or 0, 0, 10**9),
            ready_replicas=(self.ready_replicas, 0, MAX_REPLICAS),
            silent_replicas=(self.silent_replicas, 0, MAX_REPLICAS),
            requests_per_second=(self.requests_per_second or 0, 0, MOST_RATE),
            upper_requests_per_second=(self.upper_requests_per_second, 0, MOST_RATE),
            start_seconds=(self.start_seconds, 0, MOST_START_SECONDS),
            backlog_requests=(self.backlog_requests, 0, MOST_REQUESTS),
            prompt_tokens=(self.prompt_tokens or 0, 0, MOST_TOKENS),
            output_tokens=(self.output_tokens or 0, 0, MOST_TOKENS),
            required_requests_per_second=(self.required_requests_per_second, 0, MOST_RATE),
            releasable_requests_per_second=(releasable or 0, 0, MOST_RATE),
        )
        if releasable is not None and releasable < self.required_requests_per_second:
            wrong.append("releasable_requests_per_second: must be at least required_requests_per_second")
        if wrong:
            raise ValueError(f"{self.namespace}/{self.model_id}: " + "; ".join(wrong))


def rate_up(requests_per_second: float) -> int:
    """Return the whole millionths that cover a rate; a millionth of one is noise of binary fractions."""
    return math.ceil(round(requests_per_second / RATE_UNIT, 6))
