"""The load of a model and the capacity of one replica: the output of sizing, and an input of planning.

Rates are requests per second. Requests of one model are treated as alike: capacity refers to the request
lengths that the model actually sees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from controller.planning.ranges import MAX_REPLICAS, MOST_START_SECONDS, out_of_range, refuse

RATE_UNIT = 1e-6
"""The unit of rates in planning, in requests per second; rates are integer multiples of it."""

MOST_RATE = 10**9
"""Maximum request rate of a model, in requests per second."""

MOST_REQUESTS = 10**9
"""Maximum number of waiting requests."""

MOST_TOKENS = 10**9
"""Maximum number of tokens of a request."""

REQUESTS = "requests/s"
"""Default unit of loads in messages."""


class Signal(StrEnum):
    """How reliable the data about a model's demand is."""

    FRESH = "Fresh"
    """Every ready replica reported recently: scaling in both directions is allowed."""

    QUORUM = "Quorum"
    """Some replicas have been silent for longer than the timeout: the others decide, in both directions."""

    HELD = "Held"
    """Some reports are old or missing: may scale up, never down."""

    UNKNOWN = "Unknown"
    """No usable report: all replicas are kept."""

    @property
    def decides(self) -> bool:
        """Whether scaling down is allowed as well as scaling up."""
        return self in {Signal.FRESH, Signal.QUORUM}


class CapacitySource(StrEnum):
    """Source of a variant's capacity per replica, best first."""

    STATED = "Stated"
    """Stated by a user, for a hypothetical plan."""

    LEARNED = "Learned"
    """From the step times of its own engines."""

    LAST_KNOWN = "LastKnown"
    """From step times that its engines showed before the controller started, or when they last ran."""

    PROFILE = "Profile"
    """From the declared profile, by the queue model."""

    ESTIMATED = "Estimated"
    """It never ran: from the step times of sibling variants, scaled by the relative speed of its accelerator.
    """

    CATALOG = "Catalog"
    """Neither it nor a sibling ever ran: an estimate for its model and its accelerator."""

    UNKNOWN = "Unknown"
    """No data."""

    @property
    def is_estimate(self) -> bool:
        """Whether no engine of the variant has shown the capacity, and nobody stated it."""
        return self in {CapacitySource.ESTIMATED, CapacitySource.CATALOG}


class LimitingTarget(StrEnum):
    """The target that limits the rate of one replica."""

    TTFT = "TTFT"
    ITL = "ITL"
    BATCH = "batch"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaRateLimit:
    """A limit on the rate of one replica. Raises ValueError for a rate that is not positive and finite."""

    target: LimitingTarget
    text: str
    """The condition, such as `TTFT 2 s` or `a batch of 256`."""

    requests_per_second: float

    def __post_init__(self) -> None:
        if not 0 < self.requests_per_second < math.inf:
            raise ValueError(
                f"requests_per_second: must be greater than 0 and finite, was {self.requests_per_second}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """The rate that one replica serves within its targets. Raises ValueError for an invalid rate."""

    requests_per_second: float
    source: CapacitySource
    limits: tuple[ReplicaRateLimit, ...] = ()
    """All evaluated limits, the tightest first; empty if only the rate is known."""

    is_usable: bool = True
    """Whether new replicas may be counted on; running replicas serve in any case."""

    unreachable: tuple[str, ...] = ()
    """Targets that cannot be met at any load, each with the best achievable value. They are ignored."""

    def __post_init__(self) -> None:
        refuse(out_of_range(requests_per_second=(self.requests_per_second, 0, MOST_RATE)))

    @property
    def rate(self) -> int:
        """Capacity in millionths of a request per second, rounded down."""
        return math.floor(round(self.requests_per_second / RATE_UNIT, 6))


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelLoad:
    """The load of one model. Raises ValueError when a number is out of its range or not a number."""

    namespace: str
    model_id: str
    signal: Signal = Signal.FRESH
    signal_age_seconds: float | None = None
    """Age of the oldest report that counts, in seconds; None without one."""

    ready_replicas: int = 0
    silent_replicas: int = 0
    """Ready replicas without a usable report."""

    requests_per_second: float | None = None
    """Current rate; None when unknown."""

    load_share: float = 1.0
    """Capacity that the current rate needs as long as it is steady, relative to this rate. It is less than 1
    if capacities contain a margin, because more requests missed a target than at a steady rate."""

    upper_requests_per_second: float = 0.0
    """Upper bound of the rate until replicas that are started now are ready."""

    start_seconds: float = 0.0
    """Time until replicas that are started now are ready, in seconds."""

    backlog_requests: float = 0.0
    """Requests that will still be waiting by then, and have to be served in addition."""

    prompt_tokens: float | None = None
    output_tokens: float | None = None
    """Mean tokens per request; None when unknown."""

    measure: str = REQUESTS
    """Unit of rates and capacities in messages; for a binding it is replicas."""

    mixes_at_cost: bool = False
    """Whether different variants serve together as efficiently as identical ones, so that only cost decides
    about a mix; otherwise the model has one main variant.
    """

    required_requests_per_second: float = 0.0
    """Capacity that must exist."""

    releasable_requests_per_second: float | None = None
    """Capacity above this may be removed; at least the required capacity. None if no capacity may be removed.
    """

    is_growing: bool = False
    """Whether more is required than at any time before within the hold."""

    def __post_init__(self) -> None:
        releasable = self.releasable_requests_per_second
        wrong = out_of_range(
            signal_age_seconds=(self.signal_age_seconds or 0, 0, 10**9),
            ready_replicas=(self.ready_replicas, 0, MAX_REPLICAS),
            silent_replicas=(self.silent_replicas, 0, MAX_REPLICAS),
            requests_per_second=(self.requests_per_second or 0, 0, MOST_RATE),
            load_share=(self.load_share, 0, 1),
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
        refuse(wrong, f"{self.namespace}/{self.model_id}")

    def steady_rate(self, requests_per_second: float) -> int:
        """Return the capacity that a steady rate needs, in millionths of a request per second."""
        return rate_up(requests_per_second * self.load_share)


def rate_up(requests_per_second: float) -> int:
    """Return the rate in millionths, rounded up; less than a millionth of one is float noise, and dropped."""
    return math.ceil(round(requests_per_second / RATE_UNIT, 6))
