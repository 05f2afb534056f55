"""Kinds and versions that are almost ours: refused with what was probably meant, and when they are let be."""

from __future__ import annotations

import pytest

from apiserver.checking.matching import mismatch
from apiserver.kinds.registry import KINDS

NETWORKING = "networking.volcano.sh/v1alpha1"
INFERENCE = "inference.networking.x-k8s.io/v1alpha2"

WRONG = {
    "a kind in another case": (NETWORKING, "Modelserver", "kind", "did you mean ModelServer?"),
    "a kind with a letter missing": (NETWORKING, "ModelServr", "kind", "did you mean ModelServer?"),
    "a kind between two": (
        "registry.volcano.sh/v1alpha1",
        "AutoscalingPolicyBindings",
        "kind",
        "did you mean AutoscalingPolicyBinding or AutoscalingPolicy?",
    ),
    "a kind of two versions stays in its own": (
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
    "a kind like no other": (NETWORKING, "Gateway", "kind", "the served kinds are ModelRoute, ModelServer"),
    "a kind in a group that others fill too": (
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
    "a version that nobody serves": (
        "llmd.ai/v9",
        "VariantAutoscaling",
        "apiVersion",
        "the served versions are llmd.ai/v1alpha1, llmd.ai/v1alpha2",
    ),
}


@pytest.mark.parametrize(("api_version", "kind", "field", "advice"), WRONG.values(), ids=WRONG.keys())
def test_what_is_almost_ours_is_told_with_what_is_served(
    api_version: str, kind: str, field: str, advice: str
) -> None:
    """In kubectl's words; then the nearest kinds, or all of the place."""
    found = mismatch(api_version, kind)

    assert found is not None
    assert found.field == field
    assert found.message == f'no matches for kind "{kind}" in version "{api_version}": {advice}'


RIGHT = {
    "a kind of others in a group of ours": (INFERENCE, "InferencePool"),
    "a list of it": (INFERENCE, "InferenceModelList"),
    "a kind of others in a version that is not ours": (
        "inference.networking.x-k8s.io/v1alpha1",
        "InferencePoolImport",
    ),
    "another group": ("apps/v1", "Modelserver"),
    "the core group": ("v1", "Model"),
    "a kind of our name in another group of Kthena": (
        "networking.serving.volcano.sh/v1alpha1",
        "ModelRoute",
    ),
    "a kind of our name of another project": ("kubeai.org/v1", "Model"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("api_version", "kind"), RIGHT.values(), ids=RIGHT.keys())
def test_what_may_be_somebody_else_s_is_let_be(api_version: str, kind: str) -> None:
    """Nothing is known of it here."""
    assert mismatch(api_version, kind) is None


def test_what_is_served_matches() -> None:
    """Every kind in each of its versions."""
    pairs = [(f"{kind.group}/{version.name}", kind.kind) for kind in KINDS for version in kind.versions]

    assert [mismatch(*pair) for pair in pairs] == [None] * len(pairs)
