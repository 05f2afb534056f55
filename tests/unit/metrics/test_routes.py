"""Discovery documents, and quantities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.metrics.routes import API_GROUP, API_RESOURCE_LIST, canonical_quantity


def test_one_resource_represents_all_metrics() -> None:
    """Without a resource kubectl reports an error; one per metric would slow down every kubectl call."""
    assert [(r["name"], r["kind"], r["verbs"], r["namespaced"]) for r in API_RESOURCE_LIST["resources"]] == [
        ("externalmetrics", "ExternalMetricValueList", ["get"], True)
    ]


def test_the_group_prefers_its_only_version() -> None:
    """An API group document must have a preferred version."""
    assert API_GROUP["preferredVersion"] == {
        "groupVersion": "external.metrics.k8s.io/v1beta1",
        "version": "v1beta1",
    }


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
