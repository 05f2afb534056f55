"""Files of `stowplan plan`: skipped objects, output that cannot be written, and the samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.manifests import autoscaler, listed, variant
from support.plan_verb import Parts, Plan, World
from support.samples import SAMPLES


def test_omitted_objects_are_reported(plan: Plan, parts: Parts) -> None:
    """Other kinds are listed on standard error, variants that cannot be planned in a warning."""
    serving = {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing", "name": "set"}
    other = variant("set", scaleTargetRef=serving)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}

    code, out, err = plan("-f", "-", given=listed(*parts(), other, service, autoscaler("chat")))

    assert err == ["skipped: 1 Service (v1)"]
    left_out = "warning: VariantAutoscaling default/set is omitted: ModelServing 'set' cannot be planned:"
    assert f"{left_out} its scale was not read: see docs/targets.md" in " ".join(out.split())
    assert code == 1


UNWRITABLE = {
    "a missing directory": (
        ["--save", "plan", "--html", "missing/p.html"],
        ["missing/p.html: error: cannot be written: its directory does not exist"],
    ),
    "an existing directory": (
        ["--html", "plan", "--save", "."],
        [".: error: cannot be written: Is a directory"],
    ),
    "a file name that is too long": (
        ["--html", "p" * 300],
        [f"{'p' * 300}: error: cannot be written: File name too long"],
    ),
    "the same file twice": (
        ["--html", "plan", "--save", "./plan"],
        ["plan: error: --save and --html must name different files"],
    ),
}


@pytest.mark.parametrize(("arguments", "told"), UNWRITABLE.values(), ids=UNWRITABLE.keys())
def test_output_files_that_cannot_be_written_are_rejected_before_planning(
    plan: Plan, world: World, arguments: list[str], told: list[str]
) -> None:
    """Nothing is planned, and the exit code is 2."""
    code, out, err = plan("-f", "-", *arguments, given=world())

    assert (code, out, err) == (2, "", told)
    assert not Path("plan").exists()


def test_the_plan_is_printed_even_if_the_disk_is_full(plan: Plan, world: World) -> None:
    """An error that cannot be detected in advance is reported after the plan, with exit code 2."""
    code, out, err = plan("-f", "-", "--save", "/dev/full", given=world())

    assert code == 2
    assert out.splitlines()[-1] == "the demand of every model is met"
    assert err == ["/dev/full: error: cannot be written: No space left on device"]


SHORT = "2 models short: chat/meta/llama-3.1-70b, chat/qwen/qwen2.5-coder-32b"


@pytest.mark.parametrize(
    ("arguments", "code", "last"),
    [
        ([], 0, "the demand of every model is met"),
        (["--demand", "meta/llama-3.1-70b=105"], 1, SHORT),
    ],
    ids=["all models fit", "the lower priority goes short"],
)
def test_the_samples_give_the_documented_conclusions(
    plan: Plan, arguments: list[str], code: int, last: str
) -> None:
    """One command meets all demand, the other one leaves a model short."""
    ended, out, _ = plan("-f", str(SAMPLES / "plan"), *arguments)

    assert (ended, out.splitlines()[-1]) == (code, last)
