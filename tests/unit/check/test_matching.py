"""Kinds and versions that resemble served ones: errors with a suggestion, and cases that are ignored."""

from __future__ import annotations

import pytest

from apiserver.kinds.registry import KINDS
from controller.commands.check.matching import mismatch

NETWORKING = "networking.volcano.sh/v1alpha1"
INFERENCE = "inference.networking.x-k8s.io/v1alpha2"

WRONG = {
    "a kind in another case": (NETWORKING, "Modelserver", "kind", "did you mean ModelServer?"),
    "a kind with a letter missing": (NETWORKING, "ModelServr", "kind", "did you mean ModelServer?"),
    "a kind that resembles two": (
        "registry.volcano.sh/v1alpha1",
        "AutoscalingPolicyBindings",
        "kind",
        "did you mean AutoscalingPolicyBinding or AutoscalingPolicy?",
    ),
    "a misspelled kind that has two versions": (
        "llmd.ai/v1alpha1",
        "VariantAutoscaler",
        "kind",
        "did you mean VariantAutoscaling?",
    ),
    "a kind of another group": (
        NETWORKING,
        "Model",
        "kind",
        "did you mean Model of registry.volcano.sh/v1alpha1?",
    ),
    "a kind that resembles none": (
        NETWORKING,
        "Gateway",
        "kind",
        "the served kinds are ModelRoute, ModelServer",
    ),
    "a kind in a group that another project also uses": (
        INFERENCE,
        "InferenceObjectiv",
        "kind",
        "did you mean InferenceObjective?",
    ),
    "a group with one character too many": (
        "llm-d.ai/v1alpha2",
        "VariantAutoscaling",
        "apiVersion",
        "did you mean llmd.ai/v1alpha1 or llmd.ai/v1alpha2?",
    ),
    "a group in capitals": (
        "Registry.Volcano.sh/v1alpha1",
        "Model",
        "apiVersion",
        "did you mean registry.volcano.sh/v1alpha1?",
    ),
    "a group of another domain": (
        "networking.volcano.io/v1alpha1",
        "ModelServer",
        "apiVersion",
        "did you mean networking.volcano.sh/v1alpha1?",
    ),
    "a version that is not served": (
        "llmd.ai/v9",
        "VariantAutoscaling",
        "apiVersion",
        "the served versions are llmd.ai/v1alpha1, llmd.ai/v1alpha2",
    ),
}


@pytest.mark.parametrize(("api_version", "kind", "field", "advice"), WRONG.values(), ids=WRONG.keys())
def test_a_kind_or_version_that_resembles_a_served_one_gets_a_suggestion(
    api_version: str, kind: str, field: str, advice: str
) -> None:
    """The message is that of kubectl, followed by the nearest kinds or by all that are served."""
    found = mismatch(api_version, kind)

    assert found is not None
    assert found.field == field
    assert found.message == f'no matches for kind "{kind}" in version "{api_version}": {advice}'


RIGHT = {
    "a kind of another project in a served group": (INFERENCE, "InferencePool"),
    "a list of such a kind": (INFERENCE, "InferenceModelList"),
    "a kind of another project in another version": (
        "inference.networking.x-k8s.io/v1alpha1",
        "InferencePoolImport",
    ),
    "another group": ("apps/v1", "Modelserver"),
    "the core group": ("v1", "Model"),
    "the name of a served kind in another group of Kthena": (
        "networking.serving.volcano.sh/v1alpha1",
        "ModelRoute",
    ),
    "the name of a served kind in another project": ("kubeai.org/v1", "Model"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("api_version", "kind"), RIGHT.values(), ids=RIGHT.keys())
def test_a_kind_that_may_belong_to_another_project_is_ignored(api_version: str, kind: str) -> None:
    """Nothing is known about it."""
    assert mismatch(api_version, kind) is None


def test_every_served_kind_and_version_matches() -> None:
    """There is no error for any of them."""
    pairs = [(f"{kind.group}/{version.name}", kind.kind) for kind in KINDS for version in kind.versions]

    assert [mismatch(*pair) for pair in pairs] == [None] * len(pairs)
