"""Fixtures: a control plane for the whole run, an installation on it, and a fresh namespace per test."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hack.controlplane import ControlPlane
from hack.controlplane.client import Client, RefusedError
from hack.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE_SECONDS = 30.0

_namespace_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Yield a control plane with every component but Prometheus; a first build shows its progress."""
    started = ControlPlane()
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        started.start()
    yield started
    started.stop()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Yield a new namespace in which pods can be created; fail the test if a component crashed during it."""
    with _made_namespace(control_plane) as name:
        yield name


@pytest.fixture
def empty_namespace(control_plane: ControlPlane, shared_namespace: str) -> Iterator[str]:
    """Yield a shared namespace that stays empty: writes are dry runs, rejected, or deleted with their CRD.

    Fail the test if a component crashed during it.
    """
    yield shared_namespace
    control_plane.check()


@pytest.fixture(scope="session")
def shared_namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Yield the namespace that these tests share: creating and deleting one takes as long as two kubectls."""
    with _made_namespace(control_plane) as name:
        yield name


@contextmanager
def _made_namespace(control_plane: ControlPlane) -> Iterator[str]:
    name = f"test-{next(_namespace_numbers)}"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    with control_plane.client() as administrator:
        administrator.call("POST", "/api/v1/namespaces", manifest)
        _wait_for(administrator, f"/api/v1/namespaces/{name}/serviceaccounts/default")
    yield name
    control_plane.check()
    with control_plane.client() as administrator:
        administrator.call("DELETE", f"/api/v1/namespaces/{name}")


def _wait_for(administrator: Client, path: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            administrator.call("GET", path)
        except RefusedError:
            assert time.monotonic() < deadline, f"{path} is not there after {_PATIENCE_SECONDS} s"
        else:
            return


@pytest.fixture(scope="session")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """Yield Stowplan on the control plane: three processes, with a decision every second."""
    settings: dict[str, dict[str, Any]] = {
        "controller": {
            "planning": {"intervalSeconds": 1},
            "engines": {"podNetworks": [control_plane.pod_cidr]},
        },
        "apiserver": {"staleAfterSeconds": 10},
    }
    with Installation(control_plane, settings=settings) as started:
        yield started
