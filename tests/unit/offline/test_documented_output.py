"""Output shown in docs/planning.md and README.md, compared with that of the commands."""

from __future__ import annotations

import re
import shlex

import pytest
from support.samples import SAMPLES

from apiserver import cli

TOP = SAMPLES.parent.parent
DOCUMENT = TOP / "docs" / "planning.md"
README = TOP / "README.md"
SHOWN = re.findall(
    r"^```console\n\$ stowplan ([^|\n]*)[^\n]*\n(.*?)^```",
    DOCUMENT.read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_the_documented_output(
    command: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The terminal has 120 columns; if another command filters the output, the lines are contiguous."""
    monkeypatch.chdir(TOP)
    monkeypatch.setenv("COLUMNS", "120")

    cli.main(shlex.split(command))

    assert shown in capsys.readouterr().out


def test_the_document_shows_output() -> None:
    """Otherwise the tests above would check nothing."""
    assert SHOWN


def test_the_readme_shows_an_excerpt_of_the_documented_output() -> None:
    """Lines may be omitted, but none is changed."""
    command, printed = next((command, shown) for command, shown in SHOWN if command.startswith("plan -f"))
    text = README.read_text("utf-8")
    excerpt = re.search(
        rf"^\$ stowplan {re.escape(command)}\n(.*?)^(?:```|\$ )", text, re.DOTALL | re.MULTILINE
    )
    assert excerpt is not None
    rest = iter(printed.splitlines())

    assert [line for line in excerpt[1].splitlines() if line not in rest] == []
