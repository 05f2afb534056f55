"""Discovery: what kube-apiserver's aggregator and kubectl ask of a server before they use it."""

from __future__ import annotations

import json

import pytest

from apiserver.discovery import api_group, api_resource_list, negotiate
from apiserver.metrics.routes import API

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2_BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "want_type", "want_kind"),
    [
        pytest.param(f"{V2},{V2_BETA},application/json", V2, "APIGroupDiscoveryList", id="newest first"),
        pytest.param(f"{V2_BETA},application/json", V2_BETA, "APIGroupDiscoveryList", id="the beta"),
        pytest.param("application/json", "application/json", "APIGroupList", id="plain JSON"),
        pytest.param(f"application/json,{V2}", "application/json", "APIGroupList", id="plain JSON first"),
        pytest.param("*/*", "application/json", "APIGroupList", id="anything"),
        pytest.param("", "application/json", "APIGroupList", id="nothing said"),
        pytest.param(
            "application/vnd.kubernetes.protobuf", "application/json", "APIGroupList", id="only protobuf"
        ),
        pytest.param(
            V2.replace("=v2;", "=v3;"), "application/json", "APIGroupList", id="a version of the future"
        ),
    ],
)
def test_the_client_gets_the_first_document_that_there_is(
    accept: str, want_type: str, want_kind: str
) -> None:
    """Aggregated discovery for who knows it, the plain list for everybody else."""
    document = negotiate(API, accept)

    assert document.content_type == want_type
    assert json.loads(document.body)["kind"] == want_kind


def test_there_is_one_resource_that_stands_for_all_metrics() -> None:
    """A server with none makes kubectl complain; one for each would weigh on every kubectl."""
    resources = api_resource_list(API)
    aggregated = json.loads(negotiate(API, V2).body)["items"][0]["versions"][0]

    assert [(r["name"], r["kind"], r["verbs"], r["namespaced"]) for r in resources["resources"]] == [
        ("externalmetrics", "ExternalMetricValueList", ["get"], True)
    ]
    assert [(r["resource"], r["scope"]) for r in aggregated["resources"]] == [
        ("externalmetrics", "Namespaced")
    ]
    assert aggregated["freshness"] == "Current"


def test_the_group_prefers_its_only_version() -> None:
    """As the API group document has to say."""
    assert api_group(API)["preferredVersion"] == {
        "groupVersion": "external.metrics.k8s.io/v1beta1",
        "version": "v1beta1",
    }


def test_the_tag_changes_with_the_document_only() -> None:
    """So that the aggregator need not fetch it again each minute."""
    assert negotiate(API, V2).etag == negotiate(API, V2).etag != negotiate(API, V2_BETA).etag
