"""Unreadable input of `stowplan plan`: all errors are reported at once, with file, line and field."""

from __future__ import annotations

import json

import pytest
from support.plan_verb import Plan, World

VARIANT = """\
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata: {name: x}
spec:
  modelID: m
  scaleTargetRef: {kind: Deployment, name: x}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec: {template: {spec: {containers: [{args: [serve]}]}}}
"""

UNREADABLE = {
    "a Deployment is missing": (
        VARIANT,
        [
            "a.yaml:6: error: VariantAutoscaling default/x: spec.scaleTargetRef: Deployment 'x' of namespace "
            "'default' is missing: add its manifest with -f, or export it with "
            "kubectl get deployment -n default x -o yaml"
        ],
    ),
    "all errors of a node": (
        "kind: Node\napiVersion: v1\nmetadata:\n  name: node-1\nspec:\n  taints:\n  - key: 7\nstatus:\n"
        "  allocatable:\n    nvidia.com/gpu: many\n",
        [
            "a.yaml:7: error: Node node-1: spec.taints[0].key: Invalid value: 7: must be a string",
            "a.yaml:7: error: Node node-1: spec.taints[0].effect: Required value",
            "a.yaml:10: error: Node node-1: status.allocatable[nvidia.com/gpu]: Invalid value",
        ],
    ),
    "half an accelerator": (
        DEPLOYMENT.replace("args: [serve]", "resources: {limits: {nvidia.com/gpu: 500m}}"),
        [
            "a.yaml:4: error: Deployment x: spec.template.spec.containers[0].resources"
            '.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
        ],
    ),
    "an invalid target is not also reported as missing": (
        f"{VARIANT}---\n"
        + DEPLOYMENT.replace("args: [serve]", "resources: {limits: {nvidia.com/gpu: 500m}}"),
        [
            "a.yaml:11: error: Deployment x: spec.template.spec.containers[0].resources"
            '.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
        ],
    ),
    "a value that admission would reject": (
        VARIANT.replace("modelID: m", 'modelID: ""'),
        ["a.yaml:5: error: VariantAutoscaling default/x: spec.modelID: Invalid value"],
    ),
    "a version that does not exist": (
        VARIANT.replace("v1alpha2", "v3"),
        [
            "a.yaml:1: error: VariantAutoscaling default/x: apiVersion: no version llmd.ai/v3: its versions"
            " are"
        ],
    ),
    "the same object twice": (
        f"{VARIANT}---\n{DEPLOYMENT}---\n{DEPLOYMENT}",
        ["a.yaml:13: error: Deployment default/x: is already defined in a.yaml:8; remove one of the two"],
    ),
    "unknown and duplicate fields": (
        VARIANT.replace("modelID: m", "modelID: n\n  modelID: m\n  acelerator: H100"),
        [
            'a.yaml:6: error: VariantAutoscaling default/x: duplicate field "spec.modelID"',
            'a.yaml:7: error: VariantAutoscaling default/x: unknown field "spec.acelerator"',
        ],
    ),
    "two objects without a separator": (
        f"{VARIANT}{DEPLOYMENT}",
        ['a.yaml:7: error: duplicate field "apiVersion": separate objects by a line ---'],
    ),
    "a syntax error does not hide the rest": (
        f"a: [\n---\n{VARIANT}",
        ["a.yaml:1: error: yaml: ", "a.yaml:8: error: VariantAutoscaling default/x: spec.scaleTargetRef: "],
    ),
    "a node with a million accelerators": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: big}\nstatus:\n  allocatable: {amd.com/gpu: 1M}\n",
        ["a.yaml:5: error: Node big: status.allocatable: 1000000 accelerators: a node can have at most"],
    ),
    "no variant": (
        DEPLOYMENT,
        ["stowplan plan: error: nothing to plan: the input contains no VariantAutoscaling, and no"],
    ),
    "no manifest": (
        "just: text\n",
        ["a.yaml:1: error: not an object: a manifest is a mapping with apiVersion"],
    ),
    "an empty directory or file": ("", ["stowplan plan: error: nothing to plan"]),
    "a saved decision with a wrong type": (
        '{"snapshot": {"nodes": 7}}',
        [
            "a.yaml: error: the saved decision cannot be read: snapshot.nodes: must be `array`, was `int`",
        ],
    ),
    "NaN in a saved decision": (
        '{"snapshot": {"nodes": [{"name": "a", "spare": NaN}]}}',
        ["a.yaml: error: the saved decision cannot be read: JSON is malformed: invalid character (byte 47)"],
    ),
    "a saved decision without a snapshot": (
        '{"settings": {}}',
        ["a.yaml: error: the saved decision cannot be read: Object missing required field `snapshot`"],
    ),
    "misspelt members of a saved decision": (
        '{"snapshot": {"nodes": [], "variants": [{"rules": {"most_per_nodes": 1}}]},'
        ' "settings": {"unit": 1}}',
        [
            "a.yaml: error: the saved decision cannot be read: snapshot.variants[0].rules.most_per_nodes: "
            "there is no such member; is most_per_node meant?; settings.unit: there is no such member; "
        ],
    ),
    "a saved decision that is nested deeply": (
        '{"snapshot": ' + "[" * 5000 + "]" * 5000 + "}",
        ["a.yaml:1: error: nested deeper than 200 levels"],
    ),
    "an unsupported value in a saved decision": (
        '{"snapshot": {"nodes": [], "variants": [], "loads": [{"signal": "luck"}]}}',
        ["a.yaml: error: the saved decision cannot be read: snapshot.loads[0].signal: must be one of "],
    ),
}


