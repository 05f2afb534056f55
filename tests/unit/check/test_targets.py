"""Targets of kinds that cannot be scaled with the default configuration of admission."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.manifests import legacy_variant, variant

from apiserver.kinds.scalable import SCALABLE
from controller.commands.check.manifests import check_source
from controller.commands.check.result import CheckResult, Verdict
from controller.commands.check.sources import Source

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "x"}


def binding(*references: dict[str, Any]) -> dict[str, Any]:
    """Return a binding of several targets."""
    params = [
        {"target": {"targetRef": item}, "cost": 1, "minReplicas": 1, "maxReplicas": 2} for item in references
    ]
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": "x"},
        "spec": {"policyRef": {"name": "p"}, "optimizerConfiguration": {"params": params}},
    }


def checked(manifest: dict[str, Any]) -> CheckResult:
    """Return the result of one object."""
    (result,) = check_source(Source(name="a.json", data=json.dumps(manifest).encode()))
    return result


def param(position: int) -> str:
    """Return the path of one of several references."""
    return f"spec.optimizerConfiguration.params[{position}].target.targetRef"


REFUSED = {
    "the target of a variant": (variant("x", scaleTargetRef=JOB), [("spec.scaleTargetRef", "Job of batch")]),
    "a kind of the core group": (
        variant("x", scaleTargetRef=JOB | {"apiVersion": "v1", "kind": "Pod"}),
        [("spec.scaleTargetRef", "Pod of the core group")],
    ),
    "the target of a legacy object": (
        legacy_variant("x", scaleTargetRef=JOB),
        [("spec.scaleTargetRef", "Job of batch")],
    ),
    "some of several targets": (
        binding(JOB, {"name": "llama"}, JOB | {"kind": "CronJob"}),
        [(param(0), "Job of batch"), (param(2), "CronJob of batch")],
    ),
}


@pytest.mark.parametrize(("manifest", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_a_target_of_a_kind_that_is_not_listed_is_rejected(
    manifest: dict[str, Any], want: list[tuple[str, str]]
) -> None:
    """As in admission, the message names the kind and the listed kinds."""
    result = checked(manifest)

    assert result.verdict is Verdict.REFUSED
    assert [(found.field, found.message.split(" cannot be scaled")[0]) for found in result.errors] == [
        (field, f"Forbidden: {what}") for field, what in want
    ]
    assert all(kind in found.message for found in result.errors for _, kind in SCALABLE)


def test_the_error_is_listed_with_all_others() -> None:
    """All errors are reported at once."""
    result = checked(variant("x", modelID="", variantCost=4, scaleTargetRef=JOB))

    assert [found.field for found in result.errors] == [
        "spec.modelID",
        "spec.variantCost",
        "spec.scaleTargetRef",
    ]


@pytest.mark.parametrize("item", SCALABLE, ids=" ".join)
def test_a_target_of_a_listed_kind_is_valid(item: tuple[str, str]) -> None:
    """Its version does not matter."""
    group, kind = item

    assert (
        checked(variant("x", scaleTargetRef={"apiVersion": f"{group}/v9", "kind": kind, "name": "x"})).errors
        == ()
    )


HALF = {
    "nothing": None,
    "text": "Job",
    "a list": [JOB],
    "a kind that is a number": {"kind": 5, "name": "x", "apiVersion": "batch/v1"},
    "a kind that is null": {"kind": None, "name": "x", "apiVersion": "batch/v1"},
    "a group without a version": {"kind": "Deployment", "name": "x", "apiVersion": "apps"},
    "a very long version": {"kind": "Deployment", "name": "x", "apiVersion": "a" * 1_000_000},
}


@pytest.mark.parametrize("reference", HALF.values(), ids=HALF.keys())
def test_a_malformed_target_gets_no_error_about_its_kind(reference: object) -> None:
    """One mistake causes one error."""
    result = checked(variant("x", modelID="m") | {"spec": {"modelID": "m", "scaleTargetRef": reference}})

    assert result.verdict is Verdict.REFUSED
    assert not any("cannot be scaled" in found.message for found in result.errors)


def test_a_group_without_a_version_gets_one_error_in_a_binding() -> None:
    """There is no second error about a kind of the wrong group."""
    result = checked(binding({"kind": "Deployment", "name": "x", "apiVersion": "apps"}))

    assert [found.field for found in result.errors] == [f"{param(0)}.apiVersion"]
