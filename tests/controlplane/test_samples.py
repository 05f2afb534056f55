"""Samples can be applied, and counterexamples are rejected with the messages in the files beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from support.same_lines import check, lines_of_kubectl
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
    """The second apply does not change a generation: defaults are no drift.

    kubectl may still print `configured`: it replaces whole lists, whose items have defaults.
    """
    files = [f"--filename={path}" for path in in_any_namespace(VALID)]

    def generations() -> dict[tuple[str, str], int]:
        done = control_plane.kubectl("apply", f"--namespace={namespace}", *files, "--output=json")
        return {
            (item["kind"], item["metadata"]["name"]): item["metadata"]["generation"]
            for item in json.loads(done.stdout)["items"]
        }

    before = generations()

    assert len(before) >= len(files)
    assert generations() == before


@pytest.mark.parametrize("path", in_any_namespace(REFUSED), ids=name_of)
def test_a_counterexample_is_rejected(control_plane: ControlPlane, empty_namespace: str, path: Path) -> None:
    """The errors of kubectl are exactly the text beside it; `stowplan check` reports the same lines."""
    where = f"--namespace={empty_namespace}"
    finished = control_plane.kubectl("apply", where, f"--filename={path}", check=False)
    checked = check(path, where)

    told = [line for line in finished.stderr.splitlines() if not line.startswith("Warning:")]
    assert "\n".join(told) + "\n" == path.with_suffix(".txt").read_text(encoding="utf-8")
    assert checked.lines == lines_of_kubectl(finished.stderr, path)
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
