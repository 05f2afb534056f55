"""Warnings about bindings, and their references."""

from __future__ import annotations

import pytest
from support.bindings import DEPLOYMENT, SCALING_REF, of_kind, optimizer, param, reference, scaling

from apiserver.kinds.kthena.autoscaling import binding_advice
from apiserver.kinds.kthena.autoscalingpolicybinding import AutoscalingPolicyBinding
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import TargetObject, named_by, target_object
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.validation import validate


@pytest.mark.parametrize(
    ("namespace", "want"),
    [
        pytest.param("team-a", [], id="its own namespace"),
        pytest.param("", [], id="no namespace"),
        pytest.param(
            "team-b",
            [
                f'{SCALING_REF}.namespace: Invalid value: "team-b": must be the namespace of the binding'
                " itself, or left out"
            ],
            id="another namespace",
        ),
    ],
)
def test_a_target_must_be_in_the_namespace_of_the_binding(namespace: str, want: list[str]) -> None:
    """A binding cannot scale anything in another namespace."""
    spec = reference(name="llama", namespace=namespace)
    value = {"metadata": {"namespace": "team-a"}, "spec": spec}

    assert [str(error) for error in validate(AutoscalingPolicyBinding, value)] == want


@pytest.mark.parametrize("metadata", [{}, None, {"namespace": None}])
def test_the_namespace_of_a_target_is_not_checked_if_the_binding_has_none(metadata: JsonValue) -> None:
    """In a file, the binding may have none, because the command line sets it later."""
    value = {"metadata": metadata, "spec": reference(name="llama", namespace="team-b")}

    assert validate(AutoscalingPolicyBinding, value) == []


def test_the_namespace_of_each_of_several_targets_is_checked() -> None:
    """The error is at the target with the wrong namespace."""
    spec = optimizer(param("a"), of_kind(name="b", namespace="team-b"))
    (error,) = validate(AutoscalingPolicyBinding, {"metadata": {"namespace": "team-a"}, "spec": spec})

    assert str(error.path) == "spec.optimizerConfiguration.params[1].target.targetRef.namespace"


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param({"name": "a"}, ("workload.volcano.sh/v1alpha1", "ModelInfer", "a"), id="a name alone"),
        pytest.param(
            {"kind": "ModelInfer", "name": "a"},
            ("workload.volcano.sh/v1alpha1", "ModelInfer", "a"),
            id="the default kind",
        ),
        pytest.param(DEPLOYMENT, ("apps/v1", "Deployment", "llama"), id="a complete reference"),
    ],
)
def test_a_reference_resolves_to_one_object(written: Json, want: tuple[str, str, str]) -> None:
    """Omitted fields have defaults."""
    api_version, kind, name = want

    assert target_object(written) == TargetObject(api_version=api_version, kind=kind, name=name)


def test_a_binding_refers_to_its_policy_and_its_targets() -> None:
    """Only targets are scaled on behalf of the writer."""
    named = list(named_by({"spec": optimizer(param("a"), of_kind(**DEPLOYMENT))}))

    assert [(str(item.path), item.group, item.kind, item.name, item.is_scaled) for item in named] == [
        ("spec.policyRef", "registry.volcano.sh", "AutoscalingPolicy", "queue-length", False),
        (
            "spec.optimizerConfiguration.params[0].target.targetRef",
            "workload.volcano.sh",
            "ModelInfer",
            "a",
            True,
        ),
        ("spec.optimizerConfiguration.params[1].target.targetRef", "apps", "Deployment", "llama", True),
    ]


@pytest.mark.parametrize(
    "half", [{"kind": "Deployment", "name": "llama"}, {"apiVersion": "apps/v1", "name": "llama"}]
)
def test_an_incomplete_target_reference_has_no_kind(half: Json) -> None:
    """Otherwise there would be a second error, about a kind that the user has not set."""
    _, claim = named_by({"spec": reference(**half)})

    assert (claim.kind, claim.name) == ("", "llama")


def test_the_references_of_an_empty_binding_are_read_without_an_error() -> None:
    """References are read before it is known whether the object is valid."""
    assert [item.name for item in named_by({})] == [""]


