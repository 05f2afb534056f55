"""The title of a simulation of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.commands.simulate.run import title_of


@pytest.mark.parametrize("source", [".", "../exports", "./", "../exports/live.yaml"])
def test_a_simulation_is_titled_by_the_name_of_its_file_or_directory(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever path leads there."""
    (tmp_path / "exports").mkdir()
    monkeypatch.chdir(tmp_path / "exports")

    assert title_of(source) == ("live.yaml" if source.endswith("yaml") else "exports")


def test_standard_input_is_called_so() -> None:
    """Its argument is a dash."""
    assert title_of("-") == "standard input"
