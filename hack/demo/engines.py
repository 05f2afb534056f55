"""Simulated engines instead of containers: each listens on its pod's own address and port.

Pods are followed through the API. A Ready pod that requests a simulated engine gets one, which joins the
fleet. Until the pod is Ready nothing listens there, as with a real engine that loads its model. A pod being
deleted gets no new requests. When a pod is gone, so is its engine, and unfinished requests are retried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from aiohttp import web

from apiserver.schema.json import Json
from controller.observe.pods import is_ready
from controller.simulation.fleet import Fleet
from controller.simulation.server import CONTENT_TYPE, Server, exposition
from hack.demo.clock import SimulatedClock
from hack.demo.openai_api import OpenAiApi, Served
from hack.demo.profiles import is_simulated, profile_of

_PORT_NAMES = ("metrics", "http")
_CLOSE = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class _Hosted:
    """An engine with its listener, the model that it serves, and its adapters."""

    server: Server
    served: Served
    address: str
    site: web.TCPSite


class EngineHost:
    """All engines of the fleet in one web application, distinguished by the called address.

    Use as `async with`; raises OSError if a pod's address cannot be bound.
    """

    def __init__(self, fleet: Fleet, clock: SimulatedClock) -> None:
        self._fleet = fleet
        self._clock = clock
        self._hosted: dict[str, _Hosted] = {}
        """By uid of the pod."""
        self._at: dict[str, _Hosted] = {}
        """By address."""
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/health", self._health)
        OpenAiApi(lambda request: self._engine_at(request).served).add_routes(application.router)
        self._runner = web.AppRunner(application, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def addresses(self) -> frozenset[str]:
        """Addresses on which engines listen now."""
        return frozenset(self._at)

    async def match(self, pods: Iterable[Json]) -> None:
        """Start and stop engines until there is one for each Ready pod that requests it."""
        wanted = {pod["metadata"]["uid"]: pod for pod in pods if is_simulated(pod) and is_ready(pod)}
        for uid in [uid for uid in self._hosted if uid not in wanted]:
            await self._stop(uid)
        for uid, pod in wanted.items():
            is_leaving = "deletionTimestamp" in pod["metadata"]
            if uid in self._hosted and is_leaving:
                model_id = self._hosted[uid].served.model
                self._fleet.cordon(uid, model_id=model_id, now_us=self._clock.microseconds)
            elif uid not in self._hosted and not is_leaving:
                await self._start(uid, pod)

    async def _start(self, uid: str, pod: Json) -> None:
        profile, address = profile_of(pod), pod["status"]["podIP"]
        site = web.TCPSite(self._runner, address, _port(pod), reuse_address=True)
        await site.start()
        now_us = self._clock.microseconds
        hosted = _Hosted(Server(profile, now_us=now_us), Served(profile.model_id), address, site)
        self._hosted[uid] = self._at[address] = hosted
        self._fleet.join(uid, hosted.server, now_us=now_us)

    async def _stop(self, uid: str) -> None:
        hosted = self._hosted.pop(uid)
        self._at.pop(hosted.address)
        self._fleet.leave(uid, model_id=hosted.served.model, now_us=self._clock.microseconds)
        await hosted.site.stop()

    async def _metrics(self, request: web.Request) -> web.Response:
        text = exposition(self._engine_at(request).server)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    async def _health(self, request: web.Request) -> web.Response:
        self._engine_at(request)
        return web.Response()

    def _engine_at(self, request: web.Request) -> _Hosted:
        """Return the engine at the called address, or raise 503, as connections may outlive pods."""
        assert request.transport is not None
        hosted = self._at.get(request.transport.get_extra_info("sockname")[0])
        if hosted is None:
            raise web.HTTPServiceUnavailable(text="no engine runs at this address\n", headers=_CLOSE)
        return hosted


def _port(pod: Json) -> int:
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or []]
    named = {port.get("name"): int(port["containerPort"]) for port in ports}
    return next(named[name] for name in _PORT_NAMES if name in named)
