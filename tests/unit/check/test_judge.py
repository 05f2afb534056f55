"""Checks beyond the schema: namespaces, targets that cannot be scaled, and the ConfigMaps of settings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.manifests import legacy_variant, variant
from support.verbs import Check

from apiserver import cli
from apiserver.kinds.scalable import SCALABLE
from controller.commands.check.documents import Source
from controller.commands.check.judge import check_source
from controller.commands.check.result import CheckResult, CheckVerdict

FIELD = "spec.scalingConfiguration.target.targetRef.namespace"


def bound(*, own: str | None, target: str | None) -> dict[str, Any]:
    """Return a binding and its target, each in a namespace or without one."""
    reference = {"name": "llama"} | ({"namespace": target} if target else {})
    scaling = {"target": {"targetRef": reference}, "minReplicas": 1, "maxReplicas": 4}
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": "x"} | ({} if own is None else {"namespace": own}),
        "spec": {"policyRef": {"name": "p"}, "scalingConfiguration": scaling},
    }


def checked(manifest: dict[str, Any], namespace: str = "") -> CheckResult:
    """Return the result of one object."""
    (result,) = check_source(Source(name="a.json", data=json.dumps(manifest).encode()), namespace)
    return result


UNLESS = f"{FIELD}: is refused unless the binding is in that namespace"
ADVISED = {
    "the binding has no namespace": (None, "kube-system", "", [UNLESS]),
    "the binding has an empty namespace": ("", "kube-system", "", [UNLESS]),
    "the target has no namespace": (None, None, "", []),
    "the binding has the same namespace": ("kube-system", "kube-system", "", []),
    "the command line has the same namespace": (None, "kube-system", "kube-system", []),
}


@pytest.mark.parametrize(("own", "target", "namespace", "want"), ADVISED.values(), ids=ADVISED.keys())
def test_a_target_with_a_namespace_causes_a_warning_if_that_of_the_binding_is_unknown(
    own: str | None, target: str | None, namespace: str, want: list[str]
) -> None:
    """If it is known, there is no warning."""
    result = checked(bound(own=own, target=target), namespace)

    assert result.errors == ()
    assert [text for text in result.warnings if text.startswith(FIELD)] == want


@pytest.mark.parametrize(("own", "namespace"), [("a", ""), ("", "a"), (None, "a"), ("a", "a")])
def test_a_target_in_another_namespace_is_rejected(own: str | None, namespace: str) -> None:
    """The namespace of the binding may be its own or that of the command line."""
    result = checked(bound(own=own, target="kube-system"), namespace)

    assert [(found.field, found.reason) for found in result.errors] == [(FIELD, "FieldValueInvalid")]


def test_an_object_without_a_namespace_gets_that_of_the_command_line() -> None:
    """This is where kubectl would create it."""
    result = checked(bound(own=None, target=None), "prod")

    assert result.namespace == "prod"
    assert result.value is not None
    assert result.value["metadata"] == {"name": "x", "namespace": "prod"}


def test_an_object_of_another_namespace_is_rejected_with_all_its_errors() -> None:
    """The first message is that of kubectl, which would stop there."""
    result = checked(bound(own="dev", target="kube-system"), "prod")

    mismatch, target = result.errors
    assert (mismatch.field, mismatch.reason) == ("metadata.namespace", "NamespaceMismatch")
    assert mismatch.message == (
        'the namespace from the provided object "dev" does not match the namespace "prod". You must pass'
        " '--namespace=dev' to perform this operation."
    )
    assert target.field == FIELD
    assert result.namespace == "dev"


def test_malformed_metadata_is_rejected_with_a_namespace_on_the_command_line() -> None:
    """The namespace cannot be added to it."""
    manifest = bound(own=None, target=None) | {"metadata": "x"}

    assert [found.field for found in checked(manifest, "prod").errors] == ["metadata"]


def test_the_verb_has_an_option_for_the_namespace(check: Check) -> None:
    """Messages still have the lines of the file."""
    text = json.dumps(bound(own=None, target="kube-system"), indent=1)

    code, out, _ = check("-n", "prod", "-", given=text)
    assert (code, out) == (
        1,
        [
            f'<stdin>:15: The AutoscalingPolicyBinding "x" is invalid: {FIELD}: Invalid value: "kube-system":'
            " must be the namespace of the binding itself, or left out"
        ],
    )


def test_an_invalid_namespace_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """It is reported before any file is read."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(["check", "-n", "Prod", "-"])

    assert stopped.value.code == 2
    assert 'Invalid value: "Prod"' in capsys.readouterr().err


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

    assert result.verdict is CheckVerdict.REFUSED
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

    assert result.verdict is CheckVerdict.REFUSED
    assert not any("cannot be scaled" in found.message for found in result.errors)


def test_a_group_without_a_version_gets_one_error_in_a_binding() -> None:
    """There is no second error about a kind of the wrong group."""
    result = checked(binding({"kind": "Deployment", "name": "x", "apiVersion": "apps"}))

    assert [found.field for found in result.errors] == [f"{param(0)}.apiVersion"]


SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: service-classes-config, namespace: stowplan-system}
data:
  premium.yaml: |
    # served first
    priority: one
    data:
    - model: llama
      slo-ttft: 0
  broken.yaml: |
    name: Broken
    priority: [1
  short.yaml: "priority: 200"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: accelerator-unit-costs}
data:
  A100: '{"device": "NVIDIA-A100", "cost": "40.00"}'
  H100: |
    {"device": "NVIDIA-H100",
     "cost": "a lot"}
"""
SAMPLE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: service-classes-config}
data:
  premium.yaml: |
    priority: 1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {a: "priority: one"}
"""


