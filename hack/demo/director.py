"""Plays the scenario on the real control plane and records observations."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema.json import Json
from controller.caches import Caches
from controller.observe.settings_reading import read_policies
from hack.controlplane import ControlPlane
from hack.controlplane.errors import KubectlFailedError, NotReadyError
from hack.demo import scenario
from hack.demo.engines import EngineHost
from hack.demo.model_story import ModelChapter
from hack.demo.observation import DemoHistory, DemoObservation, ManifestRefusal, observe
from hack.demo.phases import SimulatedClock
from hack.demo.rehearsal import served_requests
from hack.demo.shows import Frame, FrameMaker, Show
from hack.demo.traffic import Traffic

REFUSAL_SECONDS = 20.0
"""When the invalid manifest is applied, in seconds after the start of the load."""

_TICK_SECONDS = 0.1
_OBSERVE_SECONDS = 1.0
_READY_SECONDS = 120.0
_ROOT = scenario.MANIFESTS.parents[2]


@dataclass(kw_only=True)
class Director:
    """Dependencies and results of a performance."""

    control_plane: ControlPlane
    caches: Caches
    """Live objects of the cluster, through the same watches as the controller's."""

    host: EngineHost
    traffic: Traffic
    clock: SimulatedClock
    show: Show
    history: DemoHistory = field(default_factory=DemoHistory)
    frames: list[Frame] = field(default_factory=list)
    _maker: FrameMaker = field(default_factory=FrameMaker)

    def note(self, text: str) -> None:
        """Report an action or an event."""
        self._maker.note(text)
        self.show.note(text)

    async def set_the_scene(self) -> None:
        """Apply the manifests and wait until all pods and engines are ready. Raises NotReadyError."""
        await self._apply(scenario.SETTINGS, "--server-side")
        for path in (*scenario.MODELS, scenario.BOUND):
            await self._apply(path)
        self.note(f"engines take {scenario.START_UP_SECONDS:.0f} s to start")
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while not self._is_set():  # noqa: ASYNC110 (engines emit no event)
                    await asyncio.sleep(_TICK_SECONDS)
        except TimeoutError as error:
            raise NotReadyError(f"not every pod is Ready after {_READY_SECONDS:.0f} s") from error

    def _is_set(self) -> bool:
        routers = self.traffic.fleet.routers
        engines = [len(routers[name].servers) for name in (*scenario.load(), *scenario.bound_load())]
        return all(engines) and sum(engines) == len(self._pods())

    def _pods(self) -> list[Json]:
        """Return the pods of the demo."""
        pods = self.caches.world().pods
        return [pod for pod in pods if pod["metadata"]["namespace"] == scenario.NAMESPACE]

    async def run_engines(self) -> None:
        """Start and stop engines with their pods and advance the simulation, until cancelled."""
        while True:
            await self.host.match(self._pods())
            self.traffic.advance(self.clock.seconds)
            await asyncio.sleep(_TICK_SECONDS)

    async def play(self) -> None:
        """Start the load and record observations until the end of the scenario."""
        self.clock.release()
        refusing = asyncio.create_task(self._try_bad_manifest())
        try:
            while self.clock.seconds < scenario.END_SECONDS:
                observation = self._observe()
                self.history.observations.append(observation)
                self._show(observation)
                await asyncio.sleep(_OBSERVE_SECONDS)
            await refusing
            self.history.served += served_requests(self.traffic.conclude(self.clock.seconds))
        finally:
            refusing.cancel()

    async def play_model(self) -> None:
        """Play the chapter of the Model, and show observations meanwhile."""
        chapter = ModelChapter(
            control_plane=self.control_plane, clock=self.clock, note=self.note, story=self.history.model
        )
        playing = asyncio.create_task(chapter.play())
        try:
            while not playing.done():
                self._show(self._observe())
                await asyncio.sleep(_OBSERVE_SECONDS)
            await playing
        finally:
            playing.cancel()

    def _observe(self) -> DemoObservation:
        return observe(
            self.caches.world(),
            policies=read_policies(self.caches.config_maps(), unit_costs=NamesConfig().unit_costs),
            bindings=self.caches.bound_world().bindings,
            clients=self.traffic.clients(),
            seconds=self.clock.seconds,
        )

    def _show(self, observation: DemoObservation) -> None:
        frame = self._maker.frame(observation)
        self.frames.append(frame)
        self.show.update(frame)

    async def _try_bad_manifest(self) -> None:
        while self.clock.seconds < REFUSAL_SECONDS:  # noqa: ASYNC110 (simulated time has no event)
            await asyncio.sleep(_TICK_SECONDS)
        await self._apply(scenario.REFUSED)

    async def _apply(self, path: Path, *flags: str) -> None:
        """Apply a manifest with plain kubectl, report it, and record a rejection."""
        shown = path.relative_to(_ROOT)
        command = ("apply", *flags, f"--filename={path}")
        finished = await asyncio.to_thread(self.control_plane.kubectl, *command, check=False)
        self.note(f"$ {' '.join(('kubectl apply', *flags, '-f', str(shown)))}")
        output = finished.stderr.strip()
        for line in dict.fromkeys(output.splitlines()):
            self.note(f"  {line}")
        if finished.returncode == 0:
            self.note(f"  {len(finished.stdout.splitlines())} objects applied")
        elif path == scenario.REFUSED:
            self.history.refusals.append(
                ManifestRefusal(manifest=str(shown), exit_code=finished.returncode, output=output)
            )
        else:
            raise KubectlFailedError(f"kubectl apply -f {shown}: {output}")
