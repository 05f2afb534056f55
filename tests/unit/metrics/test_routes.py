"""Discovery documents, and quantities."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.metrics.routes import API_GROUP, API_RESOURCE_LIST, canonical_quantity, negotiate

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2_BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "want_type", "want_kind"),
    [
        pytest.param(f"{V2},{V2_BETA},application/json", V2, "APIGroupDiscoveryList", id="newest first"),
        pytest.param(f"{V2_BETA},application/json", V2_BETA, "APIGroupDiscoveryList", id="the beta version"),
        pytest.param("application/json", "application/json", "APIGroupList", id="plain JSON"),
        pytest.param(f"application/json,{V2}", "application/json", "APIGroupList", id="plain JSON first"),
        pytest.param("*/*", "application/json", "APIGroupList", id="any type"),
        pytest.param("", "application/json", "APIGroupList", id="no Accept header"),
        pytest.param(
            "application/vnd.kubernetes.protobuf", "application/json", "APIGroupList", id="only protobuf"
        ),
        pytest.param(V2.replace("=v2;", "=v3;"), "application/json", "APIGroupList", id="an unknown version"),
    ],
)
def test_the_first_acceptable_document_that_exists_is_served(
    accept: str, want_type: str, want_kind: str
) -> None:
    """Clients without aggregated discovery get the plain list."""
    document = negotiate(accept)

    assert document.content_type == want_type
    assert json.loads(document.body)["kind"] == want_kind


def test_one_resource_represents_all_metrics() -> None:
    """Without a resource kubectl reports an error; one per metric would slow down every kubectl call."""
    aggregated = json.loads(negotiate(V2).body)["items"][0]["versions"][0]

    assert [(r["name"], r["kind"], r["verbs"], r["namespaced"]) for r in API_RESOURCE_LIST["resources"]] == [
        ("externalmetrics", "ExternalMetricValueList", ["get"], True)
    ]
    assert [(r["resource"], r["scope"]) for r in aggregated["resources"]] == [
        ("externalmetrics", "Namespaced")
    ]
    assert aggregated["freshness"] == "Current"


def test_the_group_prefers_its_only_version() -> None:
    """An API group document must have a preferred version."""
    assert API_GROUP["preferredVersion"] == {
        "groupVersion": "external.metrics.k8s.io/v1beta1",
        "version": "v1beta1",
    }


def test_the_etag_depends_only_on_the_document() -> None:
    """The aggregator then need not fetch an unchanged document again every minute."""
    assert negotiate(V2).etag == negotiate(V2).etag != negotiate(V2_BETA).etag


SCALE_MILLI = {
    "m": 1,
    "": 1000,
    "k": 1000**2,
    "M": 1000**3,
    "G": 1000**4,
    "T": 1000**5,
    "P": 1000**6,
    "E": 1000**7,
}


@pytest.mark.parametrize(
    ("value_milli", "want"),
    [
        (0, "0"),
        (1, "1m"),
        (3000, "3"),
        (3300, "3300m"),
        (-500, "-500m"),
        (1_000_000, "1k"),
        (1_100_000, "1100"),
    ],
)
def test_the_largest_exact_suffix_is_used(value_milli: int, want: str) -> None:
    """For example, thousandths have the suffix `m` and thousands `k`."""
    assert canonical_quantity(value_milli) == want


@given(st.integers(-(10**24), 10**24))
def test_parsing_the_text_gives_the_same_value(value_milli: int) -> None:
    """No digit is lost."""
    text = canonical_quantity(value_milli)
    digits = text.rstrip("mkMGTPE")

    assert int(digits) * SCALE_MILLI[text[len(digits) :]] == value_milli
