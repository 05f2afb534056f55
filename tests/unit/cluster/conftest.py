"""A small API server with versions, conflicts, pages, watches with history, and faults on request."""

from __future__ import annotations

import asyncio
import copy
import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from apiserver.cluster.client import Cluster
from apiserver.cluster.timing import Timing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

Json = dict[str, Any]
Address = tuple[str, str, str]
"""API prefix and plural, namespace, name."""


@dataclass(frozen=True)
class Location:
    """The parts of a REST path."""

    collection: str
    namespace: str
    name: str
    subresource: str


def locate(path: str) -> Location:
    """Return the parts of a REST path."""
    parts = path.strip("/").split("/")
    prefix, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    rest += ["", "", ""]
    return Location("/".join([*prefix, rest[0]]), namespace, rest[1], rest[2])


def status(code: int, reason: str, message: str, **details: object) -> Json:
    """Return a `Status` for a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        "details": details,
    }


class Refusal(Exception):  # noqa: N818 (the name describes the event)
    """An error response."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status(code, reason, message)


@dataclass
class Fault:
    """A fault that replaces a regular response."""

    code: int = 500
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    sever: bool = False


class FakeApiServer:
    """State and behaviour of the server; tests change the state directly or over HTTP."""

    def __init__(self) -> None:
        self.objects: dict[Address, Json] = {}
        self.version, self.oldest = 100, 0
        self.history: list[tuple[int, str, str, Json]] = []
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.requests: list[web.Request] = []
        self.bodies: list[Any] = []
        self.tokens: set[str] | None = None
        self.unserved_groups: set[str] = set()
        self.page_limit = 500
        self.expire_continue = False
        self._changed = asyncio.Event()
        self._watch_generation = 0
        self.url = ""
        self.app = web.Application()
        self.app.router.add_route("*", "/{path:.*}", self._handle)

    def fail(self, kind: str, *, times: int = 1, **fields: Any) -> None:
        """Add faults for the next requests with a method, or for `WATCH`."""
        self.faults[kind] += [Fault(**fields)] * times

    # Changes that a test makes directly.

    def put(self, path: str, obj: Json) -> Json:
        """Store an object, as if by another client."""
        where = locate(path)
        address = (where.collection, where.namespace, obj["metadata"]["name"])
        event = "MODIFIED" if address in self.objects else "ADDED"
        stored = copy.deepcopy(obj)
        if where.namespace:
            stored["metadata"]["namespace"] = where.namespace
        stored["metadata"].setdefault("uid", f"uid-{self.version}")
        if address in self.objects:
            stored["metadata"]["uid"] = self.objects[address]["metadata"]["uid"]
        self._record(event, address, stored)
        return stored

    def drop(self, path: str) -> None:
        """Delete an object, as if by another client."""
        where = locate(path)
        address = (where.collection, where.namespace, where.name)
        self._record("DELETED", address, copy.deepcopy(self.objects[address]))

    def end_watches(self) -> None:
        """End every running watch without an error."""
        self._watch_generation += 1
        self._wake()

    def compact(self) -> None:
        """Delete the history: every version up to now has expired."""
        self.oldest = self.version
        self.history.clear()

    def bookmark(self) -> None:
        """Send a bookmark to every watch."""
        self.version += 1
        self._append(self.version, "BOOKMARK", "", {"metadata": {"resourceVersion": str(self.version)}})

    def _record(self, event: str, address: Address, obj: Json) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        if event == "DELETED":
            self.objects.pop(address)
        else:
            self.objects[address] = obj
        self._append(self.version, event, address[0], obj)

    def _append(self, version: int, event: str, collection: str, obj: Json) -> None:
        self.history.append((version, event, collection, copy.deepcopy(obj)))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # Request handling.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append(request)
        self.bodies.append(json.loads(body) if body else None)
        kind = "WATCH" if request.query.get("watch") else request.method
        if self.faults[kind]:
            return await self._fail(request, self.faults[kind].pop(0))
        try:
            self._authenticate(request)
            if request.path == "/version":
                return web.json_response({"gitVersion": "v0"})
            if kind == "WATCH":
                return await self._watch(request)
            handle = getattr(self, f"_{request.method.lower()}")
            return web.json_response(await handle(request, locate(request.path), self.bodies[-1]))
        except Refusal as refusal:
            return web.json_response(refusal.status, status=refusal.status["code"])

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.hang:
            await asyncio.Event().wait()
        if fault.sever:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=fault.code, body=fault.body, headers=fault.headers)

    def _authenticate(self, request: web.Request) -> None:
        if self.unserved_groups & {*request.path.split("/")}:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and token not in self.tokens:
            raise Refusal(401, "Unauthorized", "Unauthorized")

    def _find(self, where: Location) -> Json:
        try:
            return self.objects[where.collection, where.namespace, where.name]
        except KeyError:
            plural = where.collection.rpartition("/")[2]
            raise Refusal(404, "NotFound", f'{plural} "{where.name}" not found') from None

    async def _get(self, request: web.Request, where: Location, _body: object) -> Json:
        if where.name:
            return self._find(where)
        return self._list(request, where)

    def _list(self, request: web.Request, where: Location) -> Json:
        token, limit = request.query.get("continue"), int(request.query.get("limit") or self.page_limit)
        if token and self.expire_continue:
            self.expire_continue = False
            raise Refusal(410, "Expired", "The provided continue parameter is too old")
        items = [obj for _, obj in sorted(self._in(where).items())]
        start = int(token or 0)
        metadata = {"resourceVersion": str(self.version)}
        if start + limit < len(items):
            metadata["continue"] = str(start + limit)
        page = [self._cut(request, item) for item in items[start : start + limit]]
        return {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": page}

    def _in(self, where: Location) -> dict[Address, Json]:
        return {
            address: obj
            for address, obj in self.objects.items()
            if address[0] == where.collection and where.namespace in {"", address[1]}
        }

    def _cut(self, request: web.Request, obj: Json) -> Json:
        if "as=PartialObjectMetadata" in request.headers["Accept"]:
            return {"kind": "PartialObjectMetadata", "metadata": obj["metadata"]}
        return {name: value for name, value in obj.items() if name not in {"kind", "apiVersion"}}

    async def _post(self, _request: web.Request, where: Location, body: Json) -> Json:
        if where.subresource == "eviction":
            return await self._evict(where, body)
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{self.version}"
        if (where.collection, where.namespace, name) in self.objects:
            raise Refusal(409, "AlreadyExists", f'"{name}" already exists')
        body["metadata"]["name"] = name
        path = f"{where.collection}/" if not where.namespace else self._path(where)
        return self.put(path, body)

    async def _evict(self, where: Location, body: Json) -> Json:
        pod = self._find(where)
        if pod["metadata"]["uid"] != body["deleteOptions"]["preconditions"]["uid"]:
            raise Refusal(409, "Conflict", "Precondition failed: uid")
        if pod["metadata"].get("labels", {}).get("budget") == "0":
            raise Refusal(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's budget.")
        self.drop(f"/{self._path(where)}")
        return status(201, "", "")

    async def _put(self, _request: web.Request, where: Location, body: Json) -> Json:
        current = self._find(where)
        version = body["metadata"].get("resourceVersion")
        if version and version != current["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified")
        return self.put(self._path(where), body)

    async def _delete(self, request: web.Request, where: Location, body: Json) -> Json:
        current = self._find(where)
        for key, value in (body.get("preconditions") or {}).items():
            if current["metadata"][key] != value:
                raise Refusal(409, "Conflict", f"Precondition failed: {key}")
        self.drop(request.path)
        return status(200, "", "")

    async def _patch(self, request: web.Request, where: Location, body: Any) -> Json:  # noqa: ANN401 (an object or a list of operations)
        if request.content_type == "application/apply-patch+yaml":
            key = (where.collection, where.namespace, where.name)
            return self.put(self._path(where), merged(self.objects.get(key, {}), body))
        if request.content_type == "application/json-patch+json":
            obj = copy.deepcopy(self._find(where))
            for operation in body:
                patch(obj, operation)
            return self.put(self._path(where), obj)
        if request.content_type == "application/merge-patch+json":
            obj = self._find(where)
            if body["metadata"].get("resourceVersion") not in {None, obj["metadata"]["resourceVersion"]}:
                raise Refusal(409, "Conflict", "the object has been modified")
            return self.put(self._path(where), merged(obj, body))
        raise Refusal(415, "UnsupportedMediaType", request.content_type)

    def _path(self, where: Location) -> str:
        prefix, _, plural = where.collection.rpartition("/")
        scope = f"/namespaces/{where.namespace}" if where.namespace else ""
        return f"{prefix}{scope}/{plural}/{where.name}"

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        where, seen = locate(request.path), int(request.query["resourceVersion"])
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if seen < self.oldest:
            gone = status(410, "Expired", f"too old resource version: {seen}")
            await self._send(response, "ERROR", gone)
            return response
        generation = self._watch_generation
        while True:
            changed = self._changed
            for version, event, collection, obj in [*self.history]:
                if version > seen and collection in {"", where.collection}:
                    cut = obj if event == "BOOKMARK" else self._cut(request, obj)
                    await self._send(response, event, cut)
                    seen = version
            if self._watch_generation != generation:
                return response
            await changed.wait()

    async def _send(self, response: web.StreamResponse, event: str, obj: Json) -> None:
        await response.write(json.dumps({"type": event, "object": obj}).encode() + b"\n")


def merged(old: Json, new: Json) -> Json:
    """Return one object merged over another, recursively."""
    result = dict(old)
    for name, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(name), dict)
        result[name] = merged(old[name], value) if both else value
    return result


def patch(obj: Json, operation: Json) -> None:
    """Apply one JSON patch operation to objects (not lists)."""
    *parents, last = operation["path"].strip("/").replace("~1", "/").split("/")
    for name in parents:
        obj = obj[name]
    if operation["op"] == "test" and obj.get(last) != operation["value"]:
        raise Refusal(422, "Invalid", "the server rejected our request due to an error in our request")
    if operation["op"] in {"add", "replace"}:
        obj[last] = operation["value"]


class Clock:
    """A fake clock that advances only by sleeping, which returns at once."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Advance the time; the yield lets other tasks run."""
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Clock:
    """Return a fake clock."""
    return Clock()


@pytest.fixture
def timing(clock: Clock) -> Timing:
    """Return timing with the fake clock and a constant random number."""
    return Timing(clock=clock, sleep=clock.sleep, random=lambda: 0.0)


@pytest.fixture
async def api() -> AsyncIterator[FakeApiServer]:
    """Run an API server on a loopback port."""
    fake = FakeApiServer()
    server = TestServer(fake.app)
    await server.start_server(shutdown_timeout=0.01)
    fake.url = f"http://127.0.0.1:{server.port}"
    yield fake
    await server.close()


def kubeconfig_of(url: str, **user: str) -> Json:
    """Return a kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }


@pytest.fixture
def write_kubeconfig(api: FakeApiServer, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a kubeconfig for the running server with given user entries."""

    def write(**user: str) -> Path:
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(kubeconfig_of(api.url, **user)))
        return path

    return write


@pytest.fixture
async def cluster(write_kubeconfig: Callable[..., Path]) -> AsyncIterator[Cluster]:
    """Return a connection to the running server."""
    path = write_kubeconfig(token="t-1")  # noqa: S106 (a token for tests)
    async with await Cluster.connect(path, environ={}) as connected:
        yield connected
