"""A planner with state: the solver, and what it carries from one plan to the next."""

from __future__ import annotations

from controller.planning.decision import Plan
from controller.planning.inputs import PlanningState, Settings
from controller.planning.snapshot import Snapshot
from controller.solver import Solver


class RememberingPlanner:
    """Calls the solver and keeps its state; after a restart the state is empty."""

    def __init__(self, solver: Solver, settings: Settings) -> None:
        self._solver = solver
        self._settings = settings
        self._state = PlanningState()

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return the plan for a snapshot; never raises for hard input."""
        plan, self._state = await self._solver.solve(snapshot, self._state, self._settings)
        return plan

    async def consider(self, snapshot: Snapshot) -> Plan:
        """Return the plan for a hypothetical snapshot, without changing the kept state."""
        plan, _ = await self._solver.solve(snapshot, self._state, self._settings)
        return plan
