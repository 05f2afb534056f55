"""Tracks the placements of plans: releases gated pods, and reports replicas that lost their planned node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.log import EventLogger
from controller.observe.claim import Claimant
from controller.observe.conditions import ConditionReason
from controller.observe.gather import Gathered, World
from controller.planning.decision import Plan
from controller.planning.snapshot import Snapshot
from controller.variants.placement_divergence import (
    IN_STEP,
    Divergence,
    Expectation,
    Waiting,
    divergence,
    sentences,
)
from controller.variants.placing import GateKeeper, let_in, strays

_log = EventLogger(__name__)


class PlacementFollower:
    """Keeps the last plan's placements, and the replicas that are pending because they were not followed."""

    def __init__(self, cluster: Cluster, events: EventRecorder) -> None:
        self._events = events
        self._gate_keeper = GateKeeper(cluster)
        self._expected: Expectation | None = None
        self.divergence: Divergence = IN_STEP

    def compare(self, claimants: Sequence[Claimant], snapshot: Snapshot) -> Sequence[Waiting]:
        """Return the replicas pending because of a divergence; record an event and log for new ones."""
        before = self.divergence.waiting
        self.divergence = divergence(self._expected, before, snapshot)
        new = sentences(item for item in self.divergence.waiting if item not in before)
        for claimant in claimants:
            if claimant.key in new:
                self._tell(claimant, new[claimant.key])
        return self.divergence.waiting

    async def follow(
        self, world: World, gathered: Gathered, plan: Plan, *, acted_on: Callable[[tuple[str, str]], bool]
    ) -> None:
        """Keep the plan's placements, and release the gated pods that have a place in it."""
        self._expected = Expectation(snapshot=gathered.snapshot, placements=plan.placements)
        due = let_in(gathered.observed, plan, gathered.snapshot.nodes, acted_on=acted_on)
        await self._gate_keeper.open_for((*due, *strays(world.pods, gathered.observed.values())))

    def _tell(self, claimant: Claimant, sentence: str) -> None:
        namespace, name = claimant.key
        _log.warning("placed elsewhere", namespace=namespace, name=name, message=sentence)
        self._events.record(
            claimant.value,
            type="Warning",
            reason=str(ConditionReason.PLACED_ELSEWHERE),
            action="Place",
            note=sentence,
            meaning=sentence,
        )
