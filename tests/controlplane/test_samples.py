"""What ships as a sample applies; what ships as a counter-example is refused in the words beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from support.samples import REFUSED, SAMPLES, VALID

if TYPE_CHECKING:
    from pathlib import Path

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane


@pytest.fixture(autouse=True)
def _installed(installation: Installation) -> None:
    """Every test here needs the webhooks."""


def name_of(path: Path) -> str:
    """Return the name under which a file is tested."""
    return str(path.relative_to(SAMPLES))


def in_any_namespace(paths: list[Path]) -> list[Path]:
    """Return the files that name no namespace; those of the demo and of a plan do."""
    return [path for path in paths if not {"demo", "plan"} & {*path.relative_to(SAMPLES).parts}]


@pytest.mark.parametrize("path", in_any_namespace(VALID), ids=name_of)
def test_a_sample_applies_twice(control_plane: ControlPlane, namespace: str, path: Path) -> None:
    """The second time nothing changes: what was filled in is no drift.

    kubectl may call an object configured all the same: it replaces lists whole, and items have defaults.
    """
    stamp = "--output=jsonpath={..metadata.generation}"
    apply = ("apply", f"--namespace={namespace}", f"--filename={path}", stamp)

    before = control_plane.kubectl(*apply).stdout

    assert before
    assert control_plane.kubectl(*apply).stdout == before


@pytest.mark.parametrize("path", in_any_namespace(REFUSED), ids=name_of)
def test_a_counter_example_is_refused(control_plane: ControlPlane, empty_namespace: str, path: Path) -> None:
    """A person reads exactly what the file beside it says."""
    finished = control_plane.kubectl(
        "apply", f"--namespace={empty_namespace}", f"--filename={path}", check=False
    )

    told = [line for line in finished.stderr.splitlines() if not line.startswith("Warning:")]
    assert "\n".join(told) + "\n" == path.with_suffix(".txt").read_text(encoding="utf-8")
    assert finished.returncode == 1


def test_explain_knows_every_field(control_plane: ControlPlane) -> None:
    """The recursive explanation of each kind names no field without a type, and every kind is there."""
    for crd in sorted((SAMPLES.parent / "crds").glob("*/*.*.yaml")):
        spec = yaml.load(crd.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["spec"]
        for version in spec["versions"]:
            api_version = f"{spec['group']}/{version['name']}"
            told = control_plane.kubectl(
                "explain", spec["names"]["plural"], f"--api-version={api_version}", "--recursive"
            ).stdout

            assert f"KIND:       {spec['names']['kind']}" in told
            assert "<empty>" not in told
