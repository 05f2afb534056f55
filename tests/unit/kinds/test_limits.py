"""Texts, names and numbers beyond their limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from apiserver.kinds.core.affinity import NodeAffinity, PodAffinityTerm
from apiserver.kinds.core.containers import EnvVar, ResourceRequirements
from apiserver.kinds.inference.inferenceobjective import PoolObjectReference
from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicyMetric
from apiserver.kinds.kthena.modelmatch import ModelMatch, StringMatch, compile_fault
from apiserver.kinds.llmd.v1alpha2 import ConfigMapKeyRef, PerfParms
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.kinds.meta import CrossVersionObjectReference, LocalObjectReference, ObjectReference
from apiserver.kinds.registry import DEFINED, KINDS
from apiserver.schema.durations import nanoseconds
from apiserver.schema.json import Json
from apiserver.schema.model import SchemaNode, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.quantities import amount
from apiserver.schema.structural import crd_manifest
from apiserver.schema.validation import judge, validate

CHARACTERS: Final = 1_000_000
MOST_SECONDS: Final = 0.1
"""Time enough to read the text a few times, and too little to read it once for each character."""

TEXTS: Final = {
    "open groups": "(" * CHARACTERS,
    "digits": "9" * CHARACTERS,
    "many parts of a duration": "1s" * (CHARACTERS // 2),
    "dots": "../" * (CHARACTERS // 3),
    "letters": "a" * CHARACTERS,
    "a long label key in a field path": f"metadata.labels['{'.' * CHARACTERS}']",
}


def ruled_texts(node: SchemaNode, path: str) -> Iterator[tuple[str, SchemaNode]]:
    """Yield every text with rules below a node, with its path."""
    if node.type in ("string", "int-or-string") and node.rules:
        yield path, node
    for prop in node.properties:
        yield from ruled_texts(prop.node, f"{path}.{prop.name}")
    for inner in (node.items, node.values):
        if inner is not None:
            yield from ruled_texts(inner, f"{path}[]")


RULED: Final = {
    (place.rpartition(".")[2], text.rules): pytest.param(text, id=place)
    for kind in KINDS
    for version in kind.versions
    for place, text in ruled_texts(node_of(version.declaration), kind.kind)
}


@pytest.mark.parametrize("node", RULED.values())
def test_rules_ignore_texts_that_are_too_long(node: SchemaNode) -> None:
    """The schema rejects such texts, and a rule must not take long to recognize them."""
    assert "maxLength" in node.keywords
    for text in TEXTS.values():
        begun = time.process_time()
        found = [error for rule in node.rules for error in rule.check(text, FieldPath())]

        assert time.process_time() - begun < MOST_SECONDS
        assert not found


LONG: Final[dict[str, tuple[type, Json, list[str]]]] = {
    "a divisor": (
        EnvVar,
        {
            "name": "A",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "9" * CHARACTERS}},
        },
        ["valueFrom.resourceFieldRef.divisor: Too long: may not be more than 64 bytes"],
    ),
    "an amount": (
        ResourceRequirements,
        {"limits": {"cpu": "9" * CHARACTERS}},
        ["limits[cpu]: Too long: may not be more than 64 bytes"],
    ),
    "a value to compare a node's label with": (
        NodeAffinity,
        {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["9" * CHARACTERS]}]}
                ]
            }
        },
        [
            "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
            ".values[0]: Too long: may not be more than 317 bytes"
        ],
    ),
    "a parameter": (
        PerfParms,
        {"decodeParms": {"alpha": "." * CHARACTERS}, "prefillParms": {"gamma": "1"}},
        ["decodeParms[alpha]: Too long: may not be more than 64 bytes"],
    ),
}


@pytest.mark.parametrize(("declared", "value", "want"), LONG.values(), ids=LONG.keys())
def test_a_value_that_is_too_long_gets_one_error(declared: type, value: Json, want: list[str]) -> None:
    """Rules over several fields ignore it as well."""
    assert [str(error) for error in validate(declared, value)] == want


def test_a_required_label_value_of_a_node_has_the_length_limit_of_labels() -> None:
    """The field allows names of nodes, which may be longer."""
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a" * 64]}]}
    value = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}

    (error,) = validate(NodeAffinity, value)

    assert error.body.endswith("must be no more than 63 bytes")


def test_long_lists_of_keys_are_compared_quickly() -> None:
    """Two lists of 100,000 keys without a common one are compared in less than a second."""
    keys = {
        "labelSelector": {},
        "matchLabelKeys": [f"a{position}" for position in range(100_000)],
        "mismatchLabelKeys": [f"b{position}" for position in range(100_000)],
    }
    (rule,) = node_of(PodAffinityTerm).rules
    begun = time.process_time()

    assert not list(rule.check(keys, FieldPath()))
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_long_text_is_parsed_neither_as_a_duration_nor_as_a_quantity(text: str) -> None:
    """Both have at most 64 characters."""
    begun = time.process_time()

    assert nanoseconds(text) is None
    assert amount(text) is None
    assert time.process_time() - begun < MOST_SECONDS


def test_an_integer_may_have_any_number_of_digits() -> None:
    """It is no text; the schema rejects it for its width, before any rule."""
    [error] = validate(AutoscalingPolicyMetric, {"metricName": "m", "targetValue": 10**70})

    assert amount(10**70) == 10**70
    assert error.body.endswith("must be less than or equal to 9223372036854775807")


def test_the_length_of_a_header_name_is_limited() -> None:
    """The schema does not limit the keys of a map."""
    assert not validate(ModelMatch, {"headers": {"a" * 256: {}}})
    assert validate(ModelMatch, {"headers": {"a" * 257: {}}})


def test_a_regular_expression_that_is_too_long_is_not_compiled() -> None:
    """The error is about its length, whatever else is wrong with it."""
    (error,) = validate(StringMatch, {"regex": "(" * 513})

    assert error.reason == "FieldValueTooLong"
    assert validate(StringMatch, {"regex": "(" * 512})[0].reason == "FieldValueInvalid"


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells how much memory is used")
def test_compiled_regular_expressions_do_not_stay_in_memory() -> None:
    """A short text can compile to a large program; neither programs nor long texts are kept."""
    compile_fault("warm up")
    before = resident_bytes()

    for number in range(40):
        assert not compile_fault(f"{number}\\pL{{20}}")
        assert not compile_fault(f"{number}{'(' * CHARACTERS}")

    assert resident_bytes() - before < 6_000_000


DEPLOYMENT: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
KEY: Final = {"name": "classes", "key": "premium.yaml"}
NO_NAMES: Final = ("../../other/deployments/x", "a/b", "..", "%2e%2e", "a?b", "a b", "A", "a#b", "")

FIELDS: Final = {
    "a scale target": (CrossVersionObjectReference, DEPLOYMENT, "name", NO_NAMES),
    "an object in the same namespace": (LocalObjectReference, {}, "name", NO_NAMES),
    "an object in any namespace": (ObjectReference, DEPLOYMENT, "name", NO_NAMES[:-1]),
    "a ConfigMap": (ConfigMapKeyRef, KEY, "name", NO_NAMES),
    "a key of a ConfigMap": (ConfigMapKeyRef, KEY, "key", ("../a", "a/b", "..", "%2e", "a b", "")),
    "a pool": (PoolObjectReference, {}, "name", ("../../x", "a/b", ".", "..", "%2e%2e", "")),
    "a kind": (CrossVersionObjectReference, DEPLOYMENT, "kind", ("De ploy", "a/b", "..", "1a", "a-", "")),
    "the kind of an object in any namespace": (
        ObjectReference,
        DEPLOYMENT,
        "kind",
        ("De ploy", "a/b", "..", "1a", "a-"),
    ),
    "a version": (
        CrossVersionObjectReference,
        DEPLOYMENT,
        "apiVersion",
        ("not/a/version", "apps", "apps/", "/v1", "../v1", "apps/v1/../..", "Apps/v1", "apps/V1"),
    ),
    "a namespace": (ObjectReference, DEPLOYMENT, "namespace", ("../a", "a.b", "A", "a/b")),
}


@pytest.mark.parametrize(("declared", "value", "field", "wrong"), FIELDS.values(), ids=FIELDS.keys())
def test_a_text_that_is_no_valid_name_is_rejected(
    declared: type, value: Json, field: str, wrong: tuple[str, ...]
) -> None:
    """All errors are at the field itself, whatever the other fields contain."""
    for text in wrong:
        errors = validate(declared, value | {field: text})

        assert {str(error.path) for error in errors} == {field}, text


RIGHT: Final = {
    "a kind of the core group": (
        CrossVersionObjectReference,
        {"apiVersion": "v1", "kind": "Pod", "name": "a.b-c"},
    ),
    "a kind of another group": (CrossVersionObjectReference, DEPLOYMENT),
    "a kind without a version": (CrossVersionObjectReference, {"kind": "Deployment", "name": "llama"}),
    "a kind of an old version": (
        CrossVersionObjectReference,
        DEPLOYMENT | {"apiVersion": "x.example/v1beta1"},
    ),
    "empty optional fields": (ObjectReference, {"apiVersion": "", "kind": "", "namespace": "", "name": "a"}),
    "a pool of any name": (PoolObjectReference, {"name": "Pool:one two"}),
    "a key": (ConfigMapKeyRef, {"name": "a.b", "key": "_A.yaml"}),
}


@pytest.mark.parametrize(("declared", "value"), RIGHT.values(), ids=RIGHT.keys())
def test_a_valid_name_is_accepted(declared: type, value: Json) -> None:
    """Kinds allow different names, and optional fields may be empty."""
    assert not validate(declared, value)


def variant(**changes: str) -> Json:
    """Return a stored variant whose target has a name that an older release accepted."""
    spec = {"modelID": "m", "variantCost": "1", "scaleTargetRef": DEPLOYMENT | {"name": "Old_Name"}}
    return {"metadata": {"name": "v", "namespace": "n"}, "spec": spec | changes}


def test_a_stored_invalid_name_does_not_block_updates_of_other_fields() -> None:
    """A new object with this name is rejected."""
    version = VARIANT_AUTOSCALING.storage_version

    assert not complete_and_judge(VARIANT_AUTOSCALING, version, variant(modelID="other"), variant()).errors
    assert complete_and_judge(VARIANT_AUTOSCALING, version, variant()).errors


INT32 = range(-(2**31), 2**31)
UINT32 = range(2**32)
WIDE = {"spec.priority", "status.observedGeneration", "status.conditions[].observedGeneration"}
"""The fields of 64 bits."""

UNSIGNED = {
    "spec.rateLimit.inputTokensPerUnit",
    "spec.rateLimit.outputTokensPerUnit",
    "spec.rules[].targetModels[].weight",
}
"""The unsigned fields of 32 bits."""

KTHENA = [kind for kind in DEFINED if "volcano" in kind.group]


def integers(node: SchemaNode, path: str = "") -> Iterator[tuple[str, SchemaNode]]:
    """Yield every integer of a tree with its path."""
    if node.type == "integer":
        yield path, node
    for prop in node.properties:
        yield from integers(prop.node, f"{path}.{prop.name}".lstrip("."))
    if node.items is not None:
        yield from integers(node.items, f"{path}[]")
    if node.values is not None:
        yield from integers(node.values, f"{path}{{}}")


NARROW = {
    f"{kind.kind} {path}": (node, UINT32 if path in UNSIGNED else INT32)
    for kind in KTHENA
    for version in kind.versions
    for path, node in integers(node_of(version.declaration))
    if path not in WIDE
}


@pytest.mark.parametrize(("node", "width"), NARROW.values(), ids=NARROW.keys())
def test_an_integer_of_32_bits_has_bounds(node: SchemaNode, width: range) -> None:
    """Its bounds are explicit, which older servers support, too, and its format is wide enough."""
    assert node.keywords["minimum"] in width
    assert node.keywords["maximum"] in width
    assert node.keywords["format"] == ("int64" if width == UINT32 else "int32")


def test_limits_on_tokens_may_use_all_32_bits() -> None:
    """The tokens of a month can exceed 31 bits."""
    route = next(kind for kind in KTHENA if kind.kind == "ModelRoute")
    limit = crd_manifest(route)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in ("spec", "rateLimit", "inputTokensPerUnit"):
        limit = limit["properties"][part]

    assert (limit["minimum"], limit["maximum"]) == (1, 2**32 - 1)


REFUSED: dict[str, tuple[str, Json, str]] = {
    "the attempts of a retry": (
        "ModelServer",
        {
            "inferenceEngine": "vLLM",
            "workloadSelector": {"matchLabels": {"a": "b"}},
            "trafficPolicy": {"retry": {"attempts": 2**31}},
        },
        "spec.trafficPolicy.retry.attempts: Invalid value: 2147483648: must be less than or equal to"
        " 2147483647",
    ),
    "tokens": (
        "ModelRoute",
        {"modelName": "m", "rules": [], "rateLimit": {"unit": "month", "outputTokensPerUnit": 2**32}},
        "spec.rateLimit.outputTokensPerUnit: Invalid value: 4294967296: must be less than or equal to"
        " 4294967295",
    ),
    "instances": (
        "AutoscalingPolicy",
        {
            "metrics": [{"metricName": "m", "targetValue": "1"}],
            "behavior": {"scaleDown": {"instances": 2**40}},
        },
        "spec.behavior.scaleDown.instances: Invalid value: 1099511627776: must be less than or equal to"
        " 2147483647",
    ),
}


@pytest.mark.parametrize(("kind", "spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_an_integer_that_typed_clients_cannot_decode_is_rejected(kind: str, spec: Json, want: str) -> None:
    """The error is at the field, with the bound."""
    version = next(item for item in KTHENA if item.kind == kind).versions[0]

    found = judge(version.declaration).validate({"metadata": {"name": "a"}, "spec": spec})

    assert [str(error) for error in found] == [want]
