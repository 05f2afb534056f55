"""Warnings about annotations that look like Stowplan's and have no effect."""

from __future__ import annotations

import pytest

from apiserver.kinds.annotations import UNDERSTOOD, annotation_advice
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.registry import KINDS

VARIANT = "VariantAutoscaling"
CASES = {
    "a misspelt name": (
        VARIANT,
        {"stowplan.dev/pause": "true"},
        "metadata.annotations[stowplan.dev/pause]: has no effect on a VariantAutoscaling: is"
        " stowplan.dev/paused meant?",
    ),
    "a misspelt prefix": (
        VARIANT,
        {"stowpan.dev/replicas": "3"},
        "metadata.annotations[stowpan.dev/replicas]: has no effect on a VariantAutoscaling: is"
        " stowplan.dev/replicas meant?",
    ),
    "a prefix with two letters exchanged": (
        VARIANT,
        {"stowplna.dev/replicas": "3"},
        "metadata.annotations[stowplna.dev/replicas]: has no effect on a VariantAutoscaling: is"
        " stowplan.dev/replicas meant?",
    ),
    "a name that resembles none": (
        "ModelServer",
        {"stowplan.dev/zzz": "x"},
        "metadata.annotations[stowplan.dev/zzz]: has no effect on a ModelServer: the annotations are"
        " stowplan.dev/endpoint-picker",
    ),
    "an annotation of another kind": (
        "ModelRoute",
        {"stowplan.dev/paused": "true"},
        "metadata.annotations[stowplan.dev/paused]: has no effect on a ModelRoute: the annotations are"
        " stowplan.dev/parent-refs, stowplan.dev/request-priority",
    ),
    "a kind without annotations": (
        "InferenceObjective",
        {"stowplan.dev/paused": "true"},
        "metadata.annotations[stowplan.dev/paused]: has no effect on an InferenceObjective: it has no"
        " annotations of Stowplan",
    ),
    "a value that is not allowed": (
        VARIANT,
        {"stowplan.dev/replicas": "abc"},
        "metadata.annotations[stowplan.dev/replicas]: must be a whole number from 0 to 1000000, was 'abc',"
        " and is ignored: correct or remove it",
    ),
    "a valid one": (VARIANT, {"stowplan.dev/paused": "true"}, ""),
    "one that a process records": (VARIANT, {WRITTEN_BY: "{}"}, ""),
    "one of another project": (VARIANT, {"kubectl.kubernetes.io/last-applied-configuration": "{}"}, ""),
    "none": (VARIANT, None, ""),
}


@pytest.mark.parametrize(("kind", "annotations", "warning"), CASES.values(), ids=CASES.keys())
def test_an_annotation_without_effect_causes_a_warning(
    kind: str, annotations: dict[str, str] | None, warning: str
) -> None:
    """It names the nearest annotation of the kind."""
    found = [*annotation_advice(kind, {"metadata": {"annotations": annotations}})]

    assert found == ([warning] if warning else [])


def test_every_kind_with_annotations_is_served_or_an_autoscaler() -> None:
    """A name in the table that is misspelt would switch the warnings off."""
    assert {*UNDERSTOOD} <= {kind.kind for kind in KINDS} | {"HorizontalPodAutoscaler", "ScaledObject"}
