"""Fixtures: a control plane for the whole run, an installation on it, and a fresh namespace per test."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from support.helming import Helm
from support.upgrade_rig import NAMESPACE, enter

from hack.controlplane import ControlPlane
from hack.controlplane.client import Client, RefusedError
from hack.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE_SECONDS = 30.0
_LONGEST = (
    *("upgrade", "chaos", "conversion_availability", "uninstall", "chart", "chart_release"),
    *("demo", "rights", "appliers", "scale", "judges", "model_controller"),
    *("installation", "advisory", "gateways", "evicting", "custom_scaling", "leader_worker_set", "tenants"),
)
"""Files that take long, longest first: then parallel workers end at the same time."""

_namespace_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first and those that share a control plane last; keep the order otherwise.

    An idle control plane with an installation uses a twentieth of a core, so the shared one starts late.
    Tests without a control plane, in a run of all, use the CPU while the longest ones wait.
    """
    functions = [item for item in items if isinstance(item, pytest.Function)]
    sharing = {item.path for item in functions if "control_plane" in item.fixturenames}
    ranks = {f"test_{name}.py": rank for rank, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: (item.path in sharing, ranks.get(item.path.name, len(ranks))))


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return helm with a chart written to a directory; a first build of helm takes some minutes."""
    return Helm.provided(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Yield a control plane with every component but Prometheus; a first build shows its progress."""
    started = ControlPlane()
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        started.start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def old_plane() -> Iterator[ControlPlane]:
    """Yield a control plane for one file, whose tests remove CRDs that other tests need."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as started:
        started.kubectl("create", "namespace", NAMESPACE)
        yield started


@pytest.fixture(scope="module")
def old_installation(old_plane: ControlPlane) -> Iterator[Installation]:
    """Yield an installation without CRDs, whose controller was stopped after it had issued certificates."""
    enter(old_plane, "v0.0.1")
    installation = Installation(old_plane, without_definitions=True)
    try:
        installation.start(without=frozenset({"apiserver"}))
        bundle = "{.webhooks[0].clientConfig.caBundle}"
        old_plane.kubectl("wait", f"--for=jsonpath={bundle}", "validatingwebhookconfiguration/stowplan")
        installation.processes["controller"].stop()
        yield installation
    finally:
        installation.stop()


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