def test_every_error_has_its_line_within_the_text(check: Check) -> None:
    """A text on one line has the line of its key."""
    code, out, _ = check("s.yaml", s_yaml=SETTINGS)

    assert (code, out) == (
        1,
        [
            's.yaml:1: The ConfigMap "service-classes-config" is invalid:',
            's.yaml:7: * data[premium.yaml].priority: Invalid value: "one": must be an integer',
            "s.yaml:10: * data[premium.yaml].data[0].slo-ttft: Invalid value: 0: must be greater than or"
            " equal to 1",
            "s.yaml:13: * data[broken.yaml]: Invalid value: is not YAML: line 3: expected ',' or ']', but got"
            " '<stream end>'",
            "s.yaml:14: * data[short.yaml].priority: Invalid value: 200: must be less than or equal to 100",
            's.yaml:23: The ConfigMap "accelerator-unit-costs" is invalid: data[H100].cost: Invalid value:'
            ' "a lot": must be a number from 0 to 1000000000, such as 40.00',
        ],
    )


def test_valid_settings_are_checked_and_other_config_maps_are_not(check: Check) -> None:
    """The names are those of the default configuration."""
    code, out, err = check("s.yaml", s_yaml=SAMPLE)

    assert (code, out) == (0, ["s.yaml:1: ConfigMap/service-classes-config valid"])
    assert err == ["skipped: 1 ConfigMap (v1)"]


def test_a_key_that_is_there_twice_is_refused(check: Check) -> None:
    """The last one would silently win."""
    code, out, _ = check("s.yaml", s_yaml=SAMPLE.replace("---", '  premium.yaml: "priority: 2"\n---', 1))

    assert code == 1
    assert out == [
        's.yaml:7: Error from server (BadRequest): ConfigMap in version "v1" cannot be handled as a'
        ' ConfigMap: strict decoding error: duplicate field "data.premium.yaml"'
    ]


def test_an_unknown_field_is_refused(check: Check) -> None:
    """Without `data`, it would have no effect."""
    code, out, _ = check("s.yaml", s_yaml=SAMPLE.replace("\ndata:", "\ndta:", 1))

    assert code == 1
    assert out == [
        's.yaml:4: Error from server (BadRequest): ConfigMap in version "v1" cannot be handled as a'
        ' ConfigMap: strict decoding error: unknown field "dta"'
    ]


NAMESPACES = {
    "the usual one, in the manifest": ("namespace: stowplan-system", "", False),
    "the usual one, by an option": ("", "stowplan-system", False),
    "an unknown one": ("", "", False),
    "another one, in the manifest": ("namespace: llm", "", True),
    "another one, by an option": ("", "llm", True),
}


@pytest.mark.parametrize(("in_manifest", "option", "is_warned"), NAMESPACES.values(), ids=NAMESPACES)
def test_settings_in_another_namespace_cause_a_warning(
    check: Check, in_manifest: str, option: str, is_warned: bool
) -> None:
    """An installation reads them in its own namespace only."""
    text = SAMPLE.replace(
        "{name: service-classes-config}", f"{{name: service-classes-config, {in_manifest}}}"
    )
    code, out, _ = check("s.yaml", *(["-n", option] if option else []), s_yaml=text)

    warning = "s.yaml:1: Warning: is read only if Stowplan is installed in namespace llm"
    assert (code, out[0] == warning) == (0, is_warned)


def test_an_object_that_a_file_contains_twice_causes_a_warning(check: Check) -> None:
    """`kubectl apply` reports the second one as configured, and the first one is lost."""
    code, out, _ = check("s.yaml", s_yaml=f"{SAMPLE}---\n{SAMPLE}")

    assert code == 0
    assert out == [
        "s.yaml:1: ConfigMap/service-classes-config valid",
        "s.yaml:13: Warning: ConfigMap/service-classes-config is also on line 1: kubectl applies both,"
        " and this one remains",
        "s.yaml:13: ConfigMap/service-classes-config valid",
    ]


AUTOSCALER = """\
apiVersion: {version}
kind: {kind}
metadata:
  name: chat
  annotations: {{llm-d.ai/managed: "{managed}", llm-d.ai/model_id: m, llm-d.ai/variant-cost: "-1"}}
spec: 7
"""


@pytest.mark.parametrize(
    ("version", "kind"), [("autoscaling/v2", "HorizontalPodAutoscaler"), ("keda.sh/v1alpha1", "ScaledObject")]
)
def test_wrong_annotations_of_an_annotated_autoscaler_cause_warnings(
    check: Check, version: str, kind: str
) -> None:
    """Its other fields are those of another project. It counts as checked."""
    text = AUTOSCALER.format(version=version, kind=kind, managed="true")
    code, out, err = check("--strict", "a.yaml", a_yaml=text)

    assert code == 0
    assert [line.partition(": ")[2].partition("]:")[0] for line in out] == [
        "Warning: metadata.annotations[llm-d.ai/model-id",
        "Warning: metadata.annotations[llm-d.ai/variant-cost",
        "Warning: metadata.annotations[llm-d.ai/model_id",
        f"{kind}/chat: annotations checked",
    ]
    assert err == []


def test_an_autoscaler_that_does_not_opt_in_is_skipped(check: Check) -> None:
    """Its annotations have no meaning."""
    text = AUTOSCALER.format(version="autoscaling/v2", kind="HorizontalPodAutoscaler", managed="no")

    assert check("a.yaml", a_yaml=text)[1] == [
        "a.yaml: Warning: nothing in this file was checked: no object is of a supported kind"
    ]
