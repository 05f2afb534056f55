"""Resource types that only these subcommands use."""

from __future__ import annotations

from typing import Final

from apiserver.cluster.resource import Resource
from apiserver.schema.kind import Kind

ENDPOINT_SLICES: Final = Resource(
    group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice"
)
SELF_SUBJECT_ACCESS_REVIEWS: Final = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)


def resource_of(kind: Kind, version: str) -> Resource:
    """Return the resource type of a kind in one version."""
    return Resource(group=kind.group, version=version, plural=kind.plural, kind=kind.kind)
