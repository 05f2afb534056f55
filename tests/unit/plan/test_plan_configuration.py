"""`stowplan plan` with the controller's configuration, as a file or in its ConfigMap."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from support.plan_verb import Granted, Plan, World
from support.traffic import objective, pool


def test_the_configuration_of_the_controller_is_applied(plan: Plan, world: World) -> None:
    """Budgets are read from the file, or from the ConfigMap that contains it."""
    told = {"planning": {"budgets": [{"name": "all", "costPerHour": "10"}]}}
    config_map = {"kind": "ConfigMap", "data": {"config.yaml": yaml.safe_dump(told)}}
    files = {
        "a.yaml": world(demand=30),
        "c.yaml": yaml.safe_dump(told),
        "m.yaml": yaml.safe_dump(config_map),
    }

    plain = plan("-f", "a.yaml", "-o", "json", "--config", "c.yaml", files=files)
    wrapped = plan("-f", "a.yaml", "-o", "json", "--config", "m.yaml")

    assert plain == wrapped
    assert "budget all allows 10 per hour" in plain[1]


def test_declared_accelerators_count_like_known_ones(plan: Plan, world: World) -> None:
    """Without the declaration, the log of the controller and a warning name the resource."""
    text = world(nodes=1, size=1)
    other = text.replace("nvidia.com/gpu.product", "own/type").replace(
        "nvidia.com/gpu", "aws.amazon.com/neuron"
    )
    declared = {"accelerators": {"resources": ["aws.amazon.com/neuron"], "nodeLabels": ["own/type"]}}
    files = {"known.yaml": text, "other.yaml": other, "c.yaml": yaml.safe_dump(declared)}

    known = plan("-f", "known.yaml", "-o", "json", files=files)
    counted = plan("-f", "other.yaml", "-o", "json", "--config", "c.yaml")
    uncounted = plan("-f", "other.yaml", "-o", "json")

    decided = [json.loads(out)["plan"]["decisions"] for _, out, _ in (known, counted)]
    assert decided[0] == decided[1]
    assert known[0] == counted[0] == 1, "one node with one accelerator is not enough"
    warning = " request aws.amazon.com/neuron, which planning does not count"
    assert any(warning in item for item in json.loads(uncounted[1])["warnings"])


def test_duplicate_fields_of_the_configuration_are_rejected(plan: Plan, world: World) -> None:
    """The error has the file and the line, also within a ConfigMap."""
    twice = "planning:\n  unmet: model\n  solveSeconds: 1\n  unmet: value\n"
    held = yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"config.yaml": twice}})
    files = {"a.yaml": world(), "c.yaml": twice, "m.yaml": held}

    plain = plan("-f", "a.yaml", "--config", "c.yaml", files=files)
    wrapped = plan("-f", "a.yaml", "--config", "m.yaml")

    told = 'duplicate field "planning.unmet": keep one of them'
    assert plain == (2, "", [f"c.yaml:4: error: {told}"])
    assert wrapped == (2, "", [f"m.yaml: error: ConfigMap m: data[config.yaml]: line 4: {told}"])


@pytest.mark.parametrize("is_former", [False, True])
def test_objectives_give_priorities_if_the_configuration_enables_it(
    plan: Plan, world: World, *, is_former: bool
) -> None:
    """This works with InferencePools of both API groups; by default objectives have no effect."""
    group: dict[str, Any] = {"group": "inference.networking.x-k8s.io"} if is_former else {}
    made = [
        objective("urgent", namespace="default", **group),
        pool("llama", {"app": "code"}, former=is_former, namespace="default"),
    ]
    files = {"a.yaml": world(), "o.yaml": yaml.safe_dump_all(made), "c.yaml": "planning: {objectives: true}"}

    def priorities(*arguments: str) -> dict[str, int]:
        _, out, _ = plan("-f", "a.yaml", "-f", "o.yaml", "-o", "json", *arguments, files=files)
        return {item["name"]: item["priority"] for item in json.loads(out)["plan"]["decisions"]}

    assert priorities("--config", "c.yaml") == {"chat": 100, "code": 90}
    assert priorities() == {"chat": 100, "code": 100}


def test_an_invalid_objective_is_reported_with_its_line(plan: Plan, world: World) -> None:
    """Nothing is planned."""
    wrong = objective("urgent", priority=None)
    wrong["spec"]["priority"] = "high"
    files = {"a.yaml": world(), "o.yaml": yaml.safe_dump(wrong)}

    code, out, err = plan("-f", "a.yaml", "-f", "o.yaml", files=files)

    assert (code, out) == (2, "")
    assert any("o.yaml:" in line and "spec.priority" in line for line in err)


def test_a_configuration_replaces_the_settings_of_a_saved_decision(plan: Plan, world: World) -> None:
    """Without the option the saved settings apply."""
    limited = "planning: {budgets: [{name: all, costPerHour: '10'}]}"
    files = {"a.yaml": world(demand=30), "c.yaml": limited}
    plan("-f", "a.yaml", "--save", "saved.json", files=files)

    assert "budget all" not in plan("-f", "saved.json")[1]
    assert "budget all" in plan("-f", "saved.json", "--config", "c.yaml")[1]


@pytest.mark.parametrize("is_list", [False, True])
def test_the_controllers_config_map_is_found_among_several(
    plan: Plan, world: World, *, is_list: bool
) -> None:
    """Its name may have the hash that kustomize appends.

    The ConfigMaps are documents of one file, or the list that kubectl prints.
    """
    maps = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"config.yaml": f"planning: {{budgets: [{{name: all, costPerHour: '{cost}'}}]}}"},
        }
        for name, cost in (
            ("stowplan-webhooks-config-5b8f2d7c9k", 30),
            ("stowplan-controller-config-9t6hk4g2bd", 10),
        )
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": maps}
    told = yaml.safe_dump(listed) if is_list else yaml.safe_dump_all(maps)

    _, out, err = plan(
        "-f", "a.yaml", "-o", "json", "--config", "s.yaml",
        files={"a.yaml": world(demand=30), "s.yaml": told},
    )  # fmt: skip

    assert err == []
    assert "budget all allows 10 per hour" in out


def test_scale_to_zero_of_a_configuration_replaces_that_of_a_saved_decision(
    plan: Plan, world: World, granted: Granted
) -> None:
    """It can be turned on as well as off."""
    files = {"a.yaml": world(demand=0), "on.yaml": "planning: {scaleToZero: true}", "off.yaml": "{}"}
    plan("-f", "a.yaml", "--save", "warm.json", files=files)
    plan("-f", "a.yaml", "--scale-to-zero", "--save", "cold.json")

    _, cold, _ = plan("-f", "warm.json", "-o", "json", "--config", "on.yaml")
    _, warm, _ = plan("-f", "cold.json", "-o", "json", "--config", "off.yaml")

    assert granted(cold) == {"chat": 0, "code": 0}
    assert granted(warm) == {"chat": 1, "code": 1}


WRONG_CONFIGURATIONS = {
    "an unknown effect": (
        "planning: {nodePools: [{name: a, accelerator: L4, acceleratorsPerNode: 8, pricePerNode: '1',"
        " nodesAddable: 1, taints: [{key: b, effect: luck}]}]}",
        'c.yaml:1: error: planning.nodePools[0].taints[0].effect: Unsupported value: "luck": supported ',
    ),
    "an unknown field": (
        "# of this cluster\nplaning: {}",
        "c.yaml:2: error: planing: Forbidden: unknown field (is planning meant?); allowed are accelerators, ",
    ),
    "a budget without a number": (
        "planning:\n  budgets:\n  - {name: a, costPerHour: '1'}\n  - name: b\n    costPerHour: '-1'\n",
        'c.yaml:5: error: planning.budgets[1].costPerHour: Invalid value: "-1": must be a non-',
    ),
    "an invalid duration": (
        "planning: {standingSeconds: .nan}",
        'planning.standingSeconds: Invalid value: "nan": must be an integer',
    ),
    "a list of values": (
        "- 1",
        "the document: contains a list: must be one YAML mapping: the controller's configuration",
    ),
    "an empty list": ("[]", "the document: contains a list: must be one YAML mapping"),
    "a Boolean value": ("false", "the document: contains a truth value: must be one YAML mapping"),
    "a ConfigMap without the key": (
        "{kind: ConfigMap, metadata: {name: c}, data: {config: '{}'}}",
        "ConfigMap c: data[config.yaml]: must be the controller's configuration as text; there are config",
    ),
    "a ConfigMap that contains a list": (
        "{kind: ConfigMap, metadata: {name: c}, data: {config.yaml: '[]'}}",
        "ConfigMap c: data[config.yaml]: contains a list: must be one YAML mapping",
    ),
    "a list without a ConfigMap": (
        "{apiVersion: v1, kind: List, items: [{kind: Secret}]}",
        "contains no ConfigMap with the controller's configuration",
    ),
    "other ConfigMaps": (
        "{kind: ConfigMap, metadata: {name: a}}\n---\n{kind: ConfigMap, metadata: {name: b}}",
        "of the ConfigMaps a, b, none is named stowplan-controller or stowplan-controller-config-HASH: keep",
    ),
    "many other ConfigMaps": (
        "\n---\n".join(f"{{kind: ConfigMap, metadata: {{name: {name}}}}}" for name in "abcdefg"),
        "of the ConfigMaps a, b, c, d, e and 2 more, none is named stowplan-controller or",
    ),
    "several documents": ("a: 1\n---\nb: 2", "contains 2 YAML documents and no ConfigMap"),
    "invalid YAML": ("planning: {\n", "c.yaml:2: error: not YAML: expected"),
    "a ConfigMap with invalid YAML": (
        "{kind: ConfigMap, metadata: {name: c}, data: {config.yaml: '{'}}",
        "c.yaml: error: ConfigMap c: data[config.yaml]: line 1: not YAML: expected",
    ),
    "a ConfigMap with a wrong field": (
        "{kind: ConfigMap, metadata: {name: c}, data: {config.yaml: '{planing: {}}'}}",
        "c.yaml: error: planing: Forbidden: unknown field",
    ),
    "two budgets of the same name": (
        "planning: {budgets: [{name: a, costPerHour: '1'}, {name: a, costPerHour: '2'}]}",
        "planning.budgets: duplicate name 'a'",
    ),
}


@pytest.mark.parametrize(("text", "told"), WRONG_CONFIGURATIONS.values(), ids=WRONG_CONFIGURATIONS.keys())
def test_a_wrong_configuration_is_rejected_as_by_the_controller(
    plan: Plan, world: World, text: str, told: str
) -> None:
    """The error begins with the name of the file."""
    code, _, complaints = plan(
        "-f", "a.yaml", "--config", "c.yaml", files={"a.yaml": world(), "c.yaml": text}
    )

    assert code == 2
    assert complaints[0].startswith(("c.yaml: error: ", "c.yaml:"))
    assert told in complaints[0]


def test_errors_of_a_configuration_are_in_the_order_of_their_lines(plan: Plan, world: World) -> None:
    """This includes unknown fields, which are detected last."""
    text = "planing: {}\nplanning:\n  standingSeconds: soon\n  refresh: 1\nserving: {port: -1}\n"

    _, _, complaints = plan("-f", "a.yaml", "--config", "c.yaml", files={"a.yaml": world(), "c.yaml": text})

    assert [line.split(":")[1] for line in complaints] == ["1", "3", "4", "5"]


def test_a_missing_configuration_file_is_reported(plan: Plan, world: World) -> None:
    """Nothing is planned with defaults instead."""
    code, out, complaints = plan("-f", "a.yaml", "--config", "no.yaml", files={"a.yaml": world()})

    assert (code, out) == (2, "")
    assert complaints == ["no.yaml: error: cannot be read: No such file or directory"]
