"""Prices and service classes out of ConfigMaps."""

from __future__ import annotations

from decimal import Decimal

import pytest

from controller.observe.policies import PolicyReader, read_policies, service_class

PREMIUM = "name: Premium\npriority: 1\ndata:\n- {model: llama, slo-tpot: 24, slo-ttft: 500}\n"
FREE = (
    "name: Free\npriority: 1000\ndata:\n- {model: llama, slo-tpot: 200}\n- {model: granite, slo-ttft: 900}\n"
)


def test_prices_and_classes_are_read_and_errors_are_named() -> None:
    """One typing error does not hide the rest."""
    policies = read_policies(
        {
            "costs": {"data": {"NVIDIA-A100-PCIE-80GB": '{"device": "x", "cost": "40.00"}', "H100": "100"}},
            "classes": {"data": {"premium.yaml": PREMIUM, "free.yaml": FREE, "bad.yaml": "priority: high"}},
            "unrelated": {"data": {"key": "just text"}},
        },
        unit_costs="costs",
    )

    assert policies.unit_costs == {"A100": Decimal("40.00")}
    assert policies.classes["classes", "premium.yaml"].priority == 1
    assert policies.classes["classes", "premium.yaml"].ttft_ms == {"llama": 500}
    assert policies.classes["classes", "free.yaml"].priority == 100
    assert len(policies.problems) == 3
    assert policies.problems[0].startswith("ConfigMap classes, key bad.yaml: priority must be an integer")
    assert policies.problems[1].endswith("priority 1000 is not within 1..100; 100 is used")
    assert policies.problems[2].startswith("ConfigMap costs, key H100: must be JSON")


def test_a_reference_wins_and_without_one_the_highest_priority_that_lists_the_model() -> None:
    """The look-up is deterministic."""
    policies = read_policies({"c": {"data": {"a": FREE, "b": PREMIUM}}}, unit_costs="costs")

    by_reference = service_class(policies, {"name": "c", "key": "a"}, "llama")
    by_model = service_class(policies, None, "llama")
    assert by_reference is not None
    assert by_reference.name == "Free"
    assert by_model is not None
    assert by_model.name == "Premium"
    assert service_class(policies, None, "unknown") is None
    assert service_class(policies, {"name": "c", "key": "missing"}, "llama") is None


def test_without_a_reference_only_the_configured_config_map_counts() -> None:
    """Any other ConfigMap's classes apply by reference alone."""
    maps = {"classes": {"data": {"a": FREE}}, "other": {"data": {"b": PREMIUM}}}
    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    by_model = service_class(policies, None, "llama")
    by_reference = service_class(policies, {"name": "other", "key": "b"}, "llama")
    assert by_model is not None
    assert by_model.name == "Free"
    assert by_reference is not None
    assert by_reference.name == "Premium"


PRICES = {
    "no JSON": ("{oops", 'must be JSON such as {"device": "NVIDIA-A100", "cost": "40.00"}; '),
    "a number alone": ("40", 'must be JSON such as {"device"'),
    "another member": ('{"price": "1"}', 'cost is missing: must be JSON such as {"device"'),
    "words": ('{"cost": "four"}', "cost must be a number from 0 to 1000000000, was 'four'; "),
    "less than nothing": ('{"cost": -4}', "cost must be a number from 0 to 1000000000, was -4; "),
}


@pytest.mark.parametrize(("text", "told"), PRICES.values(), ids=PRICES.keys())
def test_what_is_wrong_with_a_price_is_named(text: str, told: str) -> None:
    """And what a replica costs instead."""
    (problem,) = read_policies({"costs": {"data": {"H100": text}}}, unit_costs="costs").problems

    assert problem.startswith(f"ConfigMap costs, key H100: {told}")
    assert problem.endswith("; this entry is ignored; a type without a price costs 10 per replica by default")


DOUBTFUL = {
    "a misspelt priority": (
        "name: Premium\npriorty: 1\ndata:\n- {model: llama, slo-tpot: 24}\n",
        ["is no service class: priority is missing", "unknown: priorty; a class has name, priority, data"],
    ),
    "misspelt targets": (
        "priority: 1\ndata:\n- {model: a, slo-itl: 8}\n- {model: b, slo-itl: 8, slo-e2e: 9}\n",
        ["unknown in data: slo-e2e, slo-itl; an entry has model, slo-tpot, slo-ttft"],
    ),
    "an entry without a model": (
        "priority: 1\ndata:\n- {model: a, slo-tpot: 8}\n- {slo-tpot: 8}\n",
        ["no effect without model: data[1]"],
    ),
    "no YAML": (
        "name: Premium\npriority: [1\n",
        ["is not YAML: line 3: expected ',' or ']', but got '<stream end>'"],
    ),
    "text": ("just text", []),
    "settings of something else": ("interval: 60s\n", []),
    "a list of something else": ("data:\n- {model: llama, size: 8}\n- 1\n", []),
}


