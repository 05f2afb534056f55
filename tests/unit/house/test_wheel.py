"""The wheel: its content, and that it runs without the source tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = {"apiserver", "webhooks", "controller"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, from a copy: setuptools writes into the source tree, which other tests read."""
    folder = tmp_path_factory.mktemp("wheel")
    source, compiled = folder / "source", shutil.ignore_patterns("__pycache__")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=compiled)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(source),
    ]
    finished = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return next(folder.glob("*.whl"))


def test_the_wheel_contains_only_our_packages_with_their_data(wheel: Path) -> None:
    """Tests and manifests are not included, and no data file is missing."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}

    assert tops == PACKAGES
    assert "apiserver/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for folder in tops:
        sources = (path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix != ".pyc")
        assert {str(path.relative_to(ROOT)) for path in sources} <= set(names)


def test_the_wheel_runs_in_a_separate_environment(wheel: Path, tmp_path: Path) -> None:
    """With only its dependencies installed, every process prints its help."""
    venv.create(tmp_path / "env", with_pip=False)
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    zipfile.ZipFile(wheel).extractall(site)
    # The dependencies are those of this environment; its editable install of Stowplan is not visible.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    program = "import sys, apiserver.cli as c; print(c.__file__); sys.exit(c.main(sys.argv[1:]))"

    for verb in ("webhooks", "apiserver", "controller"):
        finished = subprocess.run(
            [str(tmp_path / "env" / "bin" / "python"), "-I", "-c", program, verb, "--help"],  # no PYTHONPATH
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        assert finished.stdout.startswith(str(site))
        assert "--config FILE" in finished.stdout
