"""The annotation that says where requests are seen: what is understood, and that nothing else is followed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.kthena.autoscalingpolicybinding_activity import (
    ActivitySource,
    activity_problems,
    activity_source,
)
from apiserver.schema.json import Json

UNDERSTOOD = {
    "a series by its name": (
        "app=router:9090/metrics queue_size",
        ActivitySource(labels={"app": "router"}, port=9090, path="/metrics", series="queue_size"),
    ),
    "several labels, and a model": (
        'app.kubernetes.io/name=epp,pool=a:80/ queue:size{model="meta/llama-3.1-8b",pool="a"}',
        ActivitySource(
            labels={"app.kubernetes.io/name": "epp", "pool": "a"},
            port=80,
            path="/",
            series='queue:size{model="meta/llama-3.1-8b",pool="a"}',
        ),
    ),
}

NOT_UNDERSTOOD = {
    "nothing": "",
    "no labels": ":9090/metrics queue_size",
    "a host": "router.example.com:9090/metrics queue_size",
    "no path": "app=router:9090 queue_size",
    "a path with dots": "app=router:9090/../secret queue_size",
    "a path with a query": "app=router:9090/metrics?x=1 queue_size",
    "a port beyond all": "app=router:65536/metrics queue_size",
    "port zero": "app=router:0/metrics queue_size",
    "no series": "app=router:9090/metrics",
    "an expression": "app=router:9090/metrics sum(queue_size)",
    "another operator": 'app=router:9090/metrics queue_size{model=~".*"}',
    "two lines": "app=router:9090/metrics queue_size\nmore",
}


def said(text: object) -> Json:
    """Return a binding that says so."""
    return {"metadata": {"annotations": {"stowplan.dev/activity": text}}, "spec": {}}


@pytest.mark.parametrize(("text", "want"), UNDERSTOOD.values(), ids=UNDERSTOOD.keys())
def test_what_is_understood(text: str, want: ActivitySource) -> None:
    """Pods by labels, one page of theirs, one series on it."""
    assert activity_source(said(text)) == want
    assert activity_problems(said(text)) == []


@pytest.mark.parametrize("text", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_what_is_not_understood_is_told_and_not_followed(text: str) -> None:
    """It is an annotation, so admission cannot refuse it; and it never reaches beyond pods."""
    assert activity_source(said(text)) is None
    (problem,) = activity_problems(said(text))
    assert problem.startswith(
        "metadata.annotations[stowplan.dev/activity]: must be LABEL=VALUE:PORT/PATH SERIES"
    )


@given(st.one_of(st.text(), st.integers(), st.none(), st.lists(st.text())))
def test_nothing_breaks_it(text: object) -> None:
    """Whatever stands there is understood or not."""
    found = activity_source(said(text))

    assert found is None or 0 < found.port < 65536
