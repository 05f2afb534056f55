"""The order of the files, and fixtures of several of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.helming import Helm
from support.upgrade_rig import NAMESPACE, enter

from hack.controlplane import ControlPlane
from hack.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = (
    *("upgrade", "differential", "settings", "chaos", "model_controller", "attacks", "appliers", "uninstall"),
    *("chart", "dashboard", "conversion_availability", "rights", "installation", "kthena_releases"),
    *("annotated", "hostile_objects", "chart_release", "way_back", "gateways", "namespace", "components"),
    *("tenants", "evicting", "external_metrics", "scale", "scheduler_clusters", "advisory", "custom_scaling"),
)
"""Files that take long, longest first: then parallel workers end at the same time."""


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
def helm(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Helm:
    """Return helm with a chart written to a directory; a first build of helm takes some minutes."""
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    return Helm.provided(tmp_path_factory.mktemp("helm"), stored=shared / "chart-sources.pickle")


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
