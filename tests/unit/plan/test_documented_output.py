"""Output shown in docs/planning.md, compared with that of the commands."""

from __future__ import annotations

import re
import shlex

import pytest
from support.samples import SAMPLES

from apiserver import cli

TOP = SAMPLES.parent.parent
DOCUMENT = TOP / "docs" / "planning.md"
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
