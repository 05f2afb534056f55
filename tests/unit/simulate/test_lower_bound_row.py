"""The lower bound in the table and on the page of `stowplan simulate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver import cli

SCENARIO = """
start: cold
durationSeconds: 300
models: [{id: m, ttftMilliseconds: 2000, workload: {curve: {high: 5}}}]
variants:
- {name: v, accelerator: H100, pricePerHour: 9, profile: {alpha: 8, beta: 0.05, delta: 0.03, kvTokens: 38400}}
nodes: [{accelerator: H100}]
policies: ["lower-bound:90"]
"""


def test_the_lower_bound_has_a_cost_and_nothing_that_is_simulated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its row has the share that is dropped; its section of the page has the note and no charts."""
    path, page = tmp_path / "scenario.yaml", tmp_path / "page.html"
    path.write_text(SCENARIO)

    assert cli.main(["simulate", str(path), "--html", str(page)]) == 0

    out = capsys.readouterr().out
    row = next(line.split() for line in out.splitlines() if line.startswith("lower-bound:90 "))
    assert float(row[1]) > 0
    assert row[2:] == ["10.00%", *["-"] * 8, "v", "1"]
    assert "lower-bound:90: serving 90 %" in out
    assert "serving 90 %" in page.read_text()
    assert "<svg" not in page.read_text()
