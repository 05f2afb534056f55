"""`stowplan simulate --policy FILE` with recorded metrics or requests, and in closed loop."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from support.plan_verb import Simulate

POLICY = """\
apiVersion: registry.volcano.sh/v1alpha1
kind: AutoscalingPolicy
metadata: {name: p}
spec:
  metrics: [{metricName: vllm:num_requests_running, targetValue: 10}]
  tolerancePercent: 0
  behavior:
    scaleUp: {stablePolicy: {instances: 4, percent: 100, period: 60s}}
    scaleDown: {stabilizationWindow: 60s, period: 0s}
"""
BINDING = """\
---
apiVersion: registry.volcano.sh/v1alpha1
kind: AutoscalingPolicyBinding
metadata:
  name: b
  annotations: {stowplan.dev/capacity: "big=2.5"}
spec:
  policyRef: {name: p}
  optimizerConfiguration:
    costExpansionRatePercent: 100
    params:
      - {cost: 20, minReplicas: 0, maxReplicas: 4, target: {targetRef: {name: big}}}
      - {cost: 10, minReplicas: 1, maxReplicas: 9, target: {targetRef: {name: small}}}
"""
METRICS = "time,metric,value\n" + "".join(
    f"{15 * tick},vllm:num_requests_running,{10 if tick < 4 else 180 if tick < 24 else 15}\n"
    for tick in range(40)
)
REQUESTS = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2026-01-01 00:{number // 60:02}:{number % 60:02},500,{2000 if number > 300 else 20}\n"
    for number in range(600)
)


@pytest.fixture(autouse=True)
def files_with_policies(tmp_path: Path) -> None:
    """Write policies, metrics and requests."""
    (tmp_path / "p.yaml").write_text(POLICY)
    (tmp_path / "both.yaml").write_text(POLICY + BINDING)
    (tmp_path / "m.csv").write_text(METRICS)
    (tmp_path / "r.csv").write_text(REQUESTS)


def replicas(output: str) -> list[int]:
    """Return the number of replicas after each change."""
    found = [point["replicas"] for point in json.loads(output)["replays"][0]["points"]]
    return [count for before, count in zip([1, *found], found, strict=False) if count != before]


def test_the_reference_example_is_reproduced_step_by_step(simulate: Simulate) -> None:
    """E1 of the reference: 1, 5, 10, 18 replicas; E2: fewer when the high load has left the window."""
    code, output, errors = simulate("--policy", "p.yaml", "--trace", "m.csv", "-o", "json")

    assert (code, errors) == (0, [])
    assert replicas(output) == [5, 10, 18, 2]
    points = json.loads(output)["replays"][0]["points"]
    changed = [point["seconds"] for point in points if point["replicas"] != point["current_replicas"]]
    assert changed == [60.0, 120.0, 180.0, 420.0]
    assert points[5]["limits"] == ["Rate"]


def test_recommended_replicas_are_shared_among_targets_of_different_capacity(simulate: Simulate) -> None:
    """Capacity 18 is 4 replicas of `big` (2.5 each), which cost less per capacity, and 8 of `small`."""
    code, output, errors = simulate("--policy", "both.yaml", "--trace", "m.csv", "-o", "json")
    replay = json.loads(output)["replays"][0]

    assert (code, errors) == (0, [])
    assert replay["targets"] == ["big", "small"]
    assert replay["points"][20]["targets"] == [4, 8]
    assert replay["points"][0]["targets"] == [0, 1]


def test_a_replay_is_shown_as_charts_and_text(simulate: Simulate) -> None:
    """The terminal and the page contain charts and the reason for each change."""
    code, output, _ = simulate("--policy", "p.yaml", "--trace", "m.csv", "--html", "page.html")
    page = Path("page.html").read_text()

    assert code == 0
    assert "p.yaml on m.csv: 40 decisions in 0:09:45, 4 changes" in output
    assert "▁" in output
    assert "█" in output
    assert "vllm:num_requests_running is 180, 10 per replica, which asks for 18" in " ".join(output.split())
    assert page.count("<svg") == 2
    assert "up by at most 4 replicas or 100 %, whichever is more, within 60 s, from 1 replica" in page


def test_json_lines_with_dates_and_gaps_are_replayed(simulate: Simulate) -> None:
    """A null value is a time at which the metric is unknown; the number of replicas is kept."""
    lines = [
        {
            "time": f"2026-01-01T00:{tick // 4:02}:{tick % 4 * 15:02}Z",
            "metric": "vllm:num_requests_running",
            "value": 50,
        }
        for tick in range(4)
    ]
    Path("m.jsonl").write_text("\n".join(map(json.dumps, [*lines, lines[-1] | {"value": None}])))
    code, output, _ = simulate("--policy", "p.yaml", "--trace", "m.jsonl", "-o", "json")

    assert code == 0
    assert replicas(output) == [5]
    assert json.loads(output)["replays"][0]["points"][-1]["limits"] == ["Metrics"]


WRONG = {
    "no policy": (
        ["--trace", "m.csv"],
        ["a trace of metrics is replayed with --policy FILE, an AutoscalingPolicy in YAML or JSON"],
    ),
    "a policy that is not a file": (
        ["--policy", "stowplan", "--trace", "m.csv"],
        ["a trace of metrics is replayed with --policy FILE, an AutoscalingPolicy in YAML or JSON"],
    ),
    "a policy file that does not exist": (
        ["--policy", "q.yaml", "--trace", "m.csv"],
        ["q.yaml: cannot be read: No such file or directory"],
    ),
    "a trace of metrics for a model": (
        ["--policy", "p.yaml", "--trace", "m.csv=llama"],
        ["specify one trace of metrics, without =MODEL"],
    ),
    "a trace of metrics with --copies": (
        ["--policy", "p.yaml", "--trace", "m.csv", "--copies", "2"],
        ["--copies has no effect with a trace of metrics"],
    ),
    "a trace of metrics with the seed 0 and an invalid configuration": (
        ["--policy", "p.yaml", "--trace", "m.csv", "--seed", "0", "--config", "wrong.yaml"],
        [
            "wrong.yaml:2: planning.intervalSeconds: Invalid value: 0: must be greater than or equal to 1",
            "--seed has no effect with a trace of metrics",
        ],
    ),
    "invalid rows of a trace": (
        ["--policy", "p.yaml", "--trace", "bad.csv"],
        [
            "bad.csv:2: value must be a number",
            "bad.csv:3: time 'noon' is neither a number of seconds nor a date",
        ],
    ),
    "lines of a trace without some members": (
        ["--policy", "p.yaml", "--trace", "bad.jsonl"],
        ["bad.jsonl:2: time, value are missing", "bad.jsonl:3: is not a JSON object"],
    ),
    "an invalid policy": (
        ["--policy", "bad.yaml", "--trace", "m.csv"],
        [
            "bad.yaml: AutoscalingPolicy: spec.metrics[0].targetValue: Invalid value: 0: must be greater than"
            " or equal to 1"
        ],
    ),
    "no policy in the file": (
        ["--policy", "binding.yaml", "--trace", "m.csv"],
        [
            "binding.yaml: must contain one AutoscalingPolicy and at most one binding, contains 0 policies"
            " and"
            " 1 bindings"
        ],
    ),
    "a binding that names another policy": (
        ["--policy", "other.yaml", "--trace", "m.csv"],
        ["other.yaml: the binding names policy 'p', the policy is 'o'"],
    ),
    "a binding of unknown variants": (
        ["--policy", "both.yaml"],
        [
            "policy both.yaml: the binding scales big, small: variants are llama-8b-h100, llama-8b-l40s;"
            " specify --trace FILE to simulate the binding's own targets",
        ],
    ),
    "a binding of unknown variants of a scenario": (
        ["scenario.yaml", "--policy", "both.yaml"],
        ["policy both.yaml: the binding scales big, small: variants are llama-8b-h100, llama-8b-l40s"],
    ),
    "a trace of unknown format": (
        ["--policy", "p.yaml", "--trace", "p.yaml"],
        [
            "p.yaml:1: columns TIMESTAMP, ContextTokens, GeneratedTokens are missing: the first line must be"
            " TIMESTAMP,ContextTokens,GeneratedTokens"
        ],
    ),
    "traces of requests for two models": (
        ["--policy", "p.yaml", "--trace", "r.csv=a", "--trace", "r.csv=b"],
        ["without -f FILE, one model is simulated: specify one --trace FILE"],
    ),
    "--copies without a trace": (["--policy", "p.yaml", "--copies", "2"], ["--copies requires --trace FILE"]),
    "--kv-tokens without objects": (
        ["--policy", "p.yaml", "--trace", "r.csv", "--kv-tokens", "target=100"],
        ["--kv-tokens requires -f FILE: the engine is that of the example"],
    ),
    "a trace of requests with an invalid policy file": (
        ["--policy", "other.yaml", "--trace", "r.csv"],
        ["other.yaml: the binding names policy 'p', the policy is 'o'"],
    ),
}


@pytest.mark.parametrize(("arguments", "want"), WRONG.values(), ids=WRONG.keys())
def test_all_errors_are_reported_with_their_place(
    simulate: Simulate, arguments: list[str], want: list[str]
) -> None:
    """Nothing is replayed."""
    Path("bad.csv").write_text("time,metric,value\n1,m,many\nnoon,m,1\n")
    Path("bad.jsonl").write_text('{"time": 0, "metric": "m", "value": 1}\n{"metric": "m"}\n3\n')
    Path("bad.yaml").write_text(POLICY.replace("targetValue: 10", "targetValue: 0"))
    Path("binding.yaml").write_text(BINDING)
    Path("wrong.yaml").write_text("planning:\n  intervalSeconds: 0\n")
    Path("scenario.yaml").write_bytes((files("controller.commands.simulate") / "example.yaml").read_bytes())
    Path("other.yaml").write_text(POLICY.replace("name: p}", "name: o}") + BINDING)
    code, output, errors = simulate(*arguments)

    assert (code, output) == (2, "")
    assert errors == [f"error: {text}" for text in want]


def test_a_policy_file_is_simulated_in_closed_loop(simulate: Simulate) -> None:
    """Its decisions follow the engines' metrics, and HPAs apply the published numbers."""
    code, output, errors = simulate(
        "--policy", "p.yaml", "--policy", "constant:2", "--duration", "300", "--start", "cold", "-o", "json"
    )
    own, constant = json.loads(output)["outcomes"]

    assert (code, errors) == (0, [])
    assert (own["policy"], constant["policy"]) == ("p.yaml", "constant:2")
    assert own["variants"][0]["peak_replicas"] > 2
    assert own["variants"][1]["peak_replicas"] <= 1
    assert any("vllm:num_requests_running" in item["sentence"] for item in own["decisions"])


