"""A keep-alive connection to the API server as administrator: each kubectl is a process of 50 ms or more."""

from __future__ import annotations

import http.client
import json
import math
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from apiserver.schema.json import Json
from hack.controlplane.errors import NotReadyError

_TIMEOUT_SECONDS: Final = 60.0
_CLUSTER_SCOPED: Final = frozenset(
    {
        *("APIService", "CustomResourceDefinition", "Namespace", "Node", "PriorityClass"),
        *("ClusterRole", "ClusterRoleBinding"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    }
)
MERGE_PATCH: Final = "application/merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"


class RefusedError(Exception):
    """The API server rejected a request that should succeed."""


class ConflictError(RefusedError):
    """The object was changed since it was read."""


def collection_of(api_version: str, kind: str, namespace: str) -> str:
    """Return the path of all objects of a kind, in a namespace unless the kind is in none."""
    word = kind.lower()
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}es" if word.endswith("s") else f"{word}s"
    root = "/apis" if "/" in api_version else "/api"
    where = "" if kind in _CLUSTER_SCOPED else f"/namespaces/{namespace}"
    return f"{root}/{api_version}{where}/{plural}"


class PathNotServedError(RefusedError):
    """There is no such path or object, or the storage of its kind is not ready."""


class Client:
    """A JSON client for one API server; not thread-safe."""

    def __init__(self, server: str, pki: Path) -> None:
        self._address = urlsplit(server)
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._connection = self._new()

    def _new(self) -> http.client.HTTPSConnection:
        host, port = self._address.hostname or "", self._address.port
        return http.client.HTTPSConnection(host, port, context=self._context, timeout=_TIMEOUT_SECONDS)

    def call(
        self,
        method: str,
        path: str,
        value: Json | bytes | None = None,
        *,
        media_type: str = "application/json",
    ) -> bytes:
        """Send a request with a body of a media type, such as `MERGE_PATCH`; return the response.

        The body is an object, or its text. Raises ConflictError if the object was changed since it was read,
        RefusedError for other error codes, and OSError if the server cannot be reached.
        """
        headers = {"Content-Type": media_type}
        body = json.dumps(value) if isinstance(value, dict) else value
        try:
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            answered = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = self._new()
            raise
        if response.status >= http.client.BAD_REQUEST:
            raise _refusal(response.status, f"{method} {path}", answered)
        return answered

    def value(self, method: str, path: str, value: Json | None = None) -> Json:
        """Send a request and return the decoded object."""
        answered: Json = json.loads(self.call(method, path, value))
        return answered

    def apply(self, manifest: Json, *, namespace: str) -> Json:
        """Apply an object server-side, by force; return the stored one. Raises as `call`.

        `namespace` is for an object that names none.
        """
        metadata = manifest["metadata"]
        where = metadata.get("namespace", namespace)
        path = f"{collection_of(manifest['apiVersion'], manifest['kind'], where)}/{metadata['name']}"
        query = "fieldManager=kubectl&force=true&fieldValidation=Strict"
        stored: Json = json.loads(self.call("PATCH", f"{path}?{query}", manifest, media_type=_APPLY_PATCH))
        return stored

    def timed_call(self, method: str, path: str, value: Json | None = None) -> tuple[float, bytes]:
        """Send a request and return the elapsed seconds and the body."""
        began = time.perf_counter()
        answered = self.call(method, path, value)
        return time.perf_counter() - began, answered

    def watch(self, collection: str, name: str, *, seconds: float) -> Iterator[Json]:
        """Yield the current state of an object, and each later one, for some seconds; {} once it is deleted.

        Raises RefusedError, and OSError if the server cannot be reached.
        """
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:  # a server may end a watch at any time
            query = f"watch=true&fieldSelector=metadata.name%3D{name}&timeoutSeconds={math.ceil(left)}"
            with closing(self._new()) as connection:
                connection.request("GET", f"{collection}?{query}")
                response = connection.getresponse()
                if response.status >= http.client.BAD_REQUEST:
                    raise _refusal(response.status, f"GET {collection}", response.read())
                for event in map(json.loads, response):
                    if event["type"] == "ERROR":
                        break
                    yield {} if event["type"] == "DELETED" else event["object"]

    def wait_until_true(self, condition: str, collection: str, name: str, *, seconds: float) -> Json:
        """Return an object once it has a condition. Raises NotReadyError after a time, and as `watch`."""
        for state in self.watch(collection, name, seconds=seconds):
            if _is_true(condition, state):
                return state
        raise NotReadyError(f"{collection}/{name} is not {condition} after {seconds:.0f} s")

    def wait_until_served(self, definition: Json, *, seconds: float) -> None:
        """Wait until objects of an established definition can be listed, which takes some milliseconds.

        This sets up its storage. A definition that is deleted meanwhile may stay for minutes. Raises
        NotReadyError after a time, and OSError if the server cannot be reached.
        """
        spec, deadline = definition["spec"], time.monotonic() + seconds
        for version in (item["name"] for item in spec["versions"] if item["served"]):
            while not self._is_served(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1"):
                if time.monotonic() > deadline:
                    raise NotReadyError(f"{definition['metadata']['name']} is not served as {version}")

    def _is_served(self, path: str) -> bool:
        try:
            self.call("GET", path)
        except PathNotServedError:
            return False
        except RefusedError:  # stored objects cannot be converted at the moment
            return True
        return True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _is_true(condition: str, state: Json) -> bool:
    conditions = state.get("status", {}).get("conditions") or []
    return any(item["type"] == condition and item["status"] == "True" for item in conditions)


_ERRORS: Final[Mapping[int, type[RefusedError]]] = {
    http.client.CONFLICT: ConflictError,
    http.client.NOT_FOUND: PathNotServedError,
    http.client.TOO_MANY_REQUESTS: PathNotServedError,
}


def _refusal(status: int, what: str, answered: bytes) -> RefusedError:
    refused = _ERRORS.get(status, RefusedError)
    return refused(f"{what}: {status}: {answered[:500].decode(errors='replace')}")
