"""Simulated engines in the place of containers: each listens on its pod's own address and port.

Pods are followed through the API. A Ready pod that asks for an engine gets one that joins the fleet; until it
is Ready nobody listens there, as with a real engine that loads its model. A pod that is being deleted is sent
nothing new; with a pod that is gone goes its engine, and what it had not finished is retried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from aiohttp import web

from apiserver.schema.json import Json
from controller.observe.pods import is_ready
from controller.simulation.engine import Engine
from controller.simulation.exposition import CONTENT_TYPE, exposition
from controller.simulation.fleet import Fleet
from hack.demo.clock import SimulatedClock
from hack.demo.openai_api import OpenAiApi, Served
from hack.demo.profiles import is_simulated, profile_of

_PORT_NAMES = ("metrics", "http")
_CLOSE = {"Connection": "close"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Hosted:
    """An engine and where it listens."""

    model_id: str
    address: str
    site: web.TCPSite


class EngineHost:
    """All engines of the fleet behind one web application, told apart by the address that was called.

    Use as `async with`; raises OSError when a pod's address cannot be listened on.
    """

    def __init__(self, fleet: Fleet, clock: SimulatedClock) -> None:
        self._fleet = fleet
        self._clock = clock
        self._hosted: dict[str, _Hosted] = {}
        self._engines: dict[str, Engine] = {}
        self._served: dict[str, Served] = {}
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/health", self._health)
        OpenAiApi(self._served_by).add_routes(application.router)
        self._runner = web.AppRunner(application, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def addresses(self) -> frozenset[str]:
        """Where engines listen now."""
        return frozenset(self._engines)

    async def match(self, pods: Iterable[Json]) -> None:
        """Start and stop engines until there is one for each Ready pod that asks for it."""
        wanted = {pod["metadata"]["uid"]: pod for pod in pods if is_simulated(pod) and is_ready(pod)}
        for uid in [uid for uid in self._hosted if uid not in wanted]:
            await self._stop(uid)
        for uid, pod in wanted.items():
            is_leaving = "deletionTimestamp" in pod["metadata"]
            if uid in self._hosted and is_leaving:
                hosted = self._hosted[uid]
                self._fleet.cordon(uid, model_id=hosted.model_id, now_us=self._clock.microseconds)
            elif uid not in self._hosted and not is_leaving:
                await self._start(uid, pod)

    async def _start(self, uid: str, pod: Json) -> None:
        profile, address = profile_of(pod), pod["status"]["podIP"]
        site = web.TCPSite(self._runner, address, _port(pod), reuse_address=True)
        await site.start()
        now_us = self._clock.microseconds
        engine = Engine(profile, now_us=now_us)
        self._hosted[uid] = _Hosted(profile.model_id, address, site)
        self._engines[address] = engine
        self._served[address] = Served(profile.model_id)
        self._fleet.join(uid, engine, now_us=now_us)

    async def _stop(self, uid: str) -> None:
        hosted = self._hosted.pop(uid)
        self._engines.pop(hosted.address)
        self._served.pop(hosted.address)
        self._fleet.leave(uid, model_id=hosted.model_id, now_us=self._clock.microseconds)
        await hosted.site.stop()

    async def _metrics(self, request: web.Request) -> web.Response:
        text = exposition(self._called(request))
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    async def _health(self, request: web.Request) -> web.Response:
        self._called(request)
        return web.Response()

    def _called(self, request: web.Request) -> Engine:
        """Return the engine whose address was called."""
        return _at(self._engines, request)

    def _served_by(self, request: web.Request) -> Served:
        """Return what the engine serves whose address was called."""
        return _at(self._served, request)


def _at(known: Mapping[str, T], request: web.Request) -> T:
    """Return what is known of the address that was called; a connection may outlive its pod."""
    assert request.transport is not None
    found = known.get(request.transport.get_extra_info("sockname")[0])
    if found is None:
        raise web.HTTPServiceUnavailable(text="no engine runs at this address\n", headers=_CLOSE)
    return found


def _port(pod: Json) -> int:
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or []]
    named = {port.get("name"): int(port["containerPort"]) for port in ports}
    return next(named[name] for name in _PORT_NAMES if name in named)
