"""The annotation that names a series of requests: valid values are parsed, others cause a warning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.activity import (
    ActivityQuery,
    ActivitySeries,
    ActivitySource,
    activity_problems,
    activity_source,
)
from apiserver.schema.json import Json

UNDERSTOOD = {
    "a series by its name": (
        "app=router:9090/metrics queue_size",
        ActivitySeries(labels={"app": "router"}, port=9090, path="/metrics", series="queue_size"),
    ),
    "several labels, and a model": (
        'app.kubernetes.io/name=epp,pool=a:80/ queue:size{model="meta/llama-3.1-8b",pool="a"}',
        ActivitySeries(
            labels={"app.kubernetes.io/name": "epp", "pool": "a"},
            port=80,
            path="/",
            series='queue:size{model="meta/llama-3.1-8b",pool="a"}',
        ),
    ),
    "an expression of Prometheus": (
        'prometheus: sum(queue_size{model="llama"}) > 2',
        ActivityQuery(expression='sum(queue_size{model="llama"}) > 2'),
    ),
}

NOT_UNDERSTOOD = {
    "nothing": "",
    "no labels": ":9090/metrics queue_size",
    "a host": "router.example.com:9090/metrics queue_size",
    "no path": "app=router:9090 queue_size",
    "a path with dots": "app=router:9090/../secret queue_size",
    "a path with a query": "app=router:9090/metrics?x=1 queue_size",
    "a port above the maximum": "app=router:65536/metrics queue_size",
    "port zero": "app=router:0/metrics queue_size",
    "no series": "app=router:9090/metrics",
    "a PromQL expression": "app=router:9090/metrics sum(queue_size)",
    "a matcher with another operator": 'app=router:9090/metrics queue_size{model=~".*"}',
    "no expression": "prometheus: ",
    "an expression of two lines": "prometheus: sum(\nqueue_size)",
    "two lines": "app=router:9090/metrics queue_size\nmore",
}


def annotated(text: object) -> Json:
    """Return a binding with this value of the annotation."""
    return {"metadata": {"annotations": {"stowplan.dev/activity": text}}, "spec": {}}


@pytest.mark.parametrize(("text", "want"), UNDERSTOOD.values(), ids=UNDERSTOOD.keys())
def test_a_valid_annotation_names_pods_a_metrics_page_and_a_series(text: str, want: ActivitySource) -> None:
    """Pods are selected by their labels; the series is on one page of each."""
    assert activity_source(annotated(text)) == want
    assert activity_problems(annotated(text)) == []


@pytest.mark.parametrize("text", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_an_invalid_annotation_is_ignored_and_causes_a_warning(text: str) -> None:
    """Admission cannot reject an annotation, and it must not make anything but pods be read."""
    assert activity_source(annotated(text)) is None
    (problem,) = activity_problems(annotated(text))
    assert problem.startswith(
        "metadata.annotations[stowplan.dev/activity]: must be LABEL=VALUE:PORT/PATH SERIES"
    )


@given(st.one_of(st.text(), st.integers(), st.none(), st.lists(st.text())))
def test_no_value_of_the_annotation_raises_an_exception(text: object) -> None:
    """Every value is either parsed or ignored."""
    source = activity_source(annotated(text))

    assert not isinstance(source, ActivitySeries) or 0 < source.port < 65536
