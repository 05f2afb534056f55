"""The time until a restarted API server serves reads of objects that are stored in another version.

It fills its watch cache of each served version through the converter, one object per call.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.schema.json import Json
from hack.bench.compared import OURS
from hack.bench.conversion.upgraded import CRD, client_of
from hack.bench.webhooks_process import answering
from hack.calling import variants
from hack.calling.conversion_reviews import PATH
from hack.calling.server_process import ADDRESS, new_identity, serving
from hack.controlplane import ControlPlane
from hack.controlplane.client import Client, RefusedError
from hack.controlplane.exposition import conversions
from hack.controlplane.network import free_port
from hack.controlplane.process import Process

TRIVIAL: Final = "only apiVersion"
_PATIENCE_SECONDS: Final = 90.0
_POLL_SECONDS: Final = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Restart:
    """One restart of the API server."""

    converter: str
    live_seconds: float
    """From its start until /readyz returns ok."""
    served_seconds: float
    """From its start until both versions list all objects from the cache."""
    conversions: int
    mean_ms: float
    """Mean duration of a conversion call, from the API server's metrics."""
    failures: int


def measure_restarts(
    control_plane: ControlPlane, *, stored: int, rounds: int, progress: Callable[[str], None]
) -> list[Restart]:
    """Restart the API server `rounds` times with each converter, in alternating order.

    Raises RefusedError if reads are not served in time.
    """
    manifest = json.loads(control_plane.kubectl("get", "crd", CRD, "--output=json").stdout)
    clients = {OURS: manifest["spec"]["conversion"]["webhook"]["clientConfig"]}
    restarts: list[Restart] = []
    with _trivial() as clients[TRIVIAL]:
        for number in range(rounds):
            for converter in (OURS, TRIVIAL)[:: 1 if number % 2 == 0 else -1]:
                progress(f"restart {number + 1} of {rounds}, {converter}")
                _use(control_plane, clients[converter])
                restarts.append(_measure_restart(control_plane, converter, stored=stored))
        _use(control_plane, clients[OURS])
    return restarts


def _use(control_plane: ControlPlane, client: Json) -> None:
    patch = [{"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": client}]
    control_plane.kubectl("patch", "crd", CRD, "--type=json", f"--patch={json.dumps(patch)}")


@contextmanager
def _trivial() -> Iterator[Json]:
    """Run the trivial converter until the block ends, and yield its `clientConfig`."""
    with TemporaryDirectory(prefix="stowplan-bench-") as name:
        directory, port = Path(name), free_port(ADDRESS)
        context = new_identity(directory, server_name=ADDRESS)
        command = [*answering("hack.bench.conversion.trivial", "uvloop", directory=name), str(port)]
        (authority,) = context.get_ca_certs(binary_form=True)
        bundle = base64.b64encode(ssl.DER_cert_to_PEM_cert(authority).encode()).decode()
        with serving(
            command, name="trivial", directory=directory, port=port, context=context, server_name=ADDRESS
        ):
            yield {"url": f"https://{ADDRESS}:{port}{PATH}", "caBundle": bundle}


def _measure_restart(control_plane: ControlPlane, converter: str, *, stored: int) -> Restart:
    process = control_plane.processes["kube-apiserver"]
    process.stop(patience_seconds=30.0)
    began = time.monotonic()
    process.start()
    client = client_of(control_plane)
    _until(process, lambda: client.call("GET", "/readyz") == b"ok")
    live = time.monotonic() - began
    for version in (HUB, SPOKE):
        _until(process, lambda version=version: _lists_all(client, version, stored))  # type: ignore[misc]
    served = time.monotonic() - began
    client.close()
    exposition = control_plane.kubectl("get", "--raw", "/metrics").stdout
    calls, seconds, failures = conversions(exposition)
    return Restart(
        converter=converter,
        live_seconds=live,
        served_seconds=served,
        conversions=calls,
        mean_ms=seconds / max(calls, 1) * 1e3,
        failures=failures,
    )


def _lists_all(client: Client, version: str, stored: int) -> bool:
    """Tell whether a version lists all objects; `resourceVersion=0` reads from the cache."""
    return len(client.value("GET", f"{variants.collection(version)}?resourceVersion=0")["items"]) == stored


def _until(process: Process, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            if is_so():
                return
            answered = "incomplete"
        except (OSError, RefusedError) as error:
            answered = str(error)
        process.check()
        if time.monotonic() > deadline:
            raise RefusedError(f"reads are not served {_PATIENCE_SECONDS:.0f} s after a restart: {answered}")
        time.sleep(_POLL_SECONDS)