def test_a_policy_file_is_simulated_with_recorded_requests_without_a_scenario(simulate: Simulate) -> None:
    """It scales one target, which has at least 1 replica and the engine of the example."""
    code, output, errors = simulate("--policy", "p.yaml", "--trace", "r.csv", "--start", "cold", "-o", "json")
    found = json.loads(output)
    ((outcome,), (variant,)) = found["outcomes"], found["scenario"]["variants"]

    assert (code, errors) == (0, [])
    assert (outcome["requests"], outcome["never_finished"]) == (600, 0.0)
    assert (variant["name"], variant["initial_replicas"], variant["price_per_hour"]) == (
        "llama-8b-h100", 1, 100,
    )  # fmt: skip
    assert outcome["variants"][0]["peak_replicas"] > 1
    assert [warning.split(":")[0] for warning in found["warnings"]] == [
        "there is no scenario",
        "a file has no binding",
    ]


def test_a_metric_that_no_engine_reports_causes_a_warning(simulate: Simulate) -> None:
    """The warning is given only for the policy that contains the metric."""
    Path("q.yaml").write_text(
        POLICY.replace("metrics: [", "metrics: [{metricName: no_metric, targetValue: 1}, ")
    )
    _, output, _ = simulate(
        *("--policy", "p.yaml", "--policy", "q.yaml", "--trace", "r.csv"),
        *("--start", "cold", "--duration", "60", "-o", "json"),
    )
    found = [text for text in json.loads(output)["warnings"] if "report" in text]

    assert found == ["q.yaml: the simulated engine does not report no_metric: nothing is scaled down"]


