"""The index answers with exactly one number per variant, or with an error; never with a guess."""

from __future__ import annotations

import datetime as dt

import pytest

from apiserver.cluster.heartbeat import Heartbeat
from apiserver.metrics.from_status import metrics_of
from apiserver.metrics.provider import MetricIndex
from apiserver.metrics.selector import parse_selector
from apiserver.metrics.series import METRIC_NAMES
from apiserver.metrics.status import NotFoundError, ServiceUnavailableError

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def index(*variants: tuple[str, int | None, float]) -> MetricIndex:
    """Build an index of variants in namespace `team`: name, desired replicas, age in seconds."""
    built = MetricIndex(stale_after_seconds=180)
    for name, replicas, age_seconds in variants:
        put(built, name, replicas, age_seconds)
    return built


def put(built: MetricIndex, name: str, replicas: int | None, age_seconds: float) -> None:
    """Let a status come in."""
    time = (NOW - dt.timedelta(seconds=age_seconds)).isoformat()
    decided = {"numReplicas": replicas, "lastRunTime": time, "accelerator": "A100"}
    status = {"desiredOptimizedAlloc": {} if replicas is None else decided}
    built.put(metrics_of({"metadata": {"name": name, "namespace": "team"}, "spec": {}, "status": status}))


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


def beat(age_seconds: float, *, newest_seconds: float | None = None, unconfirmed: str = "") -> Heartbeat:
    """Return a cycle that ended so long ago, when the newest decision was so old."""
    return Heartbeat(
        time=NOW - dt.timedelta(seconds=age_seconds),
        newest_decision=None if newest_seconds is None else NOW - dt.timedelta(seconds=newest_seconds),
        unconfirmed=frozenset({("team", unconfirmed)}),
    )


def answer(asked: MetricIndex) -> dict[str, int] | str:
    """Query for one variant, and return its value, or why there is none."""
    try:
        return ask(asked, "variant_name=a")
    except ServiceUnavailableError as error:
        return str(error)


@pytest.mark.parametrize(
    ("age_seconds", "heartbeat", "is_served"),
    [
        pytest.param(5000, beat(15, newest_seconds=5000), True, id="a quiet variant of a living controller"),
        pytest.param(5000, beat(180, newest_seconds=5000), True, id="just before it counts as dead"),
        pytest.param(5000, beat(181, newest_seconds=5000), False, id="a controller that died or hangs"),
        pytest.param(100, beat(300, newest_seconds=400), True, id="decided since, and died then"),
        pytest.param(5000, None, False, id="no word of a controller"),
        pytest.param(5000, beat(15, newest_seconds=5000, unconfirmed="a"), False, id="left behind"),
        pytest.param(5000, beat(15, newest_seconds=5000, unconfirmed="b"), True, id="another is"),
        pytest.param(5000, beat(15, newest_seconds=20), False, id="our copy lacks the newest decision"),
        pytest.param(5000, beat(-120, newest_seconds=5000), False, id="from a time that is yet to come"),
    ],
)  # fmt: skip
def test_a_decision_is_as_old_as_the_cycle_that_confirmed_it(
    age_seconds: float, heartbeat: Heartbeat | None, *, is_served: bool
) -> None:
    """A controller that lives and decided nothing new is no reason to hold."""
    asked = index(("a", 3, age_seconds))
    asked.beat(heartbeat)

    assert (answer(asked) == {"a": 3000}) is is_served


def test_a_decision_that_comes_in_late_proves_the_heartbeat_that_knew_of_it() -> None:
    """The two are watched apart, and either may come first."""
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


def test_a_variant_without_a_decision_is_an_error_and_never_zero() -> None:
    """The message names the variant and says what is missing."""
    with pytest.raises(ServiceUnavailableError, match="VariantAutoscaling team/a: it has no decision yet"):
        ask(index(("a", None, 0)), "variant_name=a")


def test_a_part_of_a_sum_is_not_served() -> None:
    """When one of the variants that match is unknown, the whole query is: the rest would scale down."""
    asked = index(("a", 3, 0), ("b", None, 0), ("c", 3, 999))
    with pytest.raises(ServiceUnavailableError, match=r"team/b: it has no decision yet.*\(and 1 more\)"):
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
        asked.remove(namespace="team", entry_name=name, metric_names=METRIC_NAMES)

    with pytest.raises(NotFoundError):
        ask(asked)
