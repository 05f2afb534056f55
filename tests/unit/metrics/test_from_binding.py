"""Metrics from the status of bindings: one series per target, or the reason why there is none."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.cluster.cache import Change
from apiserver.cluster.heartbeat import Heartbeat
from apiserver.metrics.provider import MetricIndex
from apiserver.metrics.selector import parse_selector
from apiserver.metrics.series import BOUND_REPLICAS, MetricValue
from apiserver.metrics.status import NotFoundError, ServiceUnavailableError
from apiserver.metrics.watched import Watched, bound_essentials, bound_metrics_of

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def binding(name: str = "b", **replicas: int | None) -> dict[str, Any]:
    """Return a binding with desired replicas for its Deployments."""
    targets = [
        {"kind": "Deployment", "name": target} | ({} if count is None else {"replicas": count})
        for target, count in replicas.items()
    ]
    return {
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"policyRef": {"name": "p"}},
        "status": {"lastDecisionTime": "2026-11-21T12:00:00Z", "targets": targets, "history": "long"},
    }


def watched() -> tuple[MetricIndex, Watched]:
    """Return an index and the watched objects that update it."""
    index = MetricIndex(stale_after_seconds=180)
    return index, Watched(index, tls=None)  # type: ignore[arg-type] # no front proxy is used


def ask(index: MetricIndex, selector: str) -> dict[str, int]:
    """Return the replicas of the series that a selector matches, by target."""
    found = index.query(
        namespace="ns", metric_name=BOUND_REPLICAS, selector=parse_selector(selector), now=NOW
    )
    return {item.labels["target_name"]: item.value_milli for item in found}


def test_each_target_has_its_own_series() -> None:
    """It can be selected by target, by binding, and by policy and kind."""
    index, feeder = watched()
    for value in (binding("b", a=3, c=0), binding("d", e=5)):
        key = ("ns", value["metadata"]["name"])
        feeder.take_binding(Change(key=key, old=None, new=bound_essentials(value)))

    assert ask(index, "target_name=a") == {"a": 3000}
    assert ask(index, "binding_name=b") == {"a": 3000, "c": 0}
    assert ask(index, "target_id=d/Deployment/e") == {"e": 5000}
    assert ask(index, "policy_name=p,target_kind=Deployment") == {"a": 3000, "c": 0, "e": 5000}


def test_a_removed_target_has_no_series() -> None:
    """The binding was changed or deleted."""
    index, feeder = watched()
    first, second = bound_essentials(binding(a=3, c=1)), bound_essentials(binding(c=2))
    feeder.take_binding(Change(key=("ns", "b"), old=None, new=first))
    feeder.take_binding(Change(key=("ns", "b"), old=first, new=second))
    assert ask(index, "binding_name=b") == {"c": 2000}

    feeder.take_binding(Change(key=("ns", "b"), old=second, new=None))
    with pytest.raises(NotFoundError, match="no AutoscalingPolicyBinding with a decision in namespace 'ns'"):
        ask(index, "binding_name=b")


def test_an_advisory_decision_is_unavailable() -> None:
    """The error names the binding."""
    index, feeder = watched()
    feeder.take_binding(Change(key=("ns", "b"), old=None, new=binding(a=None)))

    with pytest.raises(ServiceUnavailableError, match="AutoscalingPolicyBinding ns/b: it has no"):
        ask(index, "target_name=a")


def test_a_heartbeat_does_not_confirm_bindings_that_it_lists_as_unconfirmed() -> None:
    """It may list a single binding or the whole kind; others are confirmed."""
    index, feeder = watched()
    feeder.take_binding(Change(key=("ns", "b"), old=None, new=binding(a=3)))
    later = NOW + dt.timedelta(seconds=600)

    def at(unconfirmed: frozenset[tuple[str, str]]) -> int:
        index.beat(Heartbeat(time=later, newest_decision=NOW, unconfirmed=unconfirmed))
        found = index.query(
            namespace="ns", metric_name=BOUND_REPLICAS, selector=parse_selector(""), now=later
        )
        return found[0].value_milli

    assert at(frozenset({("*", "VariantAutoscaling"), ("ns", "other")})) == 3000
    for silent in (("*", "AutoscalingPolicyBinding"), ("ns", "b")):
        with pytest.raises(ServiceUnavailableError, match="600 s old"):
            at(frozenset({silent}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)


@given(JSON, JSON, st.lists(st.dictionaries(st.sampled_from(["kind", "name", "replicas"]), JSON)) | JSON)
def test_an_arbitrary_status_gives_no_series_and_no_exception(
    spec: object, time: object, targets: object
) -> None:
    """Unreadable values are unknown."""
    value = {
        "metadata": {"namespace": "ns", "name": "b"},
        "spec": spec,
        "status": {"lastDecisionTime": time, "targets": targets},
    }

    for entry in bound_metrics_of(bound_essentials(value)):
        assert not isinstance(entry, MetricValue)


def test_bindings_that_have_not_been_read_yet_are_unavailable() -> None:
    """After a restart, an autoscaler must not get the response that its binding does not exist."""
    _, source = watched()

    assert source.why_incomplete(BOUND_REPLICAS) == (
        "the AutoscalingPolicyBindings of the cluster have not been read yet"
    )
    assert source.why_incomplete("wva_desired_replicas") == source.why_variants_unknown()
