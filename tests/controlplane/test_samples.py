"""Samples can be applied, and counterexamples are rejected with the messages in the files beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from support.command_line import lines_of_check, lines_of_kubectl, stowplan
from support.samples import REFUSED, SAMPLES, VALID

if TYPE_CHECKING:
    from pathlib import Path

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane


@pytest.fixture(autouse=True)
def _installed(installation: Installation) -> None:
    """Run the webhooks, which every test in this file needs."""


def name_of(path: Path) -> str:
    """Return the parameter ID of a file."""
    return str(path.relative_to(SAMPLES))


def in_any_namespace(paths: list[Path]) -> list[Path]:
    """Return the files whose objects have no namespace; those of the demo and of a plan have one."""
    return [path for path in paths if not {"demo", "plan"} & {*path.relative_to(SAMPLES).parts}]


def test_samples_can_be_applied_twice(control_plane: ControlPlane, namespace: str) -> None:
    """The second time, nothing changes: defaults are no drift. Another manager can own the same fields."""
    files = [f"--filename={path}" for path in in_any_namespace(VALID)]

    def applied(*options: str) -> list[str]:
        done = control_plane.kubectl("apply", f"--namespace={namespace}", *files, *options)
        return done.stdout.splitlines()

    first = applied()

    assert len(first) >= len(files)
    assert [line for line in applied() if not line.endswith(" unchanged")] == []
    shared = applied("--server-side", "--field-manager=second")
    assert [line for line in shared if not line.endswith(" serverside-applied")] == []


@pytest.mark.parametrize("path", in_any_namespace(REFUSED), ids=name_of)
def test_a_counterexample_is_rejected(control_plane: ControlPlane, empty_namespace: str, path: Path) -> None:
    """The errors of kubectl are exactly the text beside it; `stowplan check` reports the same lines."""
    where = f"--namespace={empty_namespace}"
    finished = control_plane.kubectl("apply", where, f"--filename={path}", check=False)
    checked = stowplan("check", str(path), where)

    told = [line for line in finished.stderr.splitlines() if not line.startswith("Warning:")]
    assert "\n".join(told) + "\n" == path.with_suffix(".txt").read_text(encoding="utf-8")
    assert lines_of_check(checked.out, path) == lines_of_kubectl(finished.stderr, path)
    assert finished.returncode == checked.code == 1


def test_kubectl_explain_has_every_field(control_plane: ControlPlane) -> None:
    """The recursive explanation of each kind has a type for each field."""
    for crd in sorted((SAMPLES.parent / "crds").glob("*/*.*.yaml")):
        spec = yaml.load(crd.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["spec"]
        for version in spec["versions"]:
            api_version = f"{spec['group']}/{version['name']}"
            told = control_plane.kubectl(
                "explain", spec["names"]["plural"], f"--api-version={api_version}", "--recursive"
            ).stdout

            assert f"KIND:       {spec['names']['kind']}" in told
            assert "<empty>" not in told
