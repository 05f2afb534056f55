"""An upgraded cluster: Stowplan, and objects that an earlier release stored in the old version."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from apiserver.schema.json import Json
from hack.calling import variants
from hack.calling.received import submitted_object
from hack.controlplane import ControlPlane
from hack.controlplane.client import Client
from hack.installation import Installation

CRD: Final = "variantautoscalings.llmd.ai"
_CRD_PATH: Final = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}"
_WRITERS: Final = 4


@contextmanager
def upgraded_control_plane(stored: int) -> Iterator[tuple[ControlPlane, Installation]]:
    """Run a control plane with Stowplan and `stored` objects in the old version until the block ends.

    Admission is removed, and no controllers run that would read or write. Raises ControlPlaneError if the
    control plane does not start, and RefusedError if an object is refused.
    """
    with (
        ControlPlane(controller_manager=False, scheduler=False, kwok=False) as control_plane,
        Installation(control_plane) as installation,
    ):
        installation.processes["controller"].stop(patience_seconds=20.0)
        for kind in ("mutating", "validating"):  # admission has its own benchmark
            control_plane.kubectl("delete", f"{kind}webhookconfiguration", "--all")
        _fill(control_plane, stored)
        yield control_plane, installation


def client_of(control_plane: ControlPlane) -> Client:
    """Return a client with all permissions."""
    return Client(control_plane.server, control_plane.directory / "pki")


def stored_old(spec: Json) -> Json:
    """Return the spec of a CRD that stores the old version without conversion, like earlier releases."""
    versions = [version | {"storage": not version["storage"]} for version in spec["versions"]]
    return spec | {"versions": versions, "conversion": {"strategy": "None"}}


def _fill(control_plane: ControlPlane, stored: int) -> None:
    client = client_of(control_plane)
    spec = client.value("GET", _CRD_PATH)["spec"]
    _replace(client, stored_old(spec))
    control_plane.kubectl("create", "namespace", variants.NAMESPACE)
    values = [submitted_object(value) for value in variants.mixed_objects(variants.OLD, stored)]
    with ThreadPoolExecutor(_WRITERS) as pool:
        parts = [values[n::_WRITERS] for n in range(_WRITERS)]
        list(pool.map(_create_all, [control_plane] * _WRITERS, parts))
    _replace(client, spec)
    client.close()


def _replace(client: Client, spec: Json) -> None:
    client.call("PUT", _CRD_PATH, client.value("GET", _CRD_PATH) | {"spec": spec})


def _create_all(control_plane: ControlPlane, values: list[Json]) -> None:
    client = client_of(control_plane)
    for value in values:
        client.call("POST", variants.collection(value["apiVersion"]), value)
    client.close()
