"""Planning over time: the solver, and what it remembers from one plan to the next."""

from __future__ import annotations

from controller.planning.decision import Plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState
from controller.solver import Solver


class RememberingPlanner:
    """Asks the solver and keeps its memory; after a restart it begins anew."""

    def __init__(self, solver: Solver, settings: Settings) -> None:
        self._solver = solver
        self._settings = settings
        self._state = PlanningState()

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return the plan for a snapshot; never raises for hard input."""
        plan, self._state = await self._solver.solve(snapshot, self._state, self._settings)
        return plan

    async def consider(self, snapshot: Snapshot) -> Plan:
        """Return the plan for what might be: from what is remembered, and nothing of it is."""
        plan, _ = await self._solver.solve(snapshot, self._state, self._settings)
        return plan
