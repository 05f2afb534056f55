"""Patience of clients in scenario files and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apiserver import cli

SCENARIO = """
start: cold
models: [{id: m, ttftMilliseconds: 100, workload: {curve: {high: 5}}}]
variants:
- {name: v, accelerator: H100, pricePerHour: 1, profile: {alpha: 8, beta: 0.05, delta: 0.03, kvTokens: 9600}}
nodes: [{accelerator: H100}]
"""

PATIENCES = {
    "the default": ("", (), 60.0),
    "that of the file": ("patienceSeconds: 7", (), 7.0),
    "never, by the file": ("patienceSeconds: 0", (), None),
    "that of the command line": ("patienceSeconds: 7", ("--patience", "9.5"), 9.5),
    "never, by the command line": ("patienceSeconds: 7", ("--patience", "0"), None),
}


@pytest.mark.parametrize(("line", "options", "seconds"), PATIENCES.values(), ids=PATIENCES.keys())
def test_clients_have_the_patience_of_the_file_or_the_command_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    line: str,
    options: tuple[str, ...],
    seconds: float | None,
) -> None:
    """There is no engine, so all requests are missed, and abandoned unless clients never give up."""
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO + line)

    cli.main(["simulate", str(path), *options, "--duration", "15", "--policy", "constant:0", "-o", "json"])

    found = json.loads(capsys.readouterr().out)
    assert found["scenario"]["patience_seconds"] == seconds
    assert found["outcomes"][0]["abandoned"] == (0 if seconds is None else 1)
    assert found["outcomes"][0]["missed"] == 1
