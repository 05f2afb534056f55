"""One control plane for the whole run, a fresh namespace for each test."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from hack.controlplane import ControlPlane
from hack.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator

_namespace_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Every component but Prometheus, running; a first build shows its progress."""
    started = ControlPlane()
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        started.start()
    yield started
    started.stop()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Make a namespace in which pods may be created; a component that crashed during the test fails it."""
    name = f"test-{next(_namespace_numbers)}"
    control_plane.kubectl("create", "namespace", name)
    control_plane.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}")
    yield name
    control_plane.check()
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """Stowplan on the control plane, its three processes running, deciding every second."""
    settings = {
        "controller": {
            "planning": {"intervalSeconds": 1, "refreshSeconds": 2},
            "engines": {"podNetworks": [control_plane.pod_cidr]},
        },
        "apiserver": {"staleAfterSeconds": 10},
    }
    with Installation(control_plane, settings=settings) as started:
        yield started
