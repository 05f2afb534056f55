"""Configuration of commands: defaults, file and flags, with all problems reported at once."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from apiserver.metrics.run import MetricsConfig
from apiserver.serving.config import ConfigurationError, load, parse
from controller.config import ControllerConfig, config_problems
from controller.config_planning import budgets_of, pools_of, settings_of, sizing_of
from controller.models.run import ModelsConfig
from controller.planning.cluster import Taint
from controller.planning.inputs import Settings
from controller.sizing.records import SizingSettings
from webhooks.config import WebhooksConfig

ALL = [WebhooksConfig, MetricsConfig, ControllerConfig, ModelsConfig]
SCREEN_LINES = 55


def parsed(arguments: list[str], file: Path | None = None) -> ControllerConfig:
    """Return the controller's configuration for these arguments."""
    flags = [*arguments, *([f"--config={file}"] if file else [])]
    return parse(ControllerConfig, program="stowplan controller", description="Plan.", arguments=flags)


def test_flags_override_the_file_and_the_file_overrides_defaults(tmp_path: Path) -> None:
    """Each level sets only its own fields."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "planning: {intervalSeconds: 7, solveSeconds: 9}\nserving: {logLevel: debug}\n", encoding="utf-8"
    )

    config = parsed(["--planning-interval-seconds=3"], file)

    assert (config.planning.interval_seconds, config.planning.solve_seconds) == (3, 9)
    assert (config.serving.log_level, config.serving.port) == ("debug", 9443)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    """Unknown fields, wrong types and values out of range are each reported with their path."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "planing: {}\nplanning: {intervalSeconds: soon}\nserving: {port: 70000}\n", encoding="utf-8"
    )

    with pytest.raises(ConfigurationError) as refused:
        parsed(["--log-level=loud"], file)

    assert refused.value.problems == (
        "serving.port: Invalid value: 70000: must be less than or equal to 65535",
        'serving.logLevel: Unsupported value: "loud": supported values: "debug", "info", "warning", "error"',
        'planning.intervalSeconds: Invalid value: "soon": must be an integer',
        "planing: Forbidden: unknown field (is planning meant?); allowed are accelerators, annotated,"
        " certificates, cluster, engines, names, namespace, planning, prometheus, scaling, serving, tenants",
    )


def test_duplicate_fields_are_rejected_with_their_line_numbers(tmp_path: Path) -> None:
    """Otherwise the last value would be used silently."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "planning: &a\n  intervalSeconds: 7\n  budgets:\n  - {name: a, name: b}\n  intervalSeconds: 9\n"
        "serving:\n  port: 1\nplanning: *a\n",
        encoding="utf-8",
    )

    with pytest.raises(ConfigurationError) as refused:
        parsed([], file)

    assert refused.value.problems == (
        f'--config {file}:4: duplicate field "planning.budgets[0].name": keep one of them',
        f'--config {file}:5: duplicate field "planning.intervalSeconds": keep one of them',
        f'--config {file}:8: duplicate field "planning": keep one of them',
    )


FULL = """
planning:
  nodePools:
  - name: a
    accelerator: H100
    acceleratorsPerNode: 8
    pricePerNode: "1"
    labels: {zone: z1}
    taints: [{key: gpu, value: "1", effect: NoSchedule}]
  budgets: [{name: team, costPerHour: "12", namespaces: [chat]}]
  advisoryNamespaces: [chat]
  evictions: {enabled: true}
