"""`stowplan simulate` as a program: arguments, input files, the table, JSON, the page and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.plan_verb import Simulate

from apiserver import cli
from controller.commands.check.documents import Source
from controller.commands.simulate.scenario_file import read_scenario

SAMPLES = Path(__file__).resolve().parents[3] / "manifests" / "samples" / "simulate"
PLAN_SAMPLES = SAMPLES.parent / "plan"


def document(**changes: Any) -> dict[str, Any]:
    """Return a small scenario of one model on one variant."""
    return {
        "name": "small",
        "start": "cold",
        "durationSeconds": 150,
        "models": [
            {
                "id": "m",
                "ttftMilliseconds": 2000,
                "itlMilliseconds": 80,
                "workload": {"curve": {"shape": "constant", "high": 5}},
            }
        ],
        "variants": [
            {
                "name": "v",
                "accelerator": "H100",
                "pricePerHour": 100,
                "profile": {"alpha": 8, "beta": 0.05, "delta": 0.03, "kvTokens": 384_000},
            }
        ],
        "nodes": [{"accelerator": "NVIDIA-H100-80GB-HBM3"}],
        "policies": ["stowplan", "constant:1"],
    } | changes


def written(folder: Path, value: object) -> str:
    """Write a scenario to a file and return its path."""
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(value))
    return str(path)


def test_the_table_has_a_row_for_each_policy(simulate: Simulate, tmp_path: Path) -> None:
    """Each row has cost and missed share; a line above the table describes the scenario."""
    code, out, err = simulate(written(tmp_path, document()))

    assert (code, err) == (0, [])
    assert "small: " in out.splitlines()[0]
    assert "cold start, seed 1" in out
    head, *rows = out.splitlines()[3:6]
    assert head.split()[:3] == ["POLICY", "COST", "MISSED"]
    assert [row.split()[0] for row in rows] == ["stowplan", "constant:1"]
    assert rows[1].split()[1:3] == ["4.17", "0.00%"]


def test_json_contains_the_scenario_time_series_and_decisions(simulate: Simulate, tmp_path: Path) -> None:
    """The same seed gives the same output, another seed a different one."""
    arguments = (written(tmp_path, document()), "-o", "json", "--policy", "stowplan")
    code, out, _ = simulate(*arguments)
    found = json.loads(out)

    assert code == 0
    assert found["scenario"]["models"][0]["targets"] == {
        "ttft_seconds": 2.0,
        "itl_seconds": 0.08,
        "attainment": 0.95,
    }
    (outcome,) = found["outcomes"]
    assert len(outcome["points"]) == 10
    assert outcome["points"][5]["variants"][0].keys() == {
        "name", "published", "wanted", "spec", "ready", "starting",
    }  # fmt: skip
    assert outcome["decisions"][0]["variant"] == "v"
    assert simulate(*arguments)[1] == out
    assert simulate(*arguments, "--seed", "2")[1] != out


def test_duration_and_start_are_taken_from_the_command_line(simulate: Simulate, tmp_path: Path) -> None:
    """Both options override the file."""
    path = written(tmp_path, document())
    _, out, _ = simulate(path, "--duration", "60", "--start", "warm", "--policy", "constant:1", "-o", "json")
    found = json.loads(out)

    assert (found["scenario"]["duration_seconds"], found["scenario"]["warm_up_seconds"]) == (60, 600)
    assert found["outcomes"][0]["points"][0]["seconds"] == -600


def test_html_writes_a_page_in_addition_to_the_output(simulate: Simulate, tmp_path: Path) -> None:
    """If the page cannot be written, there is an error, and the output is printed nevertheless."""
    path = written(tmp_path, document())
    code, out, err = simulate(path, "--policy", "constant:1", "--html", str(tmp_path / "page.html"))

    assert (code, err) == (0, [])
    assert "constant:1" in out
    assert "<!doctype html>" in (tmp_path / "page.html").read_text()

    code, again, err = simulate(path, "--policy", "constant:1", "--html", str(tmp_path))

    assert (code, again) == (2, out)
    assert err == [f"error: {tmp_path}: cannot be written: Is a directory"]


def test_a_configuration_changes_only_the_stowplan_policy(simulate: Simulate, tmp_path: Path) -> None:
    """It can be a file or a ConfigMap; the policy `constant:1` is not affected."""
    path = written(tmp_path, document(nodes=[{"accelerator": "H100", "accelerators": 8}]))
    planning = {"planning": {"scaleToZero": True, "intervalSeconds": 60}}
    (tmp_path / "file.yaml").write_text(yaml.safe_dump(planning))
    held = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": yaml.safe_dump(planning)}}
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(held))

    def played(*arguments: str) -> list[dict[str, Any]]:
        outcomes: list[dict[str, Any]] = json.loads(simulate(path, "-o", "json", *arguments)[1])["outcomes"]
        return outcomes

    default, chosen = played(), played("--config", str(tmp_path / "file.yaml"))

    assert chosen == played("--config", str(tmp_path / "map.yaml"))
    assert chosen[1] == default[1]
    assert {item["seconds"] % 60 for item in chosen[0]["decisions"]} == {0}


def test_an_invalid_configuration_is_rejected(simulate: Simulate, tmp_path: Path) -> None:
    """All errors of the configuration and the scenario are reported, and nothing is simulated."""
    (tmp_path / "c.yaml").write_text("planning: {quorumPercent: 0, refreshSeconds: 60}")
    path = written(tmp_path, document(nodes=[]))
    code, out, err = simulate(path, "--config", str(tmp_path / "c.yaml"))

    assert (code, out) == (2, "")
    assert any("c.yaml:1: planning.quorumPercent: Invalid value: 0" in line for line in err)
    assert any("planning.refreshSeconds: Forbidden: unknown field" in line for line in err)
    assert any("nodes: Invalid value: []: must have at least 1 item" in line for line in err)


WRONG_SCENARIOS: dict[str, tuple[object, list[str]]] = {
    "not a mapping": ([1], ["must be one YAML mapping"]),
    "missing, misspelled and out-of-range fields": (
        document(variants=[{"name": "", "pricePerHour": -1}], modles=[], nodes=[]),
        [
            "modles: Forbidden: unknown field (is models meant?); allowed are ",
            "nodes: Invalid value: []: must have at least 1 item",
            "variants[0].accelerator: Required value",
            "variants[0].profile: Required value",
            'variants[0].name: Invalid value: "": must be',
            "variants[0].pricePerHour: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    "NaN beside another error": (
        document(durationSeconds=float("nan"), seed=-1),
        ['durationSeconds: Invalid value: "nan": must be a number', "seed: Invalid value: -1: must be"],
    ),
    "a curve with low above high": (
        document(models=[{"id": "m", "workload": {"trace": "x", "curve": {"high": 3, "low": 4}}}]),
        ["models[0].workload.curve.low: must be at most high, 3, was 4", "there is no file"],
    ),
    "a latency target of zero": (
        document(models=[{"id": "m", "ttftMilliseconds": 0}]),
        ["scenario.yaml:4: models[0].ttftMilliseconds: Invalid value: 0: must be greater than or equal to 1"],
    ),
    "duplicate models, a model without variant, a variant without model or node": (
        document(
            models=[{"id": "m"}, {"id": "m"}, {"id": "lonely"}],
            variants=[document()["variants"][0] | {"model": "other", "accelerator": "A100"}],
        ),
        [
            "models[1].id: 'm' is already in use",
            "models[0]: model 'm' has no variant",
            "models[2]: model 'lonely' has no variant",
            "variants[0].model: 'other' is not in models",
            "variants[0]: no node has 1 A100",
        ],
    ),
    "a trace that does not exist": (
        document(models=[{"id": "m", "workload": {"trace": "nowhere.csv"}}]),
        ["models[0].workload.trace: trace 'nowhere.csv': there is no file"],
    ),
    "a ramp without length": (
        document(models=[{"id": "m", "workload": {"curve": {"shape": "ramp", "high": 3}}}]),
        ["models[0].workload.curve: lengthSeconds must be greater than 0 for a ramp"],
    ),
    "an engine whose steps take no time": (
        document(
            variants=[
                document()["variants"][0]
                | {"profile": {"alpha": 0, "beta": 0, "delta": 0, "kvTokens": 16, "maxNumSeqs": 9000}}
            ]
        ),
        ["variants[0].profile: alpha must be greater than 0; maxNumBatchedTokens must be"],
    ),
    "an unknown policy": (document(policies=["magic"]), ["there is no policy 'magic'"]),
    "a policy for an unknown variant": (
        document(policies=["concurrency:3@w"]),
        ["policy concurrency:3@w: there is no variant 'w'; the variants are v"],
    ),
}


@pytest.mark.parametrize(("value", "told"), WRONG_SCENARIOS.values(), ids=WRONG_SCENARIOS.keys())
def test_all_errors_of_a_scenario_are_reported_at_once(
    simulate: Simulate, tmp_path: Path, value: object, told: list[str]
) -> None:
    """Each names its place; the exit code is 2, and nothing is simulated."""
    code, out, err = simulate(written(tmp_path, value))

    assert (code, out) == (2, "")
    assert all(any(text in line for line in err) for text in told), err


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"&a [*a]", b"models: &a [*a]", b"{" * 5000, b"models: 2024-01-01", b"a: b: c"],
    ids=["empty", "not UTF-8", "a recursive list", "a recursive field", "deep", "a date", "invalid YAML"],
)
def test_malformed_files_are_reported(simulate: Simulate, tmp_path: Path, content: bytes) -> None:
    """The exit code is 2, and each line names the file."""
    path = tmp_path / "scenario.yaml"
    path.write_bytes(content)
    code, out, err = simulate(str(path))

    assert (code, out) == (2, "")
    assert all(line.startswith(f"error: {path}") for line in err)


def test_each_invalid_line_of_a_trace_is_reported(simulate: Simulate, tmp_path: Path) -> None:
    """Each error names file and line; only the first twenty are listed."""
    (tmp_path / "t.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "x,1,1\n" * 25)
    code, _, err = simulate(written(tmp_path, document(models=[{"id": "m", "workload": {"trace": "t.csv"}}])))

    assert code == 2
    assert "t.csv:2: TIMESTAMP 'x' must be a time" in err[0]
    assert "5 more lines are invalid" in err[-1]
    assert len(err) == 21


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--start-up", "v"], "'v': must be VARIANT=SECONDS"),
        (["--start-up", "v=soon"], "'soon': must be a number of seconds from 0"),
        (["--profile", "v=1,2"], "must be three or four numbers"),
        (["--profile", "v=nan,2,3"], "must be finite numbers"),
        (["--kv-tokens", "v=0"], "must be more than 0"),
        (["--seed", "-1"], "'-1': must be a whole number"),
        (["--duration", "inf"], "'inf': must be a number of seconds from 15 to 604800"),
        (["--html", "-"], "argument --html: must be the name of a file"),
        (["--duration", "3"], "'3': must be a number of seconds from 15 to 604800"),
    ],
)
def test_an_invalid_argument_is_reported(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, and the message says which values are valid."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["simulate", f"{arguments[0]}={arguments[1]}"])

    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_scenario_file_and_objects_cannot_be_combined(simulate: Simulate) -> None:
    """Both define variants."""
    assert "not both" in simulate("x.yaml", "-f", str(PLAN_SAMPLES))[2][-1]


ONLY_WITH_OBJECTS = {
    "-n": "prod",
    "--settings-namespace": "settings",
    "--trace": "azure-llm-2023-conv",
    "--copies": "1",
    "--start-up": "v=60",
    "--profile": "v=8,0.05,0.03",
    "--kv-tokens": "v=384000",
}


@pytest.mark.parametrize(("option", "value"), ONLY_WITH_OBJECTS.items())
def test_options_for_objects_are_rejected_without_objects(
    simulate: Simulate, tmp_path: Path, option: str, value: str
) -> None:
    """The options are not ignored silently, and nothing is simulated."""
    code, out, err = simulate(written(tmp_path, document()), option, value)

    assert (code, out) == (2, "")
    assert err == [f"error: {option} requires -f FILE: a scenario contains its own values"]


def test_missed_shares_are_shown_only_with_latency_targets(simulate: Simulate, tmp_path: Path) -> None:
    """A share of 0 % would look like a success; models with a target still have their share."""
    model, variant = document()["models"][0], document()["variants"][0]
    bare = {name: value for name, value in model.items() if not name.endswith("Milliseconds")}
    slow = bare | {"id": "slow", "itlMilliseconds": 80}
    _, alone, _ = simulate(written(tmp_path, document(models=[bare])), "--policy", "constant:1")
    ways = [variant | {"model": "m"}, variant | {"model": "slow", "name": "w"}]
    nodes = [{"accelerator": "H100", "accelerators": 2}]
    path = written(tmp_path, document(models=[bare, slow], variants=ways, nodes=nodes))
    _, beside, _ = simulate(path, "--policy", "constant:1@v")

    def cells(out: str, begin: str) -> list[list[str]]:
        return [line.split() for line in out.splitlines() if line.startswith(begin)]

    assert cells(alone, "constant:1")[0][2:6] == ["-", "-", "-", "0.00%"]
    assert cells(alone, "warning: ")[-1][1:5] == ["m", "has", "no", "latency"]
    total, first, second = cells(beside, "constant:1@v")
    assert [cell.endswith("%") for cell in total[2:6]] == [True, False, True, True]
    assert first[3:6] == ["-", "-", "-"]
    assert [cell.endswith("%") for cell in second[3:7]] == [True, False, True, True]
    assert sum(line.startswith("warning:") for line in beside.splitlines()) == 1


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_samples_are_valid(path: Path) -> None:
    """They are not simulated here, because that takes too long for a unit test."""
    given = read_scenario(Source(name=str(path), data=path.read_bytes()))

    assert given.problems == ()
    assert given.scenario is not None


EXPORT = ("-f", str(PLAN_SAMPLES))


def test_all_values_missing_in_an_export_are_reported(simulate: Simulate) -> None:
    """The load of each model; the catalog knows the engines."""
    code, _, err = simulate(*EXPORT)

    assert code == 2
    assert not any("--profile" in line for line in err)
    assert any("--trace FILE=meta/llama-3.1-70b" in line for line in err)


def test_an_export_is_simulated_with_its_prices_latency_targets_and_nodes(
    simulate: Simulate, tmp_path: Path
) -> None:
    """The input is the objects of one model of a cluster and a recorded trace."""
    names = ("llama-70b-h100", "llama-70b-a100")
    supplied = [
        text
        for name in names
        for text in (
            "--start-up", f"{name}=60", "--profile", f"{name}=11,0.08,0.08", "--kv-tokens", f"{name}=200000",
        )
    ]  # fmt: skip
    kept = tmp_path / "live.yaml"
    kept.write_text(yaml.safe_dump_all(live_objects(names)))
    code, out, err = simulate(
        "-f", str(kept), "--trace", "azure-llm-2023-conv", "--duration", "300", *supplied,
        "-o", "json", "--policy", "stowplan", "--policy", "constant:1@llama-70b-a100",
    )  # fmt: skip

    assert (code, err) == (0, [])
    found = json.loads(out)
    assert {item["name"]: item["price_per_hour"] for item in found["scenario"]["variants"]} == {
        "llama-70b-h100": 16.0,
        "llama-70b-a100": 8.0,
    }
    (model,) = found["scenario"]["models"]
    assert model["priority"] == 1
    assert model["targets"] == {"ttft_seconds": 1.5, "itl_seconds": 0.08, "attainment": 0.95}
    assert len(found["outcomes"]) == 2
    assert found["outcomes"][1]["cost"] == pytest.approx(8 / 12)


def live_objects(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the objects of the plan sample that concern the given variants, and all shared objects."""
    found = []
    for path in sorted(PLAN_SAMPLES.glob("*.yaml")):
        for item in yaml.safe_load_all(path.read_text()):
            kind, name = item["kind"], item.get("metadata", {}).get("name", "")
            if kind in {"ConfigMap", "NodeList", "Pod"} or name in names:
                found.append(item)
    return found
