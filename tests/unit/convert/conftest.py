"""A fixture that runs the verb `convert` in a directory of its own."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from apiserver import cli

Convert = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Convert:
    """Return a function that writes files into an empty directory and runs the verb there: code, out, err."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, given: str = "", **files: str | bytes) -> tuple[int, str, list[str]]:
        for name, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            (tmp_path / name.replace("_", ".")).write_bytes(data)
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given.encode())))
        code = cli.main(["convert", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.splitlines()

    return run
