"""Metrics from the status of a binding, and from records about annotated autoscalers."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.annotated import hpa

from apiserver.cluster.cache import Change
from apiserver.cluster.heartbeat import Heartbeat
from apiserver.kinds.autoscalers import BOUND_METRIC
from apiserver.kinds.core.selecting import parse_selector
from apiserver.kinds.decision_record import record_text
from apiserver.metrics.index import MetricIndex, MetricValue
from apiserver.metrics.status import NotFoundError, ServiceUnavailableError
from apiserver.metrics.watches import Watches, bound_essentials, bound_metrics_of, record_metrics_of
from apiserver.schema.json import Json

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


def watched() -> tuple[MetricIndex, Watches]:
    """Return an index and the watched objects that update it."""
    index = MetricIndex(stale_after_seconds=180)
    return index, Watches(index, tls=None)  # type: ignore[arg-type] # no front proxy is used


def ask(index: MetricIndex, selector: str) -> dict[str, int]:
    """Return the replicas of the series that a selector matches, by target."""
    found = index.query(namespace="ns", metric_name=BOUND_METRIC, selector=parse_selector(selector), now=NOW)
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
        found = index.query(namespace="ns", metric_name=BOUND_METRIC, selector=parse_selector(""), now=later)
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

    assert source.why_incomplete(BOUND_METRIC) == (
        "the AutoscalingPolicyBindings of the cluster have not been read yet"
    )
    assert source.why_incomplete("wva_desired_replicas") == source.why_variants_unknown()


TIME = "2026-11-21T12:00:00Z"
VARIANT: Json = {
    "metadata": {"namespace": "ns", "name": "chat"},
    "spec": {"modelID": "m"},
    "status": {"desiredOptimizedAlloc": {"numReplicas": 9, "lastRunTime": TIME}},
}


def status(replicas: int) -> Json:
    """Return a decision, where one replica runs."""
    decided = {"numReplicas": replicas, "lastRunTime": TIME, "accelerator": "A100"}
    return {"desiredOptimizedAlloc": decided, "currentAlloc": {"numReplicas": 1, "variantCost": "1"}}


def records(*texts: str) -> Json:
    """Return the ConfigMap of the namespace."""
    data = {str(number): text for number, text in enumerate(texts)}
    return {"metadata": {"namespace": "ns", "name": "stowplan-decisions"}, "data": data}


def record(name: str, replicas: int, **labels: str) -> str:
    """Return the record of a decision."""
    return record_text(hpa(name), {"model_id": "m"} | labels, status(replicas))


def new_index() -> tuple[MetricIndex, Watches]:
    """Return an index and the watched objects that update it."""
    index = MetricIndex(stale_after_seconds=180)
    return index, Watches(index, tls=None)  # type: ignore[arg-type] # no front proxy is used


def numbers(index: MetricIndex, selector: str, metric: str = "wva_desired_replicas") -> dict[str, int]:
    """Return the values of the series that a selector matches, by variant."""
    found = index.query(namespace="ns", metric_name=metric, selector=parse_selector(selector), now=NOW)
    return {item.labels["variant_name"]: item.value_milli for item in found}


def take(feeder: Watches, old: Json | None, new: Json | None) -> Json | None:
    """Report a change of the ConfigMap; return its new content."""
    feeder.take_records(Change(key=("ns", "stowplan-decisions"), old=old, new=new))
    return new


def take_variant(feeder: Watches, old: Json | None, new: Json | None) -> None:
    """Report a change of the VariantAutoscaling."""
    feeder.take_variant(Change(key=("ns", "chat"), old=old, new=new))


def test_a_record_is_served_by_every_metric_with_its_labels() -> None:
    """It can be selected by its name, and by the instance of the controller."""
    index, feeder = new_index()
    take(feeder, None, records(record("chat", 3, controller_instance="blue"), record("code", 2)))

    assert numbers(index, "variant_name=chat") == {"chat": 3000}
    assert numbers(index, "controller_instance=blue") == {"chat": 3000}
    assert numbers(index, "exported_namespace=ns,model_id=m") == {"chat": 3000, "code": 2000}
    assert numbers(index, "variant_name=code", "wva_current_replicas") == {"code": 1000}
    assert numbers(index, "variant_name=code", "wva_desired_ratio") == {"code": 2000}


def test_a_removed_record_has_no_series() -> None:
    """The same holds for all of them if the ConfigMap is deleted."""
    index, feeder = new_index()
    known = take(feeder, None, records(record("chat", 3), record("code", 2)))
    known = take(feeder, known, records(record("code", 4)))
    assert numbers(index, "model_id=m") == {"code": 4000}

    take(feeder, known, None)
    with pytest.raises(NotFoundError):
        numbers(index, "model_id=m")


def test_a_variant_autoscaling_of_the_same_name_takes_precedence() -> None:
    """In whatever order they are seen: the sum of both would be wrong."""
    index, feeder = new_index()
    known = take(feeder, None, records(record("chat", 3)))
    take_variant(feeder, None, VARIANT)
    assert numbers(index, "variant_name=chat") == {"chat": 9000}
    known = take(feeder, known, records(record("chat", 4)))
    assert numbers(index, "variant_name=chat") == {"chat": 9000}

    take_variant(feeder, VARIANT, None)
    assert numbers(index, "variant_name=chat") == {"chat": 4000}
    take_variant(feeder, None, VARIANT)
    take(feeder, known, None)
    assert numbers(index, "variant_name=chat") == {"chat": 9000}


def test_a_record_cannot_be_about_another_namespace() -> None:
    """Its labels were written by anyone who may write ConfigMaps of the namespace."""
    forged = record("chat", 3, namespace="other", variant_name="theirs", exported_namespace="other")
    (entries,) = record_metrics_of(records(forged)).values()

    assert {entry.namespace for entry in entries} == {"ns"}
    assert all(entry.labels["variant_name"] == "chat" for entry in entries)
    assert all(entry.labels["exported_namespace"] == "ns" for entry in entries)


def test_what_cannot_be_planned_has_no_number() -> None:
    """An object whose name another one has is not served at all."""
    index, feeder = new_index()
    unplanned = {"actuation": {"applied": False}, "decision": {"reason": "Unplanned", "message": "why"}}
    told = record_text(hpa("told"), {"model_id": "m"}, unplanned)
    take(feeder, None, records(told, record_text(hpa("namesake"), {}, unplanned)))

    with pytest.raises(ServiceUnavailableError, match="cannot be planned"):
        numbers(index, "variant_name=told")
    with pytest.raises(NotFoundError):
        numbers(index, "variant_name=namesake")


@given(st.text() | st.sampled_from(["{", "[]", '{"labels":1}', '{"labels":{"a":"b"},"name":"n"}']))
def test_what_is_no_record_is_omitted(text: str) -> None:
    """The others are served."""
    assert record_metrics_of(records(text, record("chat", 3))).keys() == {"chat"}
