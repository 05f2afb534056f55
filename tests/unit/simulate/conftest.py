"""The fixture that runs `stowplan simulate` in an empty directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plan_verb import Simulate

from apiserver import cli


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulate:
    """Return a function that runs the verb: exit code, output and lines of errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, list[str]]:
        code = cli.main(["simulate", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.splitlines()

    return run
