"""The metric index: exactly one value per variant, or an error."""

from __future__ import annotations

import datetime as dt

import pytest

from apiserver.cluster.heartbeat import Heartbeat
from apiserver.kinds.core.selecting import parse_selector
from apiserver.metrics.index import METRIC_NAMES, MetricIndex
from apiserver.metrics.status import NotFoundError, ServiceUnavailableError
from apiserver.metrics.watches import metrics_of

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def index(*variants: tuple[str, int | None, float]) -> MetricIndex:
    """Return an index of variants in namespace `team`: name, desired replicas, age in seconds."""
    built = MetricIndex(stale_after_seconds=180)
    for name, replicas, age_seconds in variants:
        put(built, name, replicas, age_seconds)
    return built


def put(built: MetricIndex, name: str, replicas: int | None, age_seconds: float) -> None:
    """Store a status in the index."""
    time = (NOW - dt.timedelta(seconds=age_seconds)).isoformat()
    decided = {"numReplicas": replicas, "lastRunTime": time, "accelerator": "A100"}
    status = {"desiredOptimizedAlloc": {} if replicas is None else decided}
    value = {"metadata": {"name": name, "namespace": "team"}, "spec": {}, "status": status}
    built.put(metrics_of(value), now=NOW)


def ask(
    asked: MetricIndex,
    selector: str = "",
    *,
    metric_name: str = "wva_desired_replicas",
    namespace: str = "team",
) -> dict[str, int]:
    """Return the queried values in thousandths by variant."""
    found = asked.query(
        namespace=namespace, metric_name=metric_name, selector=parse_selector(selector), now=NOW
    )
    return {series.labels["variant_name"]: series.value_milli for series in found}


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param("variant_name=a", {"a": 1000}, id="one variant by name"),
        pytest.param("variant_name=a,exported_namespace=team", {"a": 1000}, id="by name and namespace"),
        pytest.param("variant_name in (b,a)", {"a": 1000, "b": 2000}, id="two variants by name"),
        pytest.param("variant_name!=a", {"b": 2000}, id="all variants but one"),
        pytest.param("accelerator_type=A100", {"a": 1000, "b": 2000}, id="by accelerator"),
        pytest.param("", {"a": 1000, "b": 2000}, id="all variants of the namespace"),
    ],
)
def test_a_query_returns_the_variants_that_its_selector_matches(selector: str, want: dict[str, int]) -> None:
    """Each variant occurs once."""
    assert ask(index(("b", 2, 0), ("a", 1, 0)), selector) == want


@pytest.mark.parametrize("metric_name", ["wva_desired_replicas", "inferno_desired_replicas"])
def test_both_names_of_the_replicas_are_served(metric_name: str) -> None:
    """Autoscalers of older installations use the second name."""
    assert ask(index(("a", 5, 0)), metric_name=metric_name) == {"a": 5000}


def test_a_new_decision_replaces_the_old_one() -> None:
    """The HPA sums all values that it gets."""
    asked = index(("a", 1, 60), ("a", 7, 0))

    assert ask(asked, "variant_name=a") == {"a": 7000}


def test_a_decision_is_served_up_to_the_age_limit() -> None:
    """Beyond it, the error gives the age."""
    assert ask(index(("a", 3, 180))) == {"a": 3000}
    with pytest.raises(
        ServiceUnavailableError, match="the last decision is 181 s old, and the limit is 180 s"
    ):
        ask(index(("a", 3, 181)))


def test_a_time_in_the_future_is_called_one() -> None:
    """The clocks of two nodes differ, or somebody edited the status: the age would be a negative number."""
    assert ask(index(("a", 3, -60))) == {"a": 3000}
    with pytest.raises(ServiceUnavailableError, match="is 61 s in the future: compare the clocks"):
        ask(index(("a", 3, -61)))


def beat(age_seconds: float, *, newest_seconds: float | None = None, unconfirmed: str = "") -> Heartbeat:
    """Return a heartbeat of a given age, with the age of its newest decision."""
    return Heartbeat(
        time=NOW - dt.timedelta(seconds=age_seconds),
        newest_decision=None if newest_seconds is None else NOW - dt.timedelta(seconds=newest_seconds),
        unconfirmed=frozenset({("team", unconfirmed)}),
    )


def answer(asked: MetricIndex) -> dict[str, int] | str:
    """Return the value of one variant, or the error message."""
    try:
        return ask(asked, "variant_name=a")
    except ServiceUnavailableError as error:
        return str(error)


