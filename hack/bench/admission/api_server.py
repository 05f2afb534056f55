"""Latency of our webhooks, as measured by the API server itself.

Dry-run writes are sent to a real control plane with Stowplan installed; they call the webhooks like any other
write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from hack.bench.admission import objects
from hack.calling.received import model, submitted_object
from hack.controlplane import ControlPlane
from hack.controlplane.client import Client, ConflictError, RefusedError
from hack.controlplane.exposition import durations
from hack.installation import Installation

_NAMESPACE: Final = "bench"
_WARM_UP_CALLS: Final = 20
_TRIES: Final = 5
_OURS: Final = ".stowplan.dev"

Totals = Mapping[tuple[str, ...], tuple[int, float]]
"""By webhook and operation: the number of calls, and their total duration in seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanCall:
    """The mean latency of one webhook for one kind and operation."""

    kind: str
    webhook: str
    operation: str
    calls: int
    mean_ms: float


def measure_api_server(kinds: Collection[str], *, calls: int) -> list[MeanCall]:
    """Start a control plane, create and update an object of each kind `calls` times, and return the means.

    The measured writes are dry runs. Raises ControlPlaneError if the control plane does not start, and
    RefusedError if a write is refused.
    """
    with ControlPlane(scheduler=False, kwok=False) as control_plane, Installation(control_plane):
        control_plane.kubectl("create", "namespace", _NAMESPACE)
        means: list[MeanCall] = []
        with control_plane.client() as client:
            for value, plural in ((model(), "models"), (objects.variant(), "variantautoscalings")):
                if value["kind"] in kinds:
                    means += _waits(control_plane, client, submitted_object(value), plural, calls=calls)
    return means


def _waits(
    control_plane: ControlPlane, client: Client, value: Json, plural: str, *, calls: int
) -> Iterator[MeanCall]:
    collection = f"/apis/{value['apiVersion']}/namespaces/{_NAMESPACE}/{plural}"
    for _ in range(_WARM_UP_CALLS):
        client.call("POST", f"{collection}?dryRun=All", value)
    before = _totals(control_plane)
    for _ in range(calls):
        client.call("POST", f"{collection}?dryRun=All", value)
    client.call("POST", collection, value)
    rewrite(client.value, f"{collection}/{value['metadata']['name']}", objects.rewritten, times=calls)
    yield from mean_calls(value["kind"], before, _totals(control_plane))


def rewrite(ask: Callable[..., Json], path: str, change: Callable[[Json], Json], *, times: int) -> None:
    """Update a stored object `times` times in dry runs, and read it again after each conflict.

    Raises RefusedError if an update is refused, or conflicts several times in a row.
    """
    changed, beaten = None, 0
    while times:
        try:
            changed = changed or change(ask("GET", path))
            ask("PUT", f"{path}?dryRun=All", changed)
            times, beaten = times - 1, 0
        except ConflictError:
            changed, beaten = None, beaten + 1
            if beaten == _TRIES:
                raise RefusedError(f"PUT {path}: another client changed it {_TRIES} times") from None


def mean_calls(kind: str, before: Totals, after: Totals) -> Iterator[MeanCall]:
    """Yield the mean latencies of the calls between two readings of the totals."""
    for (webhook, operation), (calls, seconds) in sorted(after.items()):
        earlier_calls, earlier_seconds = before.get((webhook, operation), (0, 0.0))
        if calls > earlier_calls:
            yield MeanCall(
                kind=kind,
                webhook=webhook,
                operation=operation,
                calls=calls - earlier_calls,
                mean_ms=(seconds - earlier_seconds) / (calls - earlier_calls) * 1000,
            )


def totals(exposition: str) -> Totals:
    """Return the totals of our webhooks from the API server's metrics."""
    name = "apiserver_admission_webhook_admission_duration_seconds"
    by_labels = durations(exposition, name, "name", "operation")
    return {key: total for key, total in by_labels.items() if key[0].endswith(_OURS)}


def _totals(control_plane: ControlPlane) -> Totals:
    return totals(control_plane.kubectl("get", "--raw", "/metrics").stdout)
