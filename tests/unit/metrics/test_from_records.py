"""Metrics of annotated autoscalers, from the records of decisions in ConfigMaps."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.annotated import hpa

from apiserver.cluster.cache import Change
from apiserver.kinds.decision_record import record_text
from apiserver.metrics.provider import MetricIndex
from apiserver.metrics.selector import parse_selector
from apiserver.metrics.status import NotFoundError, ServiceUnavailableError
from apiserver.metrics.watched import Watched, record_metrics_of
from apiserver.schema.json import Json

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
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


def new_index() -> tuple[MetricIndex, Watched]:
    """Return an index and the watched objects that update it."""
    index = MetricIndex(stale_after_seconds=180)
    return index, Watched(index, tls=None)  # type: ignore[arg-type] # no front proxy is used


def ask(index: MetricIndex, selector: str, metric: str = "wva_desired_replicas") -> dict[str, int]:
    """Return the values of the series that a selector matches, by variant."""
    found = index.query(namespace="ns", metric_name=metric, selector=parse_selector(selector), now=NOW)
    return {item.labels["variant_name"]: item.value_milli for item in found}


def take(feeder: Watched, old: Json | None, new: Json | None) -> Json | None:
    """Report a change of the ConfigMap; return its new content."""
    feeder.take_records(Change(key=("ns", "stowplan-decisions"), old=old, new=new))
    return new


def take_variant(feeder: Watched, old: Json | None, new: Json | None) -> None:
    """Report a change of the VariantAutoscaling."""
    feeder.take_variant(Change(key=("ns", "chat"), old=old, new=new))


def test_a_record_is_served_by_every_metric_with_its_labels() -> None:
    """It can be selected by its name, and by the instance of the controller."""
    index, feeder = new_index()
    take(feeder, None, records(record("chat", 3, controller_instance="blue"), record("code", 2)))

    assert ask(index, "variant_name=chat") == {"chat": 3000}
    assert ask(index, "controller_instance=blue") == {"chat": 3000}
    assert ask(index, "exported_namespace=ns,model_id=m") == {"chat": 3000, "code": 2000}
    assert ask(index, "variant_name=code", "wva_current_replicas") == {"code": 1000}
    assert ask(index, "variant_name=code", "wva_desired_ratio") == {"code": 2000}


def test_a_removed_record_has_no_series() -> None:
    """The same holds for all of them if the ConfigMap is deleted."""
    index, feeder = new_index()
    known = take(feeder, None, records(record("chat", 3), record("code", 2)))
    known = take(feeder, known, records(record("code", 4)))
    assert ask(index, "model_id=m") == {"code": 4000}

    take(feeder, known, None)
    with pytest.raises(NotFoundError):
        ask(index, "model_id=m")


def test_a_variant_autoscaling_of_the_same_name_takes_precedence() -> None:
    """In whatever order they are seen: the sum of both would be wrong."""
    index, feeder = new_index()
    known = take(feeder, None, records(record("chat", 3)))
    take_variant(feeder, None, VARIANT)
    assert ask(index, "variant_name=chat") == {"chat": 9000}
    known = take(feeder, known, records(record("chat", 4)))
    assert ask(index, "variant_name=chat") == {"chat": 9000}

    take_variant(feeder, VARIANT, None)
    assert ask(index, "variant_name=chat") == {"chat": 4000}
    take_variant(feeder, None, VARIANT)
    take(feeder, known, None)
    assert ask(index, "variant_name=chat") == {"chat": 9000}


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
        ask(index, "variant_name=told")
    with pytest.raises(NotFoundError):
        ask(index, "variant_name=namesake")


@given(st.text() | st.sampled_from(["{", "[]", '{"labels":1}', '{"labels":{"a":"b"},"name":"n"}']))
def test_what_is_no_record_is_omitted(text: str) -> None:
    """The others are served."""
    assert record_metrics_of(records(text, record("chat", 3))).keys() == {"chat"}
