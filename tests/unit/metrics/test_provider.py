"""The index answers with exactly one number per variant, or with an error; never with a guess."""

from __future__ import annotations

import datetime as dt

import pytest

from apiserver.metrics.from_status import metrics_of
from apiserver.metrics.provider import MetricIndex
from apiserver.metrics.selector import parse_selector
from apiserver.metrics.status import NotFoundError, ServiceUnavailableError

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def index(*variants: tuple[str, int | None, float]) -> MetricIndex:
    """Build an index of variants in namespace `team`: name, desired replicas, age in seconds."""
    built = MetricIndex(stale_after_seconds=180)
    for name, replicas, age_seconds in variants:
        time = (NOW - dt.timedelta(seconds=age_seconds)).isoformat()
        decided = (
            {} if replicas is None else {"numReplicas": replicas, "lastRunTime": time, "accelerator": "A100"}
        )
        status = {"desiredOptimizedAlloc": decided}
        built.put(metrics_of({"metadata": {"name": name, "namespace": "team"}, "spec": {}, "status": status}))
    return built


def ask(
    asked: MetricIndex,
    selector: str = "",
    *,
    metric_name: str = "wva_desired_replicas",
    namespace: str = "team",
) -> dict[str, int]:
    """Query, and return values in thousandths by variant."""
    found = asked.query(
        namespace=namespace, metric_name=metric_name, selector=parse_selector(selector), now=NOW
    )
    return {series.labels["variant_name"]: series.value_milli for series in found}


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param("variant_name=a", {"a": 1000}, id="one variant by name"),
        pytest.param("variant_name=a,exported_namespace=team", {"a": 1000}, id="by name and namespace"),
        pytest.param("variant_name in (b,a)", {"a": 1000, "b": 2000}, id="two by name, in order"),
        pytest.param("variant_name!=a", {"b": 2000}, id="all but one"),
        pytest.param("accelerator_type=A100", {"a": 1000, "b": 2000}, id="by accelerator"),
        pytest.param("", {"a": 1000, "b": 2000}, id="all of the namespace"),
    ],
)
def test_a_query_finds_what_its_selector_matches(selector: str, want: dict[str, int]) -> None:
    """Each variant that matches is there once."""
    assert ask(index(("b", 2, 0), ("a", 1, 0)), selector) == want


@pytest.mark.parametrize("metric_name", ["wva_desired_replicas", "inferno_desired_replicas"])
def test_both_names_of_the_replicas_are_served(metric_name: str) -> None:
    """Autoscalers of old installations go on working."""
    assert ask(index(("a", 5, 0)), metric_name=metric_name) == {"a": 5000}


def test_a_new_decision_takes_the_place_of_the_old_one() -> None:
    """HPA adds up what it gets, so the old number must be gone."""
    asked = index(("a", 1, 60), ("a", 7, 0))

    assert ask(asked, "variant_name=a") == {"a": 7000}


def test_a_decision_counts_up_to_the_limit_and_not_beyond() -> None:
    """At 180 s it is served; a second later it is an error that says how old it is."""
    assert ask(index(("a", 3, 180))) == {"a": 3000}
    with pytest.raises(
        ServiceUnavailableError, match="the last decision is 181 s old, and the limit is 180 s"
    ):
        ask(index(("a", 3, 181)))


def test_a_variant_without_a_decision_is_an_error_and_never_zero() -> None:
    """The message names the variant and says what is missing."""
    with pytest.raises(ServiceUnavailableError, match="VariantAutoscaling team/a: nothing has been decided"):
        ask(index(("a", None, 0)), "variant_name=a")


def test_a_part_of_a_sum_is_not_served() -> None:
    """When one of the variants that match is unknown, the whole query is: the rest would scale down."""
    asked = index(("a", 3, 0), ("b", None, 0), ("c", 3, 999))
    with pytest.raises(ServiceUnavailableError, match=r"team/b: nothing has been decided.*\(and 1 more\)"):
        ask(asked)

    assert ask(asked, "variant_name=a") == {"a": 3000}


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(
            {"selector": "variant_name=z"}, "no VariantAutoscaling in namespace 'team'", id="variant"
        ),
        pytest.param({"namespace": "other"}, "no VariantAutoscaling in namespace 'other'", id="namespace"),
        pytest.param({"metric_name": "vllm:requests"}, "Stowplan serves wva_desired_replicas", id="metric"),
    ],
)
def test_what_is_not_there_is_not_found(arguments: dict[str, str], want: str) -> None:
    """The message says what there is."""
    with pytest.raises(NotFoundError, match=want):
        ask(index(("a", 1, 0)), **arguments)


def test_a_removed_variant_is_not_found() -> None:
    """Removing it twice, or one that never was, does no harm."""
    asked = index(("a", 1, 0))
    for name in ("a", "a", "never"):
        asked.remove(namespace="team", variant_name=name)

    with pytest.raises(NotFoundError):
        ask(asked)
