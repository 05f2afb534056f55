"""The chapter of a Model: it is applied, serves with its adapter, gets load, scales, and loses a backend."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp

from apiserver.schema.json import Json
from controller.observe.pods import is_present, is_ready
from hack.controlplane import ControlPlane
from hack.demo import scenario
from hack.demo.openai_api import LoaderHost
from hack.demo.phases import SimulatedClock

MODEL: Final = "chat"
ADAPTER: Final = "sql"
LOST: Final = "chat-a30"
"""Name of the objects for the backend that is removed."""

_KINDS: Final = "pods,modelservers,deployments,configmaps,modelroutes,models"
"""Read in this order: pods first, so that a route without pods had none before the pods were read."""

_WITHOUT_IT: Final = '[{"op": "remove", "path": "/spec/backends/1"}]'
_LOOK_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 60.0
_OK: Final = 200


@dataclass(slots=True)
class ModelStory:
    """Observations of the Model."""

    active_seconds: float | None = None
    """Time in seconds from the manifest until all backends served."""

    answered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The servers that answered a completion while all backends served, by requested name."""

    replicas: list[int] = field(default_factory=list)
    """Numbers of ready engines over time."""

    lost_seconds: float | None = None
    """Time in seconds from the edit until nothing of the backend was left."""

    gaps: list[str] = field(default_factory=list)
    """Servers in the route without an engine, since the Model became active."""

    answered_after: Sequence[str] = ()
    """The servers that answered a completion of the adapter at the end."""


@dataclass(kw_only=True)
class ModelChapter:
    """Plays the chapter; the engines are those of the demo, the loaders are its own."""

    control_plane: ControlPlane
    clock: SimulatedClock
    note: Callable[[str], None]
    story: ModelStory

    async def play(self) -> None:
        """Play all steps, each until its condition holds or a timeout."""
        with LoaderHost(self.control_plane.directory / "loaders") as loaders:
            began = time.monotonic()
            await self._kubectl("apply", f"--filename={scenario.MODEL}")
            self.note(f"$ kubectl apply -f {scenario.MODEL.relative_to(Path(__file__).parents[2])}")
            if not await self._until(loaders, self._serves):
                return
            self.story.active_seconds = time.monotonic() - began
            items = await self._items()
            self.story.answered = {name: await _answering_servers(items, name) for name in (MODEL, ADAPTER)}
            self.note(f"model {MODEL} is active, its adapter {ADAPTER} is loaded")
            scaled_by = self.clock.seconds + scenario.MODEL_SCALES_SECONDS
            await self._until(loaders, lambda _: self._has_scaled() or self.clock.seconds > scaled_by)
            began = time.monotonic()
            self.note(f"$ kubectl patch model {MODEL} -n {scenario.NAMESPACE} --type=json -p '{_WITHOUT_IT}'")
            await self._kubectl("patch", f"model/{MODEL}", "--type=json", f"--patch={_WITHOUT_IT}")
            if await self._until(loaders, _is_lost):
                self.story.lost_seconds = time.monotonic() - began
                self.story.answered_after = await self._answered_in_the_end(loaders)

    async def _answered_in_the_end(self, loaders: LoaderHost) -> list[str]:
        """Request the adapter until a server answers, or a timeout.

        A kubelet reports a pod as Ready once its loader is ready; here the loader of a new engine starts only
        then.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not (answered := await _answering_servers(await self._look(loaders), ADAPTER)):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        return answered

    def _serves(self, items: Sequence[Json]) -> bool:
        [model] = _of_kind(items, "Model")
        conditions = (model.get("status") or {}).get("conditions") or []
        statuses = {item["type"]: item["status"] for item in conditions}
        loaded = [server for server, names in routes(items).items() if ADAPTER in names]
        is_well = statuses.get("Active") == "True" and statuses.get("Failed") == "False"
        return is_well and len(loaded) == len(model["spec"]["backends"])

    def _has_scaled(self) -> bool:
        return bool(self.story.replicas) and self.story.replicas[-1] > min(self.story.replicas)

    async def _until(self, loaders: LoaderHost, is_so: Callable[[Sequence[Json]], bool]) -> bool:
        """Poll until a condition holds; return whether it did before the timeout."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not is_so(await self._look(loaders)):  # noqa: ASYNC110 (pods emit no event)
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            return False
        return True

    async def _look(self, loaders: LoaderHost) -> list[Json]:
        """Record an observation, and update the loaders; return the objects of the Model."""
        items = await self._items()
        lists = {item["metadata"]["name"]: item for item in _of_kind(items, "ConfigMap")}
        loaders.match(_of_kind(items, "Pod"), lists)
        if self.story.active_seconds is not None:
            self.story.replicas.append(len(_engines(items)))
            self.story.gaps += [gap for gap in gaps(items) if gap not in self.story.gaps]
        return items

    async def _items(self) -> list[Json]:
        document = json.loads(await self._kubectl("get", _KINDS, "--output=json"))
        items: list[Json] = document["items"]
        return items

    async def _kubectl(self, *arguments: str) -> str:
        command = (*arguments, f"--namespace={scenario.NAMESPACE}")
        return (await asyncio.to_thread(self.control_plane.kubectl, *command)).stdout


