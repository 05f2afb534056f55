"""Configuration of a verb: defaults, then file, then flags, and every problem at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.metrics.config import MetricsConfig
from apiserver.serving.config import ConfigurationError, parse
from controller.config import ControllerConfig, config_problems
from webhooks.config import WebhooksConfig

ALL = [WebhooksConfig, MetricsConfig, ControllerConfig]
SCREEN_LINES = 40


def parsed(arguments: list[str], file: Path | None = None) -> ControllerConfig:
    """Parse the controller's configuration."""
    flags = [*arguments, *([f"--config={file}"] if file else [])]
    return parse(ControllerConfig, program="stowplan controller", description="Plan.", arguments=flags)


def test_flags_go_before_the_file_and_the_file_before_defaults(tmp_path: Path) -> None:
    """Each level overrides the one below."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "planning: {intervalSeconds: 7, solveSeconds: 9}\nserving: {logLevel: debug}\n", encoding="utf-8"
    )

    config = parsed(["--planning-interval-seconds=3"], file)

    assert (config.planning.interval_seconds, config.planning.solve_seconds) == (3, 9)
    assert (config.serving.log_level, config.serving.port) == ("debug", 9443)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    """Unknown fields, wrong types and values out of range, each with its path."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "planing: {}\nplanning: {intervalSeconds: soon}\nserving: {port: 70000}\n", encoding="utf-8"
    )

    with pytest.raises(ConfigurationError) as refused:
        parsed(["--log-level=loud"], file)

    assert len(refused.value.problems) == 4
    assert any(problem.startswith("planning.intervalSeconds: 'soon'") for problem in refused.value.problems)
    assert any("'planing' was unexpected" in problem for problem in refused.value.problems)


@pytest.mark.parametrize("text", ["[]", "a: [", "- x", "\x00"])
def test_a_file_that_is_no_mapping_is_told(tmp_path: Path, text: str) -> None:
    """Whatever stands in the file, the answer is one clear problem."""
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigurationError, match="--config"):
        parsed([], file)


def test_what_a_schema_cannot_judge_is_judged_before_anything_starts() -> None:
    """Networks, addresses and files."""
    flags = ["--prometheus-url=prometheus:9090", "--prometheus-ca-file=/nowhere", "--planning-held-seconds=1"]
    config = parsed(flags)

    assert len(config_problems(config)) == 3


@pytest.mark.parametrize("declared", ALL, ids=lambda declared: declared.__name__)
def test_help_fits_a_screen(declared: type, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each flag."""
    with pytest.raises(SystemExit) as ended:
        parse(declared, program="stowplan verb", description="Do.", arguments=["--help"])

    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= 110
