"""One replica: the engines of its data-parallel ranks, most often a single one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.simulation.engine import Engine

if TYPE_CHECKING:
    from controller.simulation.profile import EngineProfile
    from controller.simulation.request import Completion, Request, Unfinished


class Server:
    """Engines by rank. A request goes to the shortest queue, then to the smallest batch.

    Methods are those of an engine, for all ranks together.
    """

    def __init__(self, profile: EngineProfile, *, now_us: int = 0, seed: int = 0) -> None:
        self.profile = profile
        self.ranks = tuple(
            Engine(profile, now_us=now_us, seed=seed * profile.ranks + rank) for rank in range(profile.ranks)
        )

    @property
    def running(self) -> int:
        """Number of sequences in all batches."""
        return sum([engine.running for engine in self.ranks])

    @property
    def waiting(self) -> int:
        """Number of sequences in all queues, including preempted ones."""
        return sum([engine.waiting for engine in self.ranks])

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return all(engine.is_idle for engine in self.ranks)

    @property
    def kv_usage(self) -> float:
        """Used share of all KV caches, 0.0 to 1.0."""
        return sum([engine.kv_usage for engine in self.ranks]) / len(self.ranks)

    @property
    def next_change_us(self) -> int | None:
        """Next time at which running or waiting may change without a new request; None if all are idle."""
        changes = [change for engine in self.ranks if (change := engine.next_change_us) is not None]
        return min(changes, default=None)

    def kv_usage_at(self, now_us: int) -> float:
        """Return `kv_usage` at a time up to `next_change_us`, if nothing is submitted; it never decreases."""
        return sum([engine.kv_usage_at(now_us) for engine in self.ranks]) / len(self.ranks)

    def submit(self, request: Request, *, now_us: int, patience_end_us: int | None = None) -> None:
        """Queue a request, as `Engine.submit` does."""
        chosen = min(self.ranks, key=lambda engine: (engine.waiting, engine.running))
        chosen.submit(request, now_us=now_us, patience_end_us=patience_end_us)

    def advance(self, until_us: int) -> list[Completion]:
        """Compute until `until_us` and return the completions, in order for each rank."""
        return [done for engine in self.ranks for done in engine.advance(until_us)]

    def change(self, until_us: int) -> list[Completion]:
        """Process events, as `Engine.change` does."""
        return [done for engine in self.ranks for done in engine.change(until_us)]

    def pop_abandoned(self) -> list[Request]:
        """Return the requests whose clients gave up since the last call."""
        return [request for engine in self.ranks for request in engine.pop_abandoned()]

    def drain(self) -> list[Unfinished]:
        """Stop at once, and return all unfinished requests."""
        return [unfinished for engine in self.ranks for unfinished in engine.drain()]