engines: {podNetworks: [10.0.0.0/8]}
"""


@pytest.mark.parametrize("declared", ALL, ids=lambda declared: declared.__name__)
def test_an_empty_section_is_treated_as_absent(declared: type, tmp_path: Path) -> None:
    """Its fields have defaults, and flags apply."""
    file = tmp_path / "config.yaml"
    file.write_text("serving:\n  # port: 9443\ncluster:\n  context:\n", encoding="utf-8")
    flags = [f"--config={file}", "--port=7"]

    config: object = parse(declared, program="stowplan", description="Do.", arguments=flags)

    assert config == parse(declared, program="stowplan", description="Do.", arguments=["--port=7"])


def places(value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 (YAML)
    """Yield every list or mapping with every index or name in it."""
    for key, item in [*(value.items() if isinstance(value, dict) else enumerate(value))]:
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


def test_null_is_treated_as_absent_or_rejected() -> None:
    """A null for a required field counts as missing, and a null item of a list is rejected."""
    document = msgspec.json.decode(msgspec.json.encode(ControllerConfig())) | yaml.safe_load(FULL)
    load(ControllerConfig, document)
    refused: list[str] = []

    for holder, key in places(document):
        before, holder[key] = holder[key], None
        try:
            load(ControllerConfig, document)
        except ConfigurationError as error:
            refused += error.problems
        holder[key] = before

    assert "planning.nodePools[0]: Invalid value: null: must be an object" in refused
    assert "planning.nodePools[0].name: Required value" in refused
    assert all("Required value" in problem or "Invalid value: null" in problem for problem in refused)


NO_TEXT = {
    "infinity": ("namespace: .inf", 'namespace: Invalid value: "inf"'),
    "a date": ("prometheus: {url: 2024-01-01}", 'prometheus.url: Invalid value: "2024-01-01"'),
    "bytes": ("namespace: !!binary aGVsbG8=", "namespace: Invalid value: \"b'hello'\""),
    "not a number, in a list": (
        'planning: {budgets: [{name: .nan, costPerHour: "1"}]}',
        'planning.budgets[0].name: Invalid value: "nan"',
    ),
    "infinity, in a map": (
        "planning: {nodePools: [{name: a, accelerator: H100, acceleratorsPerNode: 8, labels: {a: .inf}}]}",
        'planning.nodePools[0].labels[a]: Invalid value: "inf"',
    ),
}


@pytest.mark.parametrize(("text", "told"), NO_TEXT.values(), ids=NO_TEXT.keys())
def test_a_yaml_value_without_json_counterpart_is_not_accepted_as_a_string(text: str, told: str) -> None:
    """It is reported once, with its field and what is allowed."""
    with pytest.raises(ConfigurationError) as refused:
        load(ControllerConfig, yaml.safe_load(text))

    assert refused.value.problems == (f"{told}: must be a string: write it in quotes",)


def test_no_field_is_suggested_for_an_unknown_section_without_similar_name() -> None:
    """The message lists the allowed sections."""
    with pytest.raises(ConfigurationError) as refused:
        load(WebhooksConfig, {"planning": {}})

    (problem,) = refused.value.problems
    assert problem.startswith("planning: Forbidden: unknown field; allowed are ")


@pytest.mark.parametrize("text", ["[]", "a: [", "- x", "\x00"])
def test_a_file_without_a_mapping_is_rejected(tmp_path: Path, text: str) -> None:
    """The error names the flag."""
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigurationError, match="--config"):
        parsed([], file)


def test_addresses_and_ordered_durations_are_checked_beyond_the_schema() -> None:
    """The check runs before the process starts."""
    config = parsed(["--prometheus-url=prometheus:9090", "--planning-held-seconds=1"])

    assert len(config_problems(config)) == 2


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(
            "prometheus: {url: 'https://p', credentials: {tokenFile: TOKEN}}", [], id="a token over TLS"
        ),
        pytest.param(
            "prometheus: {url: 'http://p', credentials: {tokenFile: TOKEN}}",
            ["prometheus.credentials.tokenFile: requires a url with https, otherwise others could read the"
             " token;"],
            id="a token without TLS",
        ),
        pytest.param(
            "prometheus: {url: 'http://p', credentials: {tokenFile: TOKEN, insecureToken: true}}",
            [],
            id="a token without TLS, allowed explicitly",
        ),
        pytest.param(
            "engines: {scheme: https, podNetworks: [10.0.0.0/8], credentials: {tokenFile: TOKEN}}",
            [],
            id="a token to pods within pod networks",
        ),
        pytest.param(
            "engines: {credentials: {tokenFile: TOKEN, insecureSkipVerify: true}}",
            ["engines.credentials.tokenFile: requires scheme: https and podNetworks and insecure"],
            id="a token to unrestricted addresses",
        ),
        pytest.param(
            "engines: {credentials: {caFile: /nowhere, keyFile: TOKEN}}",
            [
                "engines.credentials.caFile: there is no file /nowhere",
                "engines.credentials.keyFile: requires certificateFile",
            ],
            id="missing files",
        ),
    ],
)  # fmt: skip
def test_a_token_requires_tls_and_restricted_addresses_unless_allowed_explicitly(
    tmp_path: Path, document: str, want: list[str]
) -> None:
    """Prometheus needs a URL with https; engines need https and pod networks."""
    (tmp_path / "token").write_text("secret", encoding="utf-8")
    file = tmp_path / "config.yaml"
    file.write_text(document.replace("TOKEN", str(tmp_path / "token")), encoding="utf-8")

    problems = config_problems(parsed([], file))

    assert len(problems) == len(want)
    assert all(found.startswith(begin) for found, begin in zip(problems, want, strict=True))


def test_a_misspelled_field_in_a_list_is_reported_with_its_path(tmp_path: Path) -> None:
    """If the lead time of a pool were ignored, its nodes would be expected at once."""
    file = tmp_path / "config.yaml"
    pool = "{name: a, accelerator: H100, acceleratorsPerNode: 8, leadSecond: 3, taints: [{kee: x}]}"
    file.write_text(
        f"planning: {{nodePools: [{pool}], budgets: [{{name: b, costPerHour: 12}}]}}\n", encoding="utf-8"
    )

    with pytest.raises(ConfigurationError) as refused:
        parsed([], file)

    told = "\n".join(refused.value.problems)
    assert "planning.nodePools[0].leadSecond: Forbidden: unknown field (is leadSeconds meant?); " in told
    assert "planning.nodePools[0].taints[0].key: Required value" in told
    assert "planning.nodePools[0].taints[0].kee: Forbidden: unknown field; allowed are effect, key" in told
    assert "planning.budgets[0].costPerHour: Invalid value: 12: must be a string" in told


def test_pools_and_budgets_are_converted_for_planning(tmp_path: Path) -> None:
    """Accelerator types are normalised as on nodes, and prices are exact decimals."""
    file = tmp_path / "config.yaml"
    pool = (
        "{name: a, accelerator: NVIDIA-H100-80GB-HBM3, acceleratorsPerNode: 8, pricePerNode: '0.10', "
        "nodesAddable: 3, leadSeconds: 240, labels: {zone: z1}, taints: [{key: gpu}]}"
    )
    budget = "{name: team, costPerHour: '12.50', namespaces: [chat]}"
    file.write_text(
        f"planning: {{nodePools: [{pool}], budgets: [{budget}], standingSeconds: 900}}\n", encoding="utf-8"
    )

    planning = parsed([], file).planning

    (found,), (limit,) = pools_of(planning), budgets_of(planning)
    assert (found.accelerator, found.price_per_node, found.lead_seconds) == ("H100", Decimal("0.10"), 240.0)
    assert (found.labels, found.taints) == (frozenset({("zone", "z1")}), frozenset({Taint(key="gpu")}))
    assert (limit.cost_per_hour, limit.namespaces) == (Decimal("12.50"), frozenset({"chat"}))
    assert settings_of(planning).standing_seconds == 900.0


def test_duplicate_pool_names_and_excessive_prices_are_reported(tmp_path: Path) -> None:
    """Messages could not distinguish two pools of one name."""
    file = tmp_path / "config.yaml"
    pool = "{name: a, accelerator: H100, acceleratorsPerNode: 8, pricePerNode: '10000000000'}"
    file.write_text(f"planning: {{nodePools: [{pool}, {pool}]}}\n", encoding="utf-8")

    problems = config_problems(parsed([], file))

    assert problems[0] == "planning.nodePools: duplicate name 'a'"
    assert problems[1].startswith("planning.nodePools[0].pricePerNode: must be at most 1000000000")
    assert len(problems) == 3


def test_a_maximum_of_a_node_pool_needs_labels_by_which_to_count_nodes(tmp_path: Path) -> None:
    """Without labels, every node would count."""
    file = tmp_path / "config.yaml"
    pool = "name: a, accelerator: H100, acceleratorsPerNode: 8, maxNodes: 4"
    file.write_text(f"planning: {{nodePools: [{{{pool}}}]}}\n", encoding="utf-8")
    assert config_problems(parsed([], file)) == [
        "planning.nodePools[0].labels: must not be empty with maxNodes, which counts existing nodes by them"
    ]

    file.write_text(f"planning: {{nodePools: [{{{pool}, labels: {{pool: a}}}}]}}\n", encoding="utf-8")
    (found,) = pools_of(parsed([], file).planning)

    assert found.max_nodes == 4


def test_planning_has_its_own_defaults_and_every_field_is_translated(tmp_path: Path) -> None:
    """The effort of the solver follows from the time limit; only offline, messages name all variants."""
    file = tmp_path / "config.yaml"
    told = (
        "standingSeconds: 900, nameOtherNamespaces: true, evictions: {enabled: true, perRound: 2}, "
        "solveSeconds: 40"
    )
    file.write_text(f"planning: {{{told}}}\n", encoding="utf-8")

    assert settings_of(ControllerConfig().planning) == Settings(names_all=False)
    assert settings_of(parsed([], file).planning) == Settings(
        standing_seconds=900.0, names_all=True, most_moves=2, deterministic_seconds=4.0, wall_seconds=40.0
    )


def test_sizing_is_configured_in_percent_and_seconds(tmp_path: Path) -> None:
    """The history for the forecast spans a fixed number of intervals."""
    file = tmp_path / "config.yaml"
    told = (
        "intervalSeconds: 120, freshSeconds: 250, heldSeconds: 700, quorumPercent: 75,"
        " tryUnknownVariants: true"
    )
    file.write_text(f"planning: {{{told}}}\n", encoding="utf-8")

    assert sizing_of(ControllerConfig().planning) == SizingSettings()
    assert sizing_of(parsed([], file).planning) == SizingSettings(
        interval_seconds=120.0,
        history_seconds=4800.0,
        hold_seconds=2400.0,
        fresh_seconds=250.0,
        held_seconds=700.0,
        quorum=0.75,
        tries_unknown_variants=True,
    )


def test_eviction_settings_limit_the_moves_of_a_plan(tmp_path: Path) -> None:
    """By default no pod is moved, and the limit per round must not exceed that per hour."""
    file = tmp_path / "config.yaml"
    file.write_text("planning: {evictions: {enabled: true, perRound: 4, perHour: 2}}\n", encoding="utf-8")
    config = parsed([], file)

    assert settings_of(ControllerConfig().planning).most_moves == 0
    assert settings_of(config.planning).most_moves == 4
    assert config_problems(config) == [
        "planning.evictions.perHour: must be at least planning.evictions.perRound"
    ]


def test_help_lists_allowed_values(capsys: pytest.CaptureFixture[str]) -> None:
    """They are shown with the description of the flag."""
    with pytest.raises(SystemExit):
        parse(ControllerConfig, program="stowplan verb", description="Do.", arguments=["--help"])

    text = " ".join(capsys.readouterr().out.split())
    assert "--scaling-mode published|direct What scales the workloads [published]" in text
    assert "--log-level debug|info|warning|error The lowest level" in text


@pytest.mark.parametrize("declared", ALL, ids=lambda declared: declared.__name__)
def test_help_fits_a_screen(declared: type, capsys: pytest.CaptureFixture[str]) -> None:
    """Each flag has one line."""
    with pytest.raises(SystemExit) as ended:
        parse(declared, program="stowplan verb", description="Do.", arguments=["--help"])

    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0
    assert len(lines) <= SCREEN_LINES
    assert all(line.startswith("  -") for line in lines[lines.index("options:") + 1 :])
    assert max(map(len, lines)) <= 110
