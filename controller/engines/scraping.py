"""Scrape metrics directly from pods, and from nothing but pods.

The address comes from the pod's status and must lie in a pod network; the port is one that the pod declares,
or that a binding of its own namespace names; redirects are not followed, and responses are limited in size.
So nothing that a tenant writes into an object can redirect a request elsewhere. A token is sent only if the
configuration has one, which requires TLS and explicit networks (see `controller.config`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, Literal, Self, TypeVar, TypeVarTuple, Unpack

import aiohttp

from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json
from controller.engines.endpoints import (
    TOO_MANY_ENDPOINTS,
    Endpoint,
    EndpointQuery,
    Exposures,
    exposed_in,
    first_of_each_pod,
)
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.metrics import no_engine
from controller.engines.readings import Reading, parse_exposition, reading_of
from controller.engines.requests import (
    NO_CREDENTIALS,
    CredentialFiles,
    CredentialsConfig,
    cause_of,
    read_bounded,
)
from controller.engines.turns import PodRequest, Turns
from controller.policies.measuring import PodExposure

K = TypeVar("K")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

METRICS_PATH: Final = "/metrics"
_OK: Final = 200
_NAMESPACE_SECONDS: Final = 2.0
_POD_SECONDS: Final = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class ScrapeLimits:
    """Which pods may be scraped, and limits on time and size."""

    port_names: tuple[str, ...]
    pod_networks: tuple[IPv4Network | IPv6Network, ...]
    timeout_seconds: float
    limit_bytes: int
    concurrency: int
    scheme: Literal["http", "https"] = "http"
    credentials: CredentialsConfig = NO_CREDENTIALS


@dataclass(frozen=True, kw_only=True, slots=True)
class ScrapeResult:
    """The readings of the pods that responded, and the errors of the others."""

    readings: Mapping[Key, Reading]
    failures: Mapping[Key, str]


class ParsingTime:
    """CPU time for parsing the pages of each namespace in one round.

    Sixteen engines in one pod take 0.03 s. Without a limit, a tenant with a hundred pods whose pages are as
    expensive as they may be would delay the metrics of all others beyond the age at which they are stale.
    """

    def __init__(self, namespaces: Iterable[str], *, clock: Callable[[], float] = time.thread_time) -> None:
        """Create it for pages with these namespaces; `clock` is that of the parsing thread."""
        self._clock = clock
        self._left_seconds = {
            namespace: _NAMESPACE_SECONDS + _POD_SECONDS * pages
            for namespace, pages in Counter(namespaces).items()
        }

    def spend(self, namespace: str, parse: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Return what `parse` returns. Raises UnreadableMetricsError if the namespace has no time left."""
        if self._left_seconds[namespace] <= 0:
            raise UnreadableMetricsError("pages of this namespace took too long: serve fewer series")
        began = self._clock()
        try:
            return parse(*args)
        finally:
            self._left_seconds[namespace] -= self._clock() - began


