"""Targets of an AutoscalingPolicyBinding: which objects the references name, and their namespace."""

from __future__ import annotations

import pytest
from support.bindings import DEPLOYMENT, SCALING_REF, of_kind, optimizer, param, reference

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
