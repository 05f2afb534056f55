"""Aggregation, goals and tables of the admission benchmark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apiserver.schema.json import Json
from hack.bench.admission.api_server import mean_calls, rewrite, totals
from hack.bench.admission.cases import MODEL_CREATE, MODEL_REFUSED, MODEL_UNCHANGED
from hack.bench.admission.goals import goals
from hack.bench.admission.report import OverTls, in_process_table, tls_table
from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.costs import Key, summed
from hack.bench.load import Served
from hack.bench.machine import Pace
from hack.controlplane.client import ConflictError, RefusedError

PACE = Pace(here_us=122.4, there_us=40.8)


def served(cpu_us: float, *, requests: int = 10) -> Served:
    """Return one second of a server with the given CPU time per request, and a latency of 1 ms."""
    return Served(
        requests=requests,
        seconds=1.0,
        server_cpu_seconds=cpu_us * requests / 1e6,
        latencies_seconds=(0.001,) * requests,
    )


def cost(cpu_us: float) -> OverTls:
    """Return the costs of a server with equal rounds."""
    return OverTls(busy=summed([served(cpu_us)]), lone=summed([served(cpu_us * 2)]))


def test_rounds_are_aggregated_by_their_median() -> None:
    """A round that was disturbed by another program has no effect."""
    found = summed([served(100.0), served(900.0), served(110.0)])

    assert found.cpu_us == pytest.approx(110)
    assert found.requests == 30
    assert found.requests_per_second == 10
    assert found.p50_us == found.p99_us == pytest.approx(1000)


TLS: dict[Key, OverTls] = {
    (MODEL_CREATE, "mutate", OURS): cost(180.0),
    (MODEL_CREATE, "mutate", STRAIGHTFORWARD): cost(3600.0),
    (MODEL_UNCHANGED, "mutate", OURS): cost(90.0),
    (MODEL_REFUSED, "mutate", OURS): cost(405.0),
}


def test_goals_compare_measured_values_with_limits() -> None:
    """Times are compared as measured and at the pace of the reference machine, other values as ratios."""
    lines = [goal.line() for goal in goals(TLS, PACE)]

    assert lines == [
        "goal: mutate_model_create_cpu_per_request 180 µs, wanted <= 150: missed",
        "goal: mutate_model_create_cpu_per_request_at_reference_pace 60.0 µs, wanted <= 150: met",
        "goal: mutate_model_update_unchanged_cpu_per_request 90.0 µs, wanted <= 70: missed",
        "goal: mutate_model_update_unchanged_cpu_per_request_at_reference_pace 30.0 µs, wanted <= 70: met",
        "goal: mutate_model_create_share_of_straightforward 5.00 %, wanted <= 3.333: missed",
        "goal: mutate_model_refused_of_accepted 2.25 times, wanted <= 2: missed",
    ]


def test_cases_that_were_not_measured_have_no_goal() -> None:
    """A run of some cases makes no statement about the others."""
    assert goals({}, PACE) == []


def test_tables_are_aligned() -> None:
    """Stowplan is listed before the straightforward implementation, with the ratio."""
    local = {(MODEL_CREATE, "mutate", OURS): 40.0, (MODEL_CREATE, "mutate", STRAIGHTFORWARD): 2000.0}

    assert in_process_table(local) == [
        "in process, µs of CPU per call  path     stowplan  straightforward  ratio",
        "Model, create                   /mutate      40.0             2000  1/50.0",
    ]
    lines = tls_table({key: TLS[key] for key in list(TLS)[:2]}, connections=16)
    assert [line.split()[:5] for line in lines[1:]] == [
        ["Model,", "create", "/mutate", "stowplan", "180"],
        ["straightforward", "3600", "1", "10", "4"],
    ]


def exposition(count: int, seconds: float) -> str:
    """Return the API server's metrics for a webhook of Stowplan and another one."""
    name = "apiserver_admission_webhook_admission_duration_seconds"
    labels = 'name="mutate.stowplan.dev",operation="CREATE",rejected="false",type="admit"'
    other = labels.replace("stowplan.dev", "example.com")
    return (
        f"# TYPE {name} histogram\n"
        f'{name}_bucket{{{labels},le="+Inf"}} {count}\n{name}_sum{{{labels}}} {seconds}\n'
        f"{name}_count{{{labels}}} {count}\n{name}_sum{{{other}}} 50\n{name}_count{{{other}}} 5\n"
    )


def test_the_mean_duration_covers_only_the_calls_between_two_readings() -> None:
    """Earlier calls and those of other webhooks are not counted."""
    before, after = totals(exposition(100, 10.0)), totals(exposition(300, 10.4))

    (found,) = mean_calls("Model", before, after)

    assert found.mean_ms == pytest.approx(2.0)
    assert (found.kind, found.webhook, found.operation, found.calls) == (
        "Model",
        "mutate.stowplan.dev",
        "CREATE",
        200,
    )
    assert list(mean_calls("Model", after, after)) == [], "without calls, there is no mean"


def contended(conflicts: int) -> tuple[Callable[..., Json], list[str]]:
    """Return a stub of an API server with conflicts at the first updates, and the list of its requests."""
    asked: list[str] = []

    def ask(method: str, _path: str, _value: Json | None = None) -> Json:
        beaten = method == "PUT" and sum(line.startswith("PUT") for line in asked) < conflicts
        asked.append(f"{method} {409 if beaten else 200}")
        if beaten:
            raise ConflictError(method)
        return {"metadata": {"resourceVersion": str(len(asked))}}

    return ask, asked


def test_an_update_with_a_conflict_is_retried() -> None:
    """The object is read again only after a conflict."""
    ask, asked = contended(1)
    rewrite(ask, "/item", lambda value: value, times=2)

    assert asked == ["GET 200", "PUT 409", "GET 200", "PUT 200", "PUT 200"]


def test_an_update_with_repeated_conflicts_fails() -> None:
    """The error contains the number of attempts."""
    with pytest.raises(RefusedError, match="changed it 5 times"):
        rewrite(contended(99)[0], "/item", lambda value: value, times=1)
