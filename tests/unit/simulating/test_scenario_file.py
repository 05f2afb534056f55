"""Scenario files: empty members, and the order of errors."""

from __future__ import annotations

import pytest

from apiserver.checking.sources import Source
from controller.simulating.scenario_file import read_scenario

SMALL = """
name: small
durationSeconds: 300
models: [{id: m, workload: {curve: {shape: constant, high: 5, low: LOW}, trace: TRACE}}]
variants:
- {name: v, accelerator: H100, pricePerHour: 1, profile: {alpha: 8, beta: 0.05, delta: 0.03, kvTokens: 9600}}
nodes: [{accelerator: H100}]
"""

EMPTY = {
    "an empty section": "behavior:\n  # scaleUp: {}\n",
    "a null direction and null policies": "behavior: {scaleUp: ~, scaleDown: {policies: ~}}\n",
    "numbers": "seed:\ngraceSeconds:\n",
}


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_member_is_treated_as_absent(text: str) -> None:
    """It gets its default."""
    data = (SMALL.replace("LOW", "~").replace("TRACE", "~") + text).encode()

    given = read_scenario(Source(name="s.yaml", data=data))

    assert given.problems == ()
    assert given.scenario is not None


def test_errors_are_sorted_by_line() -> None:
    """They come from different checks."""
    data = (
        SMALL.replace("LOW", "0").replace(", trace: TRACE", "") + "node: 1\nseed: -1\nmodle: 2\n"
    ).encode()

    given = read_scenario(Source(name="s.yaml", data=data))

    lines = [int(problem.split(":")[1]) for problem in given.problems]
    assert len(lines) == 3
    assert lines == sorted(lines)
