"""A fixture that runs verbs in a directory of its own."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.migrate_verb import Stowplan

from apiserver import cli


@pytest.fixture
def stowplan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Stowplan:
    """Return a function that writes files into an empty directory and runs a verb there: code, out, err."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, given: str = "", **files: str) -> tuple[int, str, list[str]]:
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given.encode())))
        code = cli.main([*arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.splitlines()

    return run
