"""The time until a restarted API server serves reads of objects that are stored in another version.

It fills its watch cache of each served version through the converter, one object per call.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.schema.json import Json
from hack.bench.conversion.straightforward import TRIVIAL_PATH
from hack.bench.run import OURS
from hack.bench.servers import server_command
from hack.bench.table import Columns
from hack.calling import variants
from hack.calling.reviews import submitted_object
from hack.calling.server_process import ADDRESS, new_identity, run_server
from hack.controlplane import ControlPlane
from hack.controlplane.auditing import conversions
from hack.controlplane.client import Client, RefusedError
from hack.controlplane.network import free_port
from hack.controlplane.process import Process
from hack.installation import Installation

TRIVIAL: Final = "only apiVersion"
_CRD: Final = "variantautoscalings.llmd.ai"
_CRD_PATH: Final = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_CRD}"
_WRITERS: Final = 4
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


OF_RESTARTS: Final[Columns[Restart]] = (
    ("restart of the API server with", lambda one: one.converter),
    ("ready s", lambda one: f"{one.live_seconds:.2f}"),
    ("reads served s", lambda one: f"{one.served_seconds:.2f}"),
    ("conversions", lambda one: str(one.conversions)),
    ("mean ms", lambda one: f"{one.mean_ms:.2f}"),
    ("failed", lambda one: str(one.failures)),
)


def measure_restarts(*, stored: int, rounds: int, say: Callable[[str], None]) -> list[Restart]:
    """Restart the API server of an upgraded cluster with each converter, in alternating order.

    It has Stowplan, and `stored` objects in the old version. Admission is removed, and no controllers run
    that would read or write. Raises ControlPlaneError if the control plane does not start, and RefusedError
    if an object is refused or reads are not served in time.
    """
    say(f"on a control plane with {stored} objects stored in the old version")
    restarts: list[Restart] = []
    with (
        ControlPlane(controller_manager=False, scheduler=False, kwok=False) as control_plane,
        Installation(control_plane) as installation,
        _trivial() as trivial,
    ):
        installation.processes["controller"].stop(patience_seconds=20.0)
        for kind in ("mutating", "validating"):  # admission has its own benchmark
            control_plane.kubectl("delete", f"{kind}webhookconfiguration", "--all")
        ours = _fill(control_plane, stored)["conversion"]["webhook"]["clientConfig"]
        for number in range(rounds):
            for converter in (OURS, TRIVIAL)[:: 1 if number % 2 == 0 else -1]:
                say(f"restart {number + 1} of {rounds}, {converter}")
                _use(control_plane, ours if converter == OURS else trivial)
                restarts.append(_measure_restart(control_plane, converter, stored=stored))
    return restarts


def _fill(control_plane: ControlPlane, stored: int) -> Json:
    """Store objects while the definition is that of an earlier release; return the spec of ours."""
    with control_plane.client() as client:
        spec: Json = client.value("GET", _CRD_PATH)["spec"]
        versions = [version | {"storage": not version["storage"]} for version in spec["versions"]]
        _replace(client, spec | {"versions": versions, "conversion": {"strategy": "None"}})
        control_plane.kubectl("create", "namespace", variants.NAMESPACE)
        values = [submitted_object(value) for value in variants.mixed_objects(variants.OLD, stored)]
        with ThreadPoolExecutor(_WRITERS) as pool:
            parts = [values[n::_WRITERS] for n in range(_WRITERS)]
            list(pool.map(_create_all, [control_plane] * _WRITERS, parts))
        _replace(client, spec)
    return spec


def _replace(client: Client, spec: Json) -> None:
    client.call("PUT", _CRD_PATH, client.value("GET", _CRD_PATH) | {"spec": spec})


def _create_all(control_plane: ControlPlane, values: list[Json]) -> None:
    with control_plane.client() as client:
        for value in values:
            client.call("POST", variants.collection(value["apiVersion"]), value)


def _use(control_plane: ControlPlane, client: Json) -> None:
    patch = [{"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": client}]
    control_plane.kubectl("patch", "crd", _CRD, "--type=json", f"--patch={json.dumps(patch)}")


@contextmanager
def _trivial() -> Iterator[Json]:
    """Run the trivial converter until the block ends, and yield its `clientConfig`."""
    with TemporaryDirectory(prefix="stowplan-bench-") as name:
        directory, port = Path(name), free_port(ADDRESS)
        context = new_identity(directory, server_name=ADDRESS)
        command = [*server_command("hack.bench.conversion.straightforward", "uvloop", name), str(port)]
        (authority,) = context.get_ca_certs(binary_form=True)
        bundle = base64.b64encode(ssl.DER_cert_to_PEM_cert(authority).encode()).decode()
        with run_server(
            command, name="trivial", directory=directory, port=port, context=context, server_name=ADDRESS
        ):
            yield {"url": f"https://{ADDRESS}:{port}{TRIVIAL_PATH}", "caBundle": bundle}


def _measure_restart(control_plane: ControlPlane, converter: str, *, stored: int) -> Restart:
    process = control_plane.processes["kube-apiserver"]
    process.stop(patience_seconds=30.0)
    began = time.monotonic()
    process.start()
    with control_plane.client() as client:
        _until(process, lambda: client.call("GET", "/readyz") == b"ok")
        live = time.monotonic() - began
        for version in (HUB, SPOKE):
            _until(process, partial(_lists_all, client, version, stored))
        served = time.monotonic() - began
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
