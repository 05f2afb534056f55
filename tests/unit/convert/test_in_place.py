"""`stowplan convert --in-place`: attributes of the file, and files that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Convert = Callable[..., tuple[int, str, list[str]]]

TEXT = "apiVersion: llmd.ai/v1alpha2\nkind: VariantAutoscaling\nmetadata: {name: a}\nspec: {modelID: m}\n"
FULL_DISK = """\
import resource, sys
from apiserver import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))
sys.exit(cli.main(["convert", "-f", "a.yaml", "--to", "v1alpha1", "--in-place"]))
"""


def _someone_else() -> tuple[int, int]:
    """Return an owner and a group that a file may get here, other than those of a new file."""
    if os.geteuid() == 0:
        return 4321, 4322
    return os.geteuid(), next((group for group in os.getgroups() if group != os.getegid()), os.getegid())


def test_owner_group_and_mode_stay(convert: Convert, tmp_path: Path) -> None:
    """This includes the mode bits that a change of the owner clears."""
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    os.chown(path, *_someone_else())
    path.chmod(0o2664)

    code, _, err = convert("-f", "a.yaml", "--to", "v1alpha1", "--in-place")

    assert (code, err) == (0, [])
    assert "v1alpha1" in path.read_text()
    status = path.stat()
    assert (status.st_uid, status.st_gid) == _someone_else()
    assert status.st_mode & 0o7777 == 0o2664


def test_a_symbolic_link_still_points_to_the_file(convert: Convert, tmp_path: Path) -> None:
    """The file that it points to is written."""
    (tmp_path / "real.yaml").write_text(TEXT)
    (tmp_path / "a.yaml").symlink_to("real.yaml")

    code, _, _ = convert("-f", "a.yaml", "--to", "v1alpha1", "--in-place")

    assert code == 0
    assert (tmp_path / "a.yaml").is_symlink()
    assert "v1alpha1" in (tmp_path / "real.yaml").read_text()


def test_a_full_disk_leaves_the_file_unchanged(tmp_path: Path) -> None:
    """No other file is left behind, and the error is reported."""
    (tmp_path / "a.yaml").write_text(TEXT)

    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr == "a.yaml: error: cannot be written: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
    assert (tmp_path / "a.yaml").read_text() == TEXT


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_write_permission_is_reported(convert: Convert, tmp_path: Path) -> None:
    """The exit code is that of an error."""
    (tmp_path / "a.yaml").write_text(TEXT)
    tmp_path.chmod(0o500)

    code, _, err = convert("-f", "a.yaml", "--to", "v1alpha1", "--in-place")
    tmp_path.chmod(0o700)

    assert (code, err) == (2, ["a.yaml: error: cannot be written: Permission denied"])
