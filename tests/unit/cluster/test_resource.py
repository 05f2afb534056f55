"""Paths into the API."""

from __future__ import annotations

import pytest

from apiserver.cluster import resource
from apiserver.cluster.errors import Invalid
from apiserver.cluster.resource import DEPLOYMENTS, NODES, PODS, Resource


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "subresource", "want"),
    [
        pytest.param(PODS, None, None, None, "/api/v1/pods", id="core collection over all namespaces"),
        pytest.param(PODS, "a", None, None, "/api/v1/namespaces/a/pods", id="core collection of a namespace"),
        pytest.param(NODES, None, "n", None, "/api/v1/nodes/n", id="cluster-scoped object"),
        pytest.param(NODES, "a", "n", None, "/api/v1/nodes/n", id="cluster-scoped ignores a namespace"),
        pytest.param(
            DEPLOYMENTS, "a", "b", "scale", "/apis/apps/v1/namespaces/a/deployments/b/scale", id="subresource"
        ),
        pytest.param(NODES, None, "system:x y", None, "/api/v1/nodes/system:x%20y", id="quoted name"),
    ],
)
def test_path(
    kind: Resource,
    namespace: str | None,
    name: str | None,
    subresource: str | None,
    want: str,
) -> None:
    """Each form of a path is the one that the API server serves."""
    assert kind.path(namespace, name, subresource=subresource) == want


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../secrets", "a%2fb"])
def test_path_refuses_names_that_lead_elsewhere(name: str) -> None:
    """A name out of a user's object cannot reach another path."""
    with pytest.raises(Invalid, match="must not be empty"):
        PODS.path("a", name)


def test_namespaced_object_needs_a_namespace() -> None:
    """Leaving the namespace out of a namespaced object's path is an error that says so."""
    with pytest.raises(Invalid, match="is namespaced"):
        PODS.path(None, "p")


def test_every_constant_is_distinct() -> None:
    """No two constants name the same collection."""
    resources = [value for value in vars(resource).values() if isinstance(value, Resource)]

    assert len({r.path() for r in resources}) == len(resources)
