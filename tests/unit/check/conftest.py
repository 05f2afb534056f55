"""A fixture that runs the verb `check` in a directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.check_verb import Check

from apiserver import cli


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Return a function that writes files into an empty directory and runs the verb there: code, out, err."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **files: str) -> tuple[int, list[str], list[str]]:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        code = cli.main(["check", *arguments])
        captured = capsys.readouterr()
        return code, captured.out.splitlines(), captured.err.splitlines()

    return run
