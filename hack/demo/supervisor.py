"""Restarts our processes when they end by themselves, and records the outages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from hack.controlplane import ControlPlane
from hack.controlplane.errors import ComponentCrashedError
from hack.demo.observation import ProcessOutage
from hack.demo.phases import SimulatedClock
from hack.installation import Installation

ABSENCE_SECONDS = 3.0
"""Delay before a restart in seconds, long enough to show that nothing happens meanwhile."""

_LOOK_SECONDS = 0.2
_MOST_RESTARTS = 10


class Supervisor:
    """Watches our processes and the control plane's; `left_alone` are components that should stay down."""

    def __init__(
        self,
        control_plane: ControlPlane,
        installation: Installation,
        *,
        clock: SimulatedClock,
        note: Callable[[str], None],
        left_alone: Collection[str] = (),
        absence_seconds: float = ABSENCE_SECONDS,
    ) -> None:
        self._control_plane = control_plane
        self._installation = installation
        self._clock = clock
        self._note = note
        self._left_alone = left_alone
        self._absence_seconds = absence_seconds
        self.outages: list[ProcessOutage] = []

    async def run(self) -> None:
        """Watch all processes until cancelled.

        Raises ComponentCrashedError if a component of the control plane ends, or one of ours too often.
        """
        while True:
            self._control_plane.check()
            for name in self._installation.processes:
                if name not in self._left_alone:
                    await self._look_after(name)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look_after(self, name: str) -> None:
        process = self._installation.processes[name]
        try:
            process.check()
        except ComponentCrashedError as error:
            if len(self.outages) >= _MOST_RESTARTS:
                raise
            went_seconds = self._clock.seconds
            self._note(f"{str(error).partition(';')[0]}; it is restarted in {self._absence_seconds:.0f} s")
            await asyncio.sleep(self._absence_seconds)
            await self._start(name)
            back = ProcessOutage(component=name, from_seconds=went_seconds, to_seconds=self._clock.seconds)
            self.outages.append(back)

    async def _start(self, name: str) -> None:
        process = self._installation.processes[name]
        process.stop()
        try:
            await asyncio.to_thread(self._installation.start_component, name)
        except ComponentCrashedError:
            return  # the next check detects it and tries again, up to the limit
        self._note(f"stowplan-{name} is running again")