@pytest.mark.parametrize(("text", "expected"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_input_is_reported(plan: Plan, text: str, expected: list[str]) -> None:
    """The exit code is 2, standard output is empty, and each error is one line."""
    code, out, err = plan("-f", "a.yaml", files={"a.yaml": text})

    assert (code, out) == (2, "")
    assert len(err) == len(expected)
    for line, beginning in zip(err, expected, strict=True):
        assert line.startswith(beginning)


def test_unknown_fields_of_a_status_are_ignored(plan: Plan) -> None:
    """Another controller may have written them."""
    status = "status: {currentAlloc: {foo: 1}, bar: 3}\n"
    files = {"a.yaml": f"{VARIANT}{status}---\n{DEPLOYMENT}"}

    code, _, err = plan("-f", "a.yaml", files=files)

    assert code != 2
    assert err == []


UNKNOWN = {
    "a model": (["--demand", "chatt=5"], "--demand: no model 'chatt': there are default/chat"),
    "a variant": (
        ["--capacity", "coder=5"],
        "--capacity: no variant 'coder': there are default/chat, default/code",
    ),
    "a model of another namespace": (
        ["--demand", "t/chat=5"],
        "--demand: no model 't/chat': there are default/chat and 1 more",
    ),
    "a node": (["--drain", "node-9"], "--drain: no node 'node-9': there are node-"),
    "a model twice": (
        ["--demand", "chat=1", "--demand", "default/chat=2"],
        "--demand: model default/chat is given more than once",
    ),
    "a variant twice": (
        ["--capacity", "chat=1", "--capacity", "chat=1"],
        "--capacity: variant default/chat is given more than once",
    ),
}


@pytest.mark.parametrize(("arguments", "told"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown_names_in_arguments_are_reported_with_the_known_ones(
    plan: Plan, world: World, arguments: list[str], told: str
) -> None:
    """The exit code is 2 and nothing is planned, since the plan would answer another question."""
    code, out, err = plan("-f", "-", *arguments, given=world())

    assert (code, out) == (2, "")
    assert len(err) == 1
    assert err[0].startswith(f"stowplan plan: error: {told}")


def test_an_ambiguous_model_name_requires_the_namespace(plan: Plan) -> None:
    """The error lists the names with their namespaces, which are accepted."""
    texts = [
        part.replace("{name: x}\n", f"{{name: x, namespace: {namespace}}}\n", 1)
        for namespace in ("one", "two")
        for part in (VARIANT, DEPLOYMENT)
    ]
    files = {"a.yaml": "---\n".join(texts)}

    code, _, err = plan("-f", "a.yaml", "--demand", "m=5", files=files)
    clear, _, _ = plan("-f", "a.yaml", "--demand", "two/m=0", "--scale-to-zero", files=files)

    assert code == 2
    assert err == [
        "stowplan plan: error: --demand: model 'm' is in several namespaces: specify one of one/m, two/m"
    ]
    assert clear != 2


def test_a_saved_decision_cannot_be_combined_with_other_files(plan: Plan, world: World) -> None:
    """It is complete, and how to combine them would be a guess."""
    plan("-f", "-", "--save", "saved.json", given=world())

    code, _, err = plan("-f", "saved.json", "-f", "a.yaml", files={"a.yaml": VARIANT})

    assert code == 2
    assert any("a saved decision is complete" in line for line in err)


def test_files_in_a_directory_that_are_no_manifests_are_skipped(plan: Plan, world: World) -> None:
    """They may be values of a chart; a file that is named explicitly has to be a manifest."""
    files = {
        "in/all.json": world(),
        "in/values.yaml": "replicas: 3\n",
        "in/tool.json": '{"settings": {"indent": 2}}',
    }

    assert plan("-f", "in", files=files)[0] == 0
    assert plan("-f", "in/all.json", "-f", "in/values.yaml")[0] == 2


def test_service_classes_are_read_only_from_the_settings_namespace(plan: Plan, world: World) -> None:
    """A ConfigMap in another namespace causes a warning, and an option selects its namespace."""
    prices = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "service-classes-config", "namespace": "here"},
            "data": {"a.yaml": "name: Gold\npriority: 3\ndata:\n- {model: chat, slo-ttft: 100}\n"},
        }
    )
    files = {"world.json": world(), "prices.json": prices}

    _, before, _ = plan("-f", "world.json", "-f", "prices.json", "-o", "json", files=files)
    _, after, _ = plan("-f", ".", "-o", "json", "--settings-namespace", "here")

    assert "ConfigMap here/service-classes-config is omitted" in json.loads(before)["warnings"][0]
    assert {d["name"]: d["priority"] for d in json.loads(after)["plan"]["decisions"]} == {
        "chat": 3,
        "code": 100,
    }
