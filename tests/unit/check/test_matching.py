"""Kinds and names that resemble known ones, and objects that were not checked, which `--strict` refuses."""

from __future__ import annotations

import json

import pytest
from support.manifests import deployment
from support.verbs import GOOD, Check

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
    assert str(found.path) == field
    assert found.body == f'no matches for kind "{kind}" in version "{api_version}": {advice}'


RIGHT = {
    "a kind of another project in a served group": (INFERENCE, "InferencePool"),
    "a list of such a kind": (INFERENCE, "InferenceModelList"),
    "a kind of another project in another version": (
        "inference.networking.x-k8s.io/v1alpha1",
        "InferencePoolImport",
    ),
    "another group": ("apps/v1", "Modelserver"),
    "the core group": ("v1", "Model"),
    "a kind of Kthena in a served group": ("networking.serving.volcano.sh/v1alpha1", "ExternalModelProvider"),
    "the name of a served kind in another group of Kthena": (
        "workload.serving.volcano.sh/v1alpha1",
        "AutoscalingPolicy",
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


OTHERS = {
    "a Model of a later release of Kthena": (
        "workload.serving.volcano.sh/v1alpha1",
        "ModelBooster",
        "it is the later shape of Model of registry.volcano.sh/v1alpha1, with one backend of fixed replicas:"
        " rewrite it with stowplan migrate --to stowplan, or leave this to Kthena's controller",
    ),
    "a policy with its targets": (
        "workload.serving.volcano.sh/v1alpha1",
        "AutoscalingPolicy",
        "it is an AutoscalingPolicy and an AutoscalingPolicyBinding of registry.volcano.sh/v1alpha1 in one"
        " object. Split it with stowplan migrate --to stowplan",
    ),
    "a binding of Kthena 0.2 to 0.4": (
        "workload.serving.volcano.sh/v1alpha1",
        "AutoscalingPolicyBinding",
        "it is the later shape of AutoscalingPolicyBinding of registry.volcano.sh/v1alpha1, where"
        " homogeneousTarget is scalingConfiguration, and heterogeneousTarget is optimizerConfiguration: write"
        " that one",
    ),
    "a kind of Kthena's router": (
        "networking.serving.volcano.sh/v1alpha1",
        "ExternalModelProvider",
        "Stowplan does not read it; only Kthena's router does",
    ),
    "another kind of a later group": (
        "workload.serving.volcano.sh/v1alpha1",
        "ModelServing",
        "this release supports the kinds of registry.volcano.sh, not those of workload.serving.volcano.sh",
    ),
    "an unknown subgroup": (
        "new.serving.volcano.sh/v1",
        "Model",
        "this release supports the kinds of networking.volcano.sh and networking.serving.volcano.sh and"
        " registry.volcano.sh, not those of new.serving.volcano.sh",
    ),
    "a kind that moved to llm-d's router": (
        "llm-d.ai/v1alpha2",
        "InferenceObjective",
        "it is the later shape of InferenceObjective of inference.networking.x-k8s.io/v1alpha2, which selects"
        " several pools; Stowplan supports the one with a poolRef: rewrite it with stowplan migrate --to"
        " stowplan",
    ),
    "a kind that makes annotated autoscalers": (
        "serving.kserve.io/v1alpha1",
        "LLMInferenceService",
        "KServe makes a HorizontalPodAutoscaler or ScaledObject for it; check that one, which Stowplan plans"
        " if it is annotated",
    ),
}


@pytest.mark.parametrize(("version", "kind", "said"), OTHERS.values(), ids=OTHERS.keys())
def test_an_object_of_another_release_is_named_and_refused_if_strict(
    check: Check, version: str, kind: str, said: str
) -> None:
    """It is valid somewhere, but this release does not know its fields."""
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    message = f"{kind}/a was not checked: {said}"

    assert check("a.yaml", a_yaml=text) == (0, [f"a.yaml:1: Warning: {message}"], [])
    assert check("--strict", "a.yaml") == (1, [f"a.yaml:1: error: {message}"], [])


def test_a_field_of_the_same_kind_in_another_group_is_named(check: Check) -> None:
    """Fields that no group knows, and those that occur twice, are not."""
    text = (
        f"apiVersion: {NETWORKING}\nkind: ModelRoute\nmetadata: {{name: a}}\nspec:\n  modelName: a\n"
        "  modelName: b\n  parentRefs: [{name: gw}]\n  zeta: 1\n"
        "  rules: [{targetModels: [{externalModelProviderName: far}]}]\n"
    )
    code, out, _ = check("a.yaml", a_yaml=text)

    assert code == 1
    assert [line for line in out if "Warning" in line] == [
        "a.yaml:1: Warning: spec.parentRefs, spec.rules[0].targetModels[0].externalModelProviderName: unknown"
        " in this group, but known in networking.serving.volcano.sh/v1alpha1"
    ]
    serving = text.replace("networking.", "networking.serving.")
    assert not [line for line in check("a.yaml", a_yaml=serving)[1] if "Warning" in line]


SETTINGS = {
    "a misspelt name of the service classes": ("service-class-config", "service-classes-config"),
    "a misspelt name of the prices": ("accelerator-unit-cost", "accelerator-unit-costs"),
}


@pytest.mark.parametrize(("name", "meant"), SETTINGS.values(), ids=SETTINGS.keys())
def test_settings_with_a_misspelt_name_are_named_and_refused_if_strict(
    check: Check, name: str, meant: str
) -> None:
    """They would be ignored in a cluster, with all priorities or prices in them."""
    text = f"{GOOD}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
    valid, line = "a.yaml:1: VariantAutoscaling/x valid", GOOD.count("\n") + 2
    message = f"ConfigMap/{name} was not checked: is {meant} meant?"

    assert check("a.yaml", a_yaml=text) == (0, [valid, f"a.yaml:{line}: Warning: {message}"], [])
    assert check("--strict", "a.yaml") == (1, [valid, f"a.yaml:{line}: error: {message}"], [])


OTHER_CLASSES = ("classes-of-a-team", "service-classes-config-b", "accelerator-unit-costs-2")


def test_other_config_maps_are_skipped(check: Check) -> None:
    """Classes that objects name by reference can be in a ConfigMap of any name."""
    maps = (f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n" for name in OTHER_CLASSES)
    text = GOOD + "".join(maps)

    assert check("--strict", "a.yaml", a_yaml=text) == (
        0,
        ["a.yaml:1: VariantAutoscaling/x valid"],
        ["skipped: 3 ConfigMap (v1)"],
    )


NOTHING = "nothing in this file was checked: no object is of a supported kind"


def test_a_file_without_a_checked_object_is_named_and_refused_if_strict(check: Check) -> None:
    """A file that another one is checked beside is named, too."""
    text = json.dumps(deployment("e", product="A100", accelerators=1))
    skipped = ["skipped: 1 Deployment (apps/v1)"]
    valid = "good.yaml:1: VariantAutoscaling/x valid"

    assert check("good.yaml", "a.json", good_yaml=GOOD, a_json=text) == (
        0,
        [valid, f"a.json: Warning: {NOTHING}"],
        skipped,
    )
    assert check("--strict", "good.yaml", "a.json") == (1, [valid, f"a.json: error: {NOTHING}"], skipped)
    assert check("--strict", "good.yaml") == (0, [valid], [])


def test_a_directory_is_refused_if_strict_and_nothing_in_it_is_checked(check: Check) -> None:
    """Its other files are no mistake where something is checked."""
    text = json.dumps(deployment("e", product="A100", accelerators=1))

    assert check("--strict", "d", d__a_json=text)[0] == 1
    assert check("--strict", "d", d__b_yaml=GOOD)[0] == 0


def test_json_has_what_was_not_checked(check: Check) -> None:
    """The verdict is `skipped`, or `refused` if strict."""
    text = "apiVersion: workload.serving.volcano.sh/v1alpha1\nkind: ModelBooster\nmetadata: {name: a}\n"

    found = [
        json.loads("\n".join(check(*args, "-o", "json", "a.yaml", a_yaml=text)[1]))
        for args in ((), ("--strict",))
    ]

    assert [item["objects"][0]["verdict"] for item in found] == ["skipped", "refused"]
    assert found[0]["objects"][0]["warnings"][0].startswith("ModelBooster/a was not checked")
    assert found[1]["objects"][0]["errors"][0]["reason"] == "NotChecked"
