"""Fixtures that run verbs of `stowplan` in an empty directory."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.verbs import Check, Stowplan

from apiserver import cli


@pytest.fixture
def stowplan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Stowplan:
    """Return a function that writes files, runs a verb, and returns its exit code, output and error lines.

    In the names of files, two underscores stand for a slash, and one for a dot.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, given: str = "", **files: str | bytes) -> tuple[int, str, list[str]]:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given.encode())))
        code = cli.main([*arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.splitlines()

    return run


@pytest.fixture
def check(stowplan: Stowplan) -> Check:
    """Return a function that runs `stowplan check` likewise, and returns lines of output."""

    def run(*arguments: str, **files: str) -> tuple[int, list[str], list[str]]:
        code, out, err = stowplan("check", *arguments, **files)
        return code, out.splitlines(), err

    return run


@pytest.fixture
def convert(stowplan: Stowplan) -> Stowplan:
    """Return a function that runs `stowplan convert` likewise."""
    return functools.partial(stowplan, "convert")
