"""Generated files: `write` and `verify`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.generate import derived_files, verify, write

CRD = Path("manifests/crds/llmd/variantautoscalings.llmd.ai.yaml")


def test_files_are_not_stale_after_generation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second `write` changes nothing."""
    write(tmp_path)
    capsys.readouterr()

    assert write(tmp_path) == 0
    assert verify(tmp_path) == 0
    assert capsys.readouterr().out == ""


def test_a_stale_file_is_reported_with_the_command_to_regenerate_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output contains the difference, the file name and `make generate`."""
    write(tmp_path)
    stale = tmp_path / CRD
    stale.write_text(
        stale.read_text(encoding="utf-8").replace("scope: Namespaced", "scope: Cluster"), encoding="utf-8"
    )
    capsys.readouterr()

    assert verify(tmp_path) == 1
    told = capsys.readouterr()
    assert "-  scope: Cluster" in told.out
    assert told.err == f"stale: {CRD}; run `make generate`\n"


def test_every_field_has_a_description() -> None:
    """Neither a CRD nor a reference page contains a field without a description."""
    for path, text in derived_files().items():
        assert "description: ''" not in text, path
        assert "_ |  |" not in text, path