def _of_kind(items: Sequence[Json], kind: str) -> list[Json]:
    return [item for item in items if item["kind"] == kind]


def routes(items: Sequence[Json]) -> dict[str, set[str]]:
    """Return the model names that lead to each server, by the Model's route."""
    by_server: dict[str, set[str]] = {}
    for route in _of_kind(items, "ModelRoute"):
        names = {route["spec"].get("modelName", ""), *route["spec"].get("loraAdapters", [])} - {""}
        for rule in route["spec"]["rules"]:
            named = ((rule.get("modelMatch") or {}).get("body") or {}).get("model")
            for target in rule["targetModels"]:
                by_server.setdefault(target["modelServerName"], set()).update(
                    {named} & names if named else names
                )
    return by_server


def _engines(items: Sequence[Json], server: str = "") -> list[Json]:
    """Return the ready pods of the Model, or of one of its servers."""
    labels = {"stowplan.dev/model": MODEL}
    if server:
        servers = [item for item in _of_kind(items, "ModelServer") if item["metadata"]["name"] == server]
        if not servers:
            return []
        labels = servers[0]["spec"]["workloadSelector"]["matchLabels"]
    pods = _of_kind(items, "Pod")
    return [
        pod
        for pod in pods
        if labels.items() <= (pod["metadata"].get("labels") or {}).items()
        and is_present(pod)
        and is_ready(pod)
    ]


def gaps(items: Sequence[Json]) -> list[str]:
    """Return the ModelServers that get requests but have no ready pod."""
    return [server for server in routes(items) if not _engines(items, server)]


def _is_lost(items: Sequence[Json]) -> bool:
    kinds = ("ModelServer", "Deployment")
    is_there = any(item["metadata"]["name"] == LOST for item in items if item["kind"] in kinds)
    return not is_there and LOST not in routes(items)


async def _answering_servers(items: Sequence[Json], model: str) -> list[str]:
    """Request a completion from an engine of each server of a name; return the servers that answer."""
    servers = []
    async with aiohttp.ClientSession() as session:
        for server, names in sorted(routes(items).items()):
            if model not in names:
                continue
            engines = _engines(items, server)
            if engines and await _completes(session, engines[0]["status"]["podIP"], model):
                servers.append(server)
    return servers


async def _completes(session: aiohttp.ClientSession, address: str, model: str) -> bool:
    """Tell whether an engine answers; one that has just ended does not."""
    body = {"model": model, "prompt": "How many orders were there in May?"}
    try:
        async with session.post(f"http://{address}:8000/v1/completions", json=body) as response:
            return response.status == _OK
    except aiohttp.ClientConnectionError:
        return False
