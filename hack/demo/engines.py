"""Simulated engines instead of containers: each listens on its pod's own address and port.

Pods are followed through the API. A Ready pod that requests a simulated engine, by arguments in its template
and annotations, gets one, which joins the fleet. (Pods of a Model have no annotations of their own; engine
arguments replace them.) Until the pod is Ready nothing listens there, as with a real engine that loads its
model. A pod being deleted gets no new requests. When a pod is gone, so is its engine, and unfinished requests
are retried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from aiohttp import web

from apiserver.schema.json import Json
from controller.observe.expected_performance import engine_argument
from controller.observe.pods import is_ready
from controller.simulation.fleet import Fleet
from controller.simulation.profile import EngineProfile
from controller.simulation.server import CONTENT_TYPE, Server, exposition
from hack.demo.openai_api import OpenAiApi, ServedModel
from hack.demo.phases import SimulatedClock

DECODE_ANNOTATION = "simulation.stowplan.dev/decode-parms"
PREFILL_ANNOTATION = "simulation.stowplan.dev/prefill-parms"
START_UP_ANNOTATION = "simulation.stowplan.dev/start-up"
"""Seconds such as `20s` from binding until the pod is Ready; kwok waits for that time."""

_FLAGS = {
    "--simulated-decode-parms": DECODE_ANNOTATION,
    "--simulated-prefill-parms": PREFILL_ANNOTATION,
}
_SECONDS = re.compile(r"[0-9]{1,4}s\Z")
_MODEL_FLAG = "--model="
_SERVED_FLAG = "--served-model-name"
_SIZES = ("num-gpu-blocks-override", "max-num-seqs", "max-num-batched-tokens", "block-size")


class UnreadableProfileError(ValueError):
    """A pod requests a simulated engine with an invalid profile; the message names pod and field."""


def is_simulated(pod: Json) -> bool:
    """Tell whether a pod requests a simulated engine."""
    return DECODE_ANNOTATION in _arguments_of(pod)


def profile_of(pod: Json) -> EngineProfile:
    """Return the profile of a pod that `is_simulated`. Raises UnreadableProfileError."""
    try:
        return _profile(pod["spec"], _arguments_of(pod))
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableProfileError(f"pod {pod['metadata']['name']}: {error}") from error


def start_up_seconds_of(pod: Json) -> float:
    """Return the start-up time of a pod's engine in seconds. Raises UnreadableProfileError."""
    text = pod["metadata"]["annotations"].get(START_UP_ANNOTATION, "0s")
    if not _SECONDS.match(text):
        raise UnreadableProfileError(f"{START_UP_ANNOTATION}: must be seconds such as 20s, was {text!r}")
    return float(text.removesuffix("s"))


def _arguments_of(pod: Json) -> dict[str, str]:
    pairs = pairwise(_words(pod["spec"]))
    arguments = {_FLAGS[flag]: text for flag, text in pairs if flag in _FLAGS}
    return arguments | (pod["metadata"].get("annotations") or {})


def _words(spec: Json) -> list[str]:
    return [
        word
        for container in spec["containers"]
        for word in (*(container.get("command") or []), *(container.get("args") or []))
    ]


def _profile(spec: Json, annotations: dict[str, str]) -> EngineProfile:
    decode, prefill = json.loads(annotations[DECODE_ANNOTATION]), json.loads(annotations[PREFILL_ANNOTATION])
    sizes = {name: engine_argument(spec, name) for name in _SIZES}
    blocks = sizes.pop("num-gpu-blocks-override")
    if blocks is None:
        raise ValueError("--num-gpu-blocks-override must be given")
    stated = {name.replace("-", "_"): value for name, value in sizes.items() if value is not None}
    return EngineProfile(
        model_id=_model(spec),
        alpha_ms=float(decode["alpha"]),
        beta_ms=float(decode["beta"]),
        gamma_ms=float(prefill["gamma"]),
        delta_ms=float(prefill["delta"]),
        num_gpu_blocks=blocks,
        role="",
        **stated,
    )


def _model(spec: Json) -> str:
    arguments = _words(spec)
    models = [text.removeprefix(_MODEL_FLAG) for text in arguments if text.startswith(_MODEL_FLAG)]
    models += [name for flag, name in pairwise(arguments) if flag == _SERVED_FLAG]
    if len(models) != 1:
        raise ValueError(
            f"{_MODEL_FLAG}NAME or {_SERVED_FLAG} NAME must be given once, was given {len(models)} times"
        )
    return models[0]


_PORT_NAMES = ("metrics", "http")
_CLOSE = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class _Hosted:
    """An engine with its listener, the model that it serves, and its adapters."""

    server: Server
    served: ServedModel
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
        ready_pods = {pod["metadata"]["uid"]: pod for pod in pods if is_simulated(pod) and is_ready(pod)}
        for uid in [uid for uid in self._hosted if uid not in ready_pods]:
            await self._stop(uid)
        for uid, pod in ready_pods.items():
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
        hosted = _Hosted(Server(profile, now_us=now_us), ServedModel(profile.model_id), address, site)
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