def parse_networks(texts: Sequence[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return networks from CIDR notation. Raises ValueError naming an invalid one."""
    return tuple(ip_network(text) for text in texts)


def metrics_url(pod: Json, limits: ScrapeLimits) -> str:
    """Return the URL of a pod's metrics. Raises UnreadableMetricsError if it must not be scraped."""
    return f"{_origin(pod, None, limits)}{METRICS_PATH}"


def _origin(pod: Json, port: int | None, limits: ScrapeLimits) -> str:
    """Return the origin of a pod's URL, with the given port or else the one that its containers name."""
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        raise UnreadableMetricsError("the pod has no address yet")
    if pod["spec"].get("hostNetwork"):
        raise UnreadableMetricsError("the pod uses its node's network, where other processes can listen")
    if not _may_ask(address, limits):
        raise UnreadableMetricsError(f"{address} is outside the configured pod networks")
    host = f"[{address}]" if ":" in address else address
    return f"{limits.scheme}://{host}:{_port(pod, limits.port_names) if port is None else port}"


class Scraper:
    """Scrapes pods concurrently. Use as `async with Scraper(limits) as scraper`."""

    def __init__(
        self,
        limits: ScrapeLimits,
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        """`steady` is the clock for the times of readings, `clock` the one for timestamps from engines."""
        self._limits = limits
        self._clock = clock
        self._steady = steady or clock
        self._files = CredentialFiles(limits.credentials)
        self._gate = asyncio.Semaphore(limits.concurrency)
        self._engines = Turns[Key, Reading](limits.concurrency)
        self._endpoints = Turns[Endpoint, PodExposure](limits.concurrency)
        # The lease must be renewed while a large page is parsed. The default threads are for planning, and
        # pages of bindings must not delay those of engines. One thread each: parsing holds the interpreter.
        self._engine_pages = ThreadPoolExecutor(1, "engine-pages")
        self._endpoint_pages = ThreadPoolExecutor(1, "binding-pages")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Turns limit concurrency, and the timeout starts with the turn: a pod that waits behind silent ones
        # must not be considered silent.
        connector = aiohttp.TCPConnector(limit=0)
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._engines.close()
        await self._endpoints.close()
        if self._session is not None:
            await self._session.close()
        for threads in (self._engine_pages, self._endpoint_pages):
            threads.shutdown(wait=False, cancel_futures=True)

    async def scrape(self, pods: Sequence[Json]) -> ScrapeResult:
        """Return the readings of the pods; the failure of one does not affect others."""
        keys = [key_of(pod) for pod in pods]
        try:
            arguments = await self._files.arguments(is_encrypted=self._limits.scheme == "https")
        except UnreadableMetricsError as error:
            return ScrapeResult(readings={}, failures=dict.fromkeys(keys, str(error)))
        budget = ParsingTime(namespace for namespace, _ in keys)
        requests = {key_of(pod): self._of_engine(pod, arguments, budget) for pod in pods}
        readings, failures = _separate(await self._engines.ask(requests))
        return ScrapeResult(readings=readings, failures=failures)

    async def expose(self, questions: Sequence[EndpointQuery]) -> Exposures:
        """Return what pods expose at some endpoints; the failure of one does not affect others.

        An endpoint in several questions is requested once, for all of their metrics.
        """
        names_of: dict[EndpointQuery, set[str]] = {}
        for item in questions:
            names_of.setdefault(item, set()).update(item.names)
        try:
            arguments = await self._files.arguments(is_encrypted=self._limits.scheme == "https")
        except UnreadableMetricsError as error:
            return Exposures(failures=dict.fromkeys((item.endpoint for item in names_of), str(error)))
        budget = ParsingTime(key_of(item.pod)[0] for item in names_of)
        first = first_of_each_pod(item.endpoint for item in names_of)
        requests = {
            item.endpoint: self._of_endpoint(item, names, arguments, budget)
            for item, names in names_of.items()
            if item.endpoint in first
        }
        looks, failures = _separate(await self._endpoints.ask(requests))
        excess = {item.endpoint: TOO_MANY_ENDPOINTS for item in names_of if item.endpoint not in requests}
        return Exposures(looks=looks, failures=failures | excess)

    async def read(self, pod: Json, port: int, path: str) -> str:
        """Return a pod's response at a path. Raises UnreadableMetricsError with the reason on failure."""
        async with self._gate:
            return await self._fetch(pod, port, path, {})

    def _of_engine(self, pod: Json, arguments: dict[str, Any], budget: ParsingTime) -> PodRequest[Reading]:
        async def parse(text: str) -> Reading:
            now_seconds, steady_seconds = self._clock(), self._steady()
            reading = await asyncio.get_running_loop().run_in_executor(
                self._engine_pages, budget.spend, key_of(pod)[0], _parse_reading, text, now_seconds
            )
            return replace(reading, time_seconds=steady_seconds - (now_seconds - reading.time_seconds))

        return PodRequest(partial(self._fetch, pod, None, METRICS_PATH, arguments), parse)

    def _of_endpoint(
        self, item: EndpointQuery, names: set[str], arguments: dict[str, Any], budget: ParsingTime
    ) -> PodRequest[PodExposure]:
        async def parse(text: str) -> PodExposure:
            asked_seconds = self._steady()
            exposed = await asyncio.get_running_loop().run_in_executor(
                self._endpoint_pages, budget.spend, key_of(item.pod)[0], exposed_in, text, names
            )
            return PodExposure(asked_seconds, exposed)

        _, _, port, path = item.endpoint
        return PodRequest(partial(self._fetch, item.pod, port, path, arguments), parse)

    async def _fetch(self, pod: Json, port: int | None, path: str, arguments: dict[str, Any]) -> str:
        assert self._session is not None, "enter the scraper before asking"
        url = f"{_origin(pod, port, self._limits)}{path}"
        try:
            async with (
                asyncio.timeout(self._limits.timeout_seconds),
                self._session.get(url, allow_redirects=False, **arguments) as response,
            ):
                if response.status != _OK:
                    raise UnreadableMetricsError(f"{response.url.path} responds with HTTP {response.status}")
                body = await read_bounded(response, self._limits.limit_bytes)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreadableMetricsError(f"no answer: {cause_of(error)}") from error
        return body.decode(errors="replace")


def _separate(answers: Mapping[K, T | str]) -> tuple[dict[K, T], dict[K, str]]:
    """Return the answers, and why pods gave none."""
    failures = {key: item for key, item in answers.items() if isinstance(item, str)}
    return {key: item for key, item in answers.items() if not isinstance(item, str)}, failures


def _parse_reading(text: str, time_seconds: float) -> Reading:
    series = parse_exposition(text)
    if not series:
        raise UnreadableMetricsError(no_engine(text))
    return reading_of(series, time_seconds=time_seconds)


def _may_ask(text: str, limits: ScrapeLimits) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if limits.pod_networks:
        return any(address in network for network in limits.pod_networks)
    return not (
        address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
    )


def _port(pod: Json, names: Sequence[str]) -> int:
    containers = pod["spec"].get("containers") or []
    ports = [port for container in containers for port in container.get("ports") or []]
    tcp_ports = [port for port in ports if port.get("protocol", "TCP") == "TCP"]
    for name in names:
        for port in tcp_ports:
            if port.get("name") == name:
                return int(port["containerPort"])
    if len(tcp_ports) == 1:
        return int(tcp_ports[0]["containerPort"])
    raise UnreadableMetricsError(f"no container port is named {' or '.join(names)}")
