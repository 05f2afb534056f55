"""REST paths of API resources."""

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
def test_path_is_that_of_the_api_server(
    kind: Resource, namespace: str | None, name: str | None, subresource: str | None, want: str
) -> None:
    """Namespace, name and subresource are optional."""
    assert kind.path(namespace, name, subresource=subresource) == want


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../secrets", "a%2fb"])
def test_path_rejects_names_that_would_change_the_path(name: str) -> None:
    """A name from a user's object must not reach another path."""
    with pytest.raises(Invalid, match="must not be empty"):
        PODS.path("a", name)


def test_path_of_a_namespaced_object_requires_a_namespace() -> None:
    """A missing namespace raises an error with this reason."""
    with pytest.raises(Invalid, match="is namespaced"):
        PODS.path(None, "p")


def test_resource_constants_have_distinct_paths() -> None:
    """No two constants are the same collection."""
    resources = [value for value in vars(resource).values() if isinstance(value, Resource)]

    assert len({r.path() for r in resources}) == len(resources)
