"""Which objects a binding means, and that they are in its own namespace."""

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
        pytest.param("", [], id="none"),
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
def test_a_target_is_in_the_namespace_of_the_binding(namespace: str, want: list[str]) -> None:
    """Nobody reaches into another namespace."""
    spec = reference(name="llama", namespace=namespace)
    value = {"metadata": {"namespace": "team-a"}, "spec": spec}

    assert [str(error) for error in validate(AutoscalingPolicyBinding, value)] == want


@pytest.mark.parametrize("metadata", [{}, None, {"namespace": None}])
def test_without_a_namespace_of_its_own_nothing_is_known(metadata: JsonValue) -> None:
    """A file names none, and the command line decides later."""
    value = {"metadata": metadata, "spec": reference(name="llama", namespace="team-b")}

    assert validate(AutoscalingPolicyBinding, value) == []


def test_every_one_of_several_targets_is_held_to_the_namespace() -> None:
    """The error is at the one that is wrong."""
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
        pytest.param(DEPLOYMENT, ("apps/v1", "Deployment", "llama"), id="all of it"),
    ],
)
def test_a_reference_means_one_object(written: Json, want: tuple[str, str, str]) -> None:
    """What is left out has a default for whoever reads."""
    api_version, kind, name = want

    assert target_object(written) == TargetObject(api_version=api_version, kind=kind, name=name)


def test_a_binding_names_its_policy_and_its_targets() -> None:
    """Targets are what is scaled on behalf of the writer."""
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
def test_a_target_that_is_half_known_is_named_without_a_kind(half: Json) -> None:
    """So that nobody complains a second time, of a kind that nobody wrote."""
    _, claim = named_by({"spec": reference(**half)})

    assert (claim.kind, claim.name) == ("", "llama")


def test_an_empty_binding_names_nothing_and_does_not_fail() -> None:
    """References are asked for before anything is known to be valid."""
    assert [item.name for item in named_by({})] == [""]
