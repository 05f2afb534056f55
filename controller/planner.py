"""A planner: the solver with the settings of a process."""

from __future__ import annotations

from controller.planning.decision import Plan
from controller.planning.inputs import Settings
from controller.planning.snapshot import Snapshot
from controller.solver import Solver


class SolvingPlanner:
    """Calls the solver with the same settings each time."""

    def __init__(self, solver: Solver, settings: Settings) -> None:
        self._solver = solver
        self._settings = settings

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return the plan for a snapshot; never raises for hard input."""
        return await self._solver.solve(snapshot, self._settings)
