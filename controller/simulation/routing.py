"""How a router chooses among servers, perfectly or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

RoutingPolicy = Literal["shortest-queue", "random", "round-robin"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Routing:
    """The policy of a router.

    - shortest-queue: the shortest queue, then the emptiest KV cache, then by name. Queues and caches are
      looked at once per `stale_seconds`, and remembered in between; 0 for every request.
    - random: any server, with equal chances.
    - round-robin: one after the other, by name.

    Raises ValueError for an unknown policy, a negative number of seconds, or one for another policy.
    """

    policy: RoutingPolicy = "shortest-queue"
    stale_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.policy not in get_args(RoutingPolicy):
            raise ValueError(f"policy must be one of {', '.join(get_args(RoutingPolicy))}")
        if not self.stale_seconds >= 0:
            raise ValueError("stale_seconds must be 0 or greater")
        if self.stale_seconds and self.policy != "shortest-queue":
            raise ValueError("stale_seconds requires the policy shortest-queue: the others use no queues")


SHORTEST_QUEUE = Routing()
"""A router that always knows the queues."""