PARAMS = "spec.optimizerConfiguration.params"
ASLEEP = "at 0 replicas no pod reports metrics; stowplan.dev/activity wakes it"
ADVISED = {
    "a usual binding": (scaling(), []),
    "several usual targets": (optimizer(param("a"), param("b", minReplicas=0)), []),
    "fields of a reference without effect": (
        reference(name="llama", uid="1-2-3", fieldPath="spec.roles"),
        [f"{SCALING_REF}.{name}: has no effect here" for name in ("uid", "fieldPath")],
    ),
    "equal bounds": (
        scaling(minReplicas=4),
        ["spec.scalingConfiguration.maxReplicas: equals minReplicas, so nothing is ever scaled"],
    ),
    "a minimum of 0 without the activity annotation": (
        scaling(minReplicas=0),
        [f"spec.scalingConfiguration.minReplicas: {ASLEEP}"],
    ),
    "several targets with equal bounds": (
        optimizer(param("a", minReplicas=4), param("b", minReplicas=4)),
        [f"{PARAMS}: every maxReplicas equals its minReplicas, so nothing is ever scaled"],
    ),
    "several targets with a minimum of 0, without the activity annotation": (
        optimizer(param("a", minReplicas=0), param("b", minReplicas=0)),
        [f"{PARAMS}: {ASLEEP}"],
    ),
    "one target with a cost of 0": (
        optimizer(param("a"), param("b", cost=0)),
        [f"{PARAMS}[1].cost: 0 comes first; equal costs are taken by position"],
    ),
    "several targets with a cost of 0": (
        optimizer(param("a", cost=0), param("b", cost=0)),
        [f"{PARAMS}[0].cost: 0 (as in 1 more) comes first; equal costs are taken by position"],
    ),
    "an expansion rate below 100": (
        optimizer(param("a"), costExpansionRatePercent=99),
        [
            "spec.optimizerConfiguration.costExpansionRatePercent: below 100 means 100: nothing costs less"
            " than the least"
        ],
    ),
}


CAPACITY = "metadata.annotations[stowplan.dev/capacity]"
CAPACITIES = {
    "both targets": ("a=2.5, b=1", []),
    "a value that is not a number": (
        "a=much",
        [
            f"{CAPACITY}: must be NAME=NUMBER,NAME=NUMBER with numbers from 0.001 to 9999, such as"
            " llama-h100=2.5; invalid values count as 1"
        ],
    ),
    "a name of no target": ("c=2", [f"{CAPACITY}: optimizerConfiguration has no target named c"]),
}


@pytest.mark.parametrize(("text", "want"), CAPACITIES.values(), ids=CAPACITIES.keys())
def test_an_invalid_capacity_annotation_causes_a_warning(text: str, want: list[str]) -> None:
    """Admission cannot reject an annotation."""
    binding = {
        "metadata": {"annotations": {"stowplan.dev/capacity": text}},
        "spec": optimizer(param("a"), param("b")),
    }

    assert binding_advice(binding) == want


@pytest.mark.parametrize(("spec", "want"), ADVISED.values(), ids=ADVISED.keys())
def test_probably_unintended_values_cause_warnings(spec: Json, want: list[str]) -> None:
    """They are valid; each warning has at most 120 characters, and usual values cause none."""
    assert validate(AutoscalingPolicyBinding, {"spec": spec}) == []

    advice = binding_advice({"spec": spec})

    assert advice == want
    assert all(len(text) <= 120 for text in advice)


def test_the_activity_annotation_silences_the_warning_about_scaling_to_zero() -> None:
    """The annotation names a metric that wakes the replicas."""
    spec = optimizer(param("a", minReplicas=0), param("b", minReplicas=0))
    annotations = {"stowplan.dev/activity": "app=router:9090/metrics queue_size"}

    assert binding_advice({"spec": spec}) == [f"{PARAMS}: {ASLEEP}"]
    assert binding_advice({"metadata": {"annotations": annotations}, "spec": spec}) == []