@pytest.mark.parametrize(("text", "told"), DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_what_has_no_effect_in_a_class_is_named(text: str, told: list[str]) -> None:
    """In any ConfigMap, if it resembles a class."""
    policies = read_policies({"other": {"data": {"a": text}}}, unit_costs="costs")

    assert policies.problems == tuple(f"ConfigMap other, key a: {problem}" for problem in told)


NO_MAPPING = {"text": "gold", "a list": "- priority: 1", "a number": "1", "only comments": "# priority: 1"}


@pytest.mark.parametrize("text", NO_MAPPING.values(), ids=NO_MAPPING.keys())
def test_everything_beside_the_classes_has_to_be_one(text: str) -> None:
    """In the ConfigMap of classes, all that is no class is an error; elsewhere it is of others."""
    maps = {name: {"data": {"a": "name: Premium\nprio: 1\n", "b": text}} for name in ("classes", "other")}

    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    assert policies.problems == (
        "ConfigMap classes, key a: is no service class: priority is missing",
        "ConfigMap classes, key a: unknown: prio; a class has name, priority, data",
        "ConfigMap classes, key b: must be a mapping with name, priority and data",
    )


CLASS, OTHER = {"data": {"a": PREMIUM}}, {"data": {"a": "interval: 60s"}}
MISPLACED = {
    "the configured ConfigMap is missing": ({"gold": CLASS, "old": CLASS}, "is missing"),
    "it has no class": ({"gold": CLASS, "old": CLASS, "classes": {}}, "has no service class"),
    "it has one": ({"gold": CLASS, "classes": CLASS}, ""),
    "no other has one": ({"gold": OTHER}, ""),
}


@pytest.mark.parametrize(("maps", "told"), MISPLACED.values(), ids=MISPLACED.keys())
def test_classes_outside_the_configured_config_map_are_named_once(
    maps: dict[str, dict[str, dict[str, str]]], told: str
) -> None:
    """They applied by model in earlier versions."""
    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    expected = (
        f"ConfigMap classes, named by names.serviceClasses, {told}; the classes of ConfigMap gold, old apply"
        " by spec.sloClassRef only: to apply them by model, name their ConfigMap in names.serviceClasses"
    )
    assert policies.problems == ((expected,) if told else ())


TARGETS = {
    "zero": "0",
    "negative": "-5",
    "no number": ".nan",
    "endless": ".inf",
    "so large that no float holds it": "1" + "0" * 400,
    "text": "fast",
    "true": "true",
    "a fraction of a millisecond": "0.5",
}


@pytest.mark.parametrize("value", TARGETS.values(), ids=TARGETS.keys())
def test_a_target_that_is_none_is_left_out_and_named(value: str) -> None:
    """At the start nothing is known from before; the other target and the priority count."""
    text = f"name: Premium\npriority: 1\ndata:\n- {{model: llama, slo-tpot: {value}, slo-ttft: 500}}\n"

    policies = read_policies({"c": {"data": {"a": text}}}, unit_costs="costs")

    found = policies.classes["c", "a"]
    assert (found.priority, found.ttft_ms, found.tpot_ms) == (1, {"llama": 500}, {})
    assert len(policies.problems) == 1
    assert (
        "slo-tpot of model 'llama' must be a whole number of ms from 1 to 100000000, was"
        in (policies.problems[0])
    )


BROKEN = {
    "no YAML": ("c", "a", "name: [Premium"),
    "a priority that is none": ("c", "a", "name: Premium\npriority: high\n"),
    "a target below zero": ("c", "a", "priority: 1\ndata:\n- {model: llama, slo-tpot: -1}\n"),
    "targets that are no list": ("c", "a", "priority: 1\ndata: {model: llama}\n"),
    "no longer a service class": ("c", "a", "name Premium"),
    "a price that is none": ("costs", "A100", '{"cost": "NaN"}'),
    "a price below zero": ("costs", "A100", '{"cost": "-1"}'),
    "no price": ("costs", "A100", "forty"),
}


@pytest.mark.parametrize(("name", "key", "text"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_broken_while_running_stands_as_it_was_and_is_named(name: str, key: str, text: str) -> None:
    """Until it is mended; a price or a target must not jump for a typing error."""
    reader = PolicyReader(unit_costs="costs")
    good = {"c": {"data": {"a": PREMIUM}}, "costs": {"data": {"A100": '{"cost": "40"}'}}}
    before = reader.read(good)

    broken = [reader.read(good | {name: {"data": {key: text}}}) for _ in range(2)]
    after = reader.read(good)

    for found in broken:
        assert (found.classes, found.unit_costs) == (before.classes, before.unit_costs)
        assert len(found.problems) == 1
        assert found.problems[0].startswith(f"ConfigMap {name}, key {key}: ")
        assert found.problems[0].endswith("; its previous content is used")
    assert after == before
    assert before.problems == ()


def test_what_is_broken_from_the_start_is_left_out_until_it_is_mended() -> None:
    """And what is taken away is gone."""
    reader = PolicyReader(unit_costs="costs")

    broken = reader.read({"c": {"data": {"a": "priority: high", "b": FREE}}})
    mended = reader.read({"c": {"data": {"a": PREMIUM, "b": FREE}}})
    gone = reader.read({"c": {"data": {"b": FREE}}})

    assert [*broken.classes] == [*gone.classes] == [("c", "b")]
    assert [*mended.classes] == [("c", "a"), ("c", "b")]
    assert not any("stands" in problem for problem in broken.problems)
