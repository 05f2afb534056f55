"""The API server's own account of how long it waited for our webhooks.

A real control plane with Stowplan installed is asked for dry runs, which call the webhooks like any write.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from apiserver.schema.json import Json
from hack.bench.admission import objects
from hack.bench.model import model
from hack.controlplane import ControlPlane
from hack.installation import Installation

_DURATIONS: Final = "apiserver_admission_webhook_admission_duration_seconds"
_NAMESPACE: Final = "bench"
_WARM_UP_CALLS: Final = 20
_TIMEOUT_SECONDS: Final = 30.0
_TRIES: Final = 5
_OURS: Final = ".stowplan.dev"

Totals = Mapping[tuple[str, str], tuple[float, float]]
"""By webhook and operation: calls, and seconds of all of them together."""


class WriteRefusedError(Exception):
    """The API server refused what it should take."""


class ConflictError(WriteRefusedError):
    """Somebody else wrote the object since it was read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanCall:
    """The mean wait for one webhook in one sort of write."""

    kind: str
    webhook: str
    operation: str
    calls: int
    mean_ms: float


def measure_api_server(kinds: Collection[str], *, calls: int) -> list[MeanCall]:
    """Start a control plane, write an object of each kind so often in dry runs, and return the means.

    Raises ControlPlaneError when it does not start, and WriteRefusedError.
    """
    with ControlPlane(scheduler=False, kwok=False) as control_plane, Installation(control_plane):
        control_plane.kubectl("create", "namespace", _NAMESPACE)
        client = _connected(control_plane)
        found: list[MeanCall] = []
        for value, plural in ((model(), "models"), (objects.variant(), "variantautoscalings")):
            if value["kind"] in kinds:
                found += _waits(control_plane, client, _submitted(value), plural, calls=calls)
    return found


def _waits(
    control_plane: ControlPlane, client: Client, value: Json, plural: str, *, calls: int
) -> Iterator[MeanCall]:
    collection = f"/apis/{value['apiVersion']}/namespaces/{_NAMESPACE}/{plural}"
    for _ in range(_WARM_UP_CALLS):
        client.write("POST", f"{collection}?dryRun=All", value)
    before = _totals(control_plane)
    for _ in range(calls):
        client.write("POST", f"{collection}?dryRun=All", value)
    client.write("POST", collection, value)
    item = f"{collection}/{value['metadata']['name']}"
    for _ in range(calls):
        client.rewrite(item, objects.rewritten)
    yield from mean_calls(value["kind"], before, _totals(control_plane))


def mean_calls(kind: str, before: Totals, after: Totals) -> Iterator[MeanCall]:
    """Yield the means between two readings of the totals."""
    for (webhook, operation), (calls, seconds) in sorted(after.items()):
        earlier_calls, earlier_seconds = before.get((webhook, operation), (0.0, 0.0))
        if calls > earlier_calls:
            mean = (seconds - earlier_seconds) / (calls - earlier_calls)
            yield MeanCall(
                kind=kind,
                webhook=webhook,
                operation=operation,
                calls=round(calls - earlier_calls),
                mean_ms=mean * 1000,
            )


def totals(exposition: str) -> Totals:
    """Return the totals of our webhooks from the API server's metrics."""
    wanted = "\n".join(line for line in exposition.splitlines() if line.startswith(_DURATIONS))
    found: dict[tuple[str, str], list[float]] = {}
    for family in text_string_to_metric_families(wanted + "\n"):
        for sample in family.samples:
            part = sample.name.removeprefix(_DURATIONS)
            webhook = sample.labels.get("name", "")
            if part in ("_count", "_sum") and webhook.endswith(_OURS):
                total = found.setdefault((webhook, sample.labels["operation"]), [0.0, 0.0])
                total[part == "_sum"] += sample.value
    return {key: (calls, seconds) for key, (calls, seconds) in found.items()}


def _totals(control_plane: ControlPlane) -> Totals:
    return totals(control_plane.kubectl("get", "--raw", "/metrics").stdout)


def _submitted(value: Json) -> Json:
    """Return an object as a user sends it: what the server itself writes is left away."""
    metadata = {
        key: value["metadata"][key] for key in ("name", "labels", "annotations") if key in value["metadata"]
    }
    return {key: value[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}


def _connected(control_plane: ControlPlane) -> Client:
    pki = control_plane.directory / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    address = urlsplit(control_plane.server)
    return Client(
        http.client.HTTPSConnection(
            address.hostname or "", address.port, context=context, timeout=_TIMEOUT_SECONDS
        )
    )


class Client:
    """One keep-alive connection to the API server, as administrator."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._read: dict[str, Json] = {}

    def rewrite(self, path: str, change: Callable[[Json], Json]) -> None:
        """Update a stored object in a dry run, reading it anew where somebody else changed it meanwhile.

        Raises WriteRefusedError.
        """
        for _ in range(_TRIES):
            if path not in self._read:
                self._read[path] = change(self.write("GET", path))
            try:
                self.write("PUT", f"{path}?dryRun=All", self._read[path])
            except ConflictError:
                del self._read[path]
            else:
                return
        raise WriteRefusedError(f"PUT {path}: somebody else changed it {_TRIES} times")

    def write(self, method: str, path: str, value: Json | None = None) -> Json:
        """Write an object and return what the server made of it; without one, read.

        Raises ConflictError where it is not the stored object that was changed, and WriteRefusedError.
        """
        headers = {"Content-Type": "application/json"}
        self._connection.request(method, path, None if value is None else json.dumps(value), headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status >= http.client.BAD_REQUEST:
            refused = ConflictError if response.status == http.client.CONFLICT else WriteRefusedError
            raise refused(f"{method} {path}: {response.status}: {body.decode(errors='replace')}")
        answered: Json = json.loads(body)
        return answered
