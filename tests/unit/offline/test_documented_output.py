"""The output that README.md and docs/planning.md show is the real one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
COMMAND = "plan -f manifests/samples/plan --demand meta/llama-3.1-70b=90"

Plan = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def real(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines that the command prints for a wide terminal."""
    monkeypatch.chdir(TOP)
    _, out, _ = plan(*COMMAND.split()[1:])
    return out.splitlines()


def shown(page: str) -> list[str]:
    """Return the lines that a page shows below the command."""
    text = (TOP / page).read_text()
    found = re.search(
        rf"^\$ stowplan {re.escape(COMMAND)}\n(.*?)^(?:```|\$ )", text, re.DOTALL | re.MULTILINE
    )
    assert found is not None
    return found[1].splitlines()


def test_the_documentation_shows_all_of_a_plan(real: list[str]) -> None:
    """Line by line."""
    assert shown("docs/planning.md") == real


def test_the_readme_shows_an_excerpt_of_a_plan(real: list[str]) -> None:
    """Lines are left out, and none is changed."""
    rest = iter(real)

    assert [line for line in shown("README.md") if line not in rest] == []