def test_a_trace_alone_replaces_the_requests_of_the_example(simulate: Simulate) -> None:
    """The duration is that of the trace; variants and policies of the example are kept."""
    Path("t.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2026-01-01 00:00:00,9,9\n2026-01-01 00:00:50,9,9\n"
    )
    code, output, errors = simulate(
        "--trace", "t.csv=llama", "--copies", "3", "--start", "cold", "-o", "json"
    )
    found = json.loads(output)
    scenario = found["scenario"]

    assert (code, errors) == (0, [])
    assert (scenario["name"], scenario["duration_seconds"]) == ("t.csv", 60)
    assert [item["model_id"] for item in scenario["models"]] == ["llama"]
    assert len(scenario["variants"]) == 2
    assert [item["requests"] for item in found["outcomes"]] == [6] * 4
    assert all(item["decided"] == [] for item in found["outcomes"])


def test_recorded_requests_are_served_by_the_targets_of_a_binding(simulate: Simulate) -> None:
    """Costs and bounds are those of the binding, and the published numbers are those of the decisions."""
    _, output, _ = simulate(
        "--policy", "both.yaml", "--trace", "r.csv", "--copies", "3", "--start", "cold", "-o", "json"
    )
    found = json.loads(output)
    (outcome,) = found["outcomes"]
    (decided,) = outcome["decided"]

    bounds = ("name", "price_per_hour", "min_replicas", "max_replicas")
    assert [tuple(item[name] for name in bounds) for item in found["scenario"]["variants"]] == [
        ("big", 20.0, 0, 4),
        ("small", 10.0, 1, 9),
    ]
    assert decided["targets"] == ["big", "small"]
    published = [tuple(item["published"] for item in point["variants"]) for point in outcome["points"]]
    assert [tuple(point["targets"]) for point in decided["points"]] == published
    assert max(point["recommended"] for point in decided["points"]) > decided["points"][0]["recommended"]
    assert {item["sentence"].partition("; ")[2] for item in outcome["decisions"]} <= {
        point["sentence"] for point in decided["points"]
    }


def test_metrics_and_recommended_and_decided_replicas_are_charted(simulate: Simulate) -> None:
    """The terminal shows the scored time only; the page shows the warm-up, too."""
    policies = ("--policy", "p.yaml", "--policy", "constant:2")
    _, output, _ = simulate(*policies, "--trace", "r.csv", "--duration", "300", "--html", "page.html")
    lines = output.splitlines()
    start = lines.index("what p.yaml decided for llama-8b-h100:")
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in lines[start + 2 : start + 5])
    page = Path("page.html").read_text()

    assert list(rows) == ["vllm:num_requests_running", "replicas recommended", "replicas decided"]
    assert {len(row.split()[-1]) for row in rows.values()} == {300 // 15}
    assert output.count("decided for") == 1
    _, _, charts = page.partition("<h3>Decided for llama-8b-h100</h3>")
    charts = charts.partition("</section>")[0].partition('<details class="policy"')[0]
    assert charts.count("<svg") == 2
    assert ">recommended<" in charts
    assert "<b>vllm:num_requests_running</b>" in charts
    assert page.count("<h3>Decided for") == 1