@pytest.mark.parametrize(
    ("age_seconds", "heartbeat", "is_served"),
    [
        pytest.param(5000, beat(15, newest_seconds=5000), True, id="no new decision, controller running"),
        pytest.param(5000, beat(180, newest_seconds=5000), True, id="a heartbeat at the age limit"),
        pytest.param(5000, beat(181, newest_seconds=5000), False, id="a heartbeat beyond the age limit"),
        pytest.param(100, beat(300, newest_seconds=400), True, id="a recent decision, heartbeat too old"),
        pytest.param(5000, None, False, id="no heartbeat"),
        pytest.param(5000, beat(15, newest_seconds=5000, unconfirmed="a"), False, id="variant unconfirmed"),
        pytest.param(5000, beat(15, newest_seconds=5000, unconfirmed="b"), True, id="another unconfirmed"),
        pytest.param(5000, beat(15, newest_seconds=20), False, id="the newest decision is not received yet"),
        pytest.param(5000, beat(-120, newest_seconds=5000), False, id="a heartbeat from the future"),
    ],
)  # fmt: skip
def test_the_age_of_a_decision_is_that_of_the_last_cycle_that_confirmed_it(
    age_seconds: float, heartbeat: Heartbeat | None, *, is_served: bool
) -> None:
    """A running controller without a new decision does not make old decisions stale."""
    asked = index(("a", 3, age_seconds))
    asked.beat(heartbeat)

    assert (answer(asked) == {"a": 3000}) is is_served


def test_a_heartbeat_counts_once_its_newest_decision_has_been_received() -> None:
    """Heartbeats and decisions are watched separately and arrive in any order."""
    asked = index(("a", 3, 5000))
    asked.beat(beat(100, newest_seconds=5000))
    asked.beat(beat(10, newest_seconds=20))
    old = asked.query(
        namespace="team", metric_name="wva_desired_replicas", selector=parse_selector(""), now=NOW
    )

    put(asked, "b", 4, 20)
    new = asked.query(
        namespace="team", metric_name="wva_desired_replicas", selector=parse_selector(""), now=NOW
    )

    assert [NOW - item.time for item in old] == [dt.timedelta(seconds=100)]
    assert [NOW - item.time for item in new] == [dt.timedelta(seconds=10)] * 2


def test_a_decision_in_the_future_does_not_count_as_the_newest_that_was_received() -> None:
    """Otherwise, whoever writes one makes outdated numbers count as confirmed, until the process restarts."""
    asked = index(("a", 3, 5000), ("forged", 1, -3600))
    asked.beat(beat(10, newest_seconds=20))

    assert "5000 s old" in str(answer(asked))


def test_a_variant_without_a_decision_is_an_error() -> None:
    """The message names the variant and what is missing; the value is never 0."""
    with pytest.raises(ServiceUnavailableError, match="variant team/a: it has no decision yet"):
        ask(index(("a", None, 0)), "variant_name=a")


def test_a_query_fails_if_any_matching_variant_has_no_current_decision() -> None:
    """The sum of the others would scale down."""
    asked = index(("a", 3, 0), ("b", None, 0), ("c", 3, 999))
    with pytest.raises(ServiceUnavailableError, match=r"team/b: it has no decision yet.*\(and 1 more\)"):
        ask(asked)

    assert ask(asked, "variant_name=a") == {"a": 3000}


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param({"selector": "variant_name=z"}, "no variant in namespace 'team'", id="variant"),
        pytest.param({"namespace": "other"}, "no variant in namespace 'other'", id="namespace"),
        pytest.param({"metric_name": "vllm:requests"}, "Stowplan serves wva_desired_replicas", id="metric"),
    ],
)
def test_an_unknown_variant_namespace_or_metric_is_not_found(arguments: dict[str, str], want: str) -> None:
    """The message names what is missing or what is served."""
    with pytest.raises(NotFoundError, match=want):
        ask(index(("a", 1, 0)), **arguments)


def test_a_removed_variant_is_not_found() -> None:
    """Removing it again, or removing an unknown variant, has no effect."""
    asked = index(("a", 1, 0))
    for name in ("a", "a", "never"):
        asked.remove(namespace="team", entry_name=name, metric_names=METRIC_NAMES)

    with pytest.raises(NotFoundError):
        ask(asked)
