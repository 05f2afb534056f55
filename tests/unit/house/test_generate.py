"""Generated files: written, compared, and mended by one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.generate import derived_files, verify, write

CRD = Path("manifests/crds/llmd/variantautoscalings.llmd.ai.yaml")


def test_what_was_just_written_is_not_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Writing twice changes nothing the second time."""
    write(tmp_path)
    capsys.readouterr()

    assert write(tmp_path) == 0
    assert verify(tmp_path) == 0
    assert capsys.readouterr().out == ""


def test_a_stale_file_is_shown_with_the_command_that_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The difference, the file, and `make generate`."""
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
    """The CRD and the reference pages leave no field unexplained."""
    for path, text in derived_files().items():
        assert "description: ''" not in text, path
        assert "_ |  |" not in text, path
