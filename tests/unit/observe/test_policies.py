"""Prices and service classes read from ConfigMaps."""

from __future__ import annotations

from decimal import Decimal

import pytest

from controller.observe.policies import PolicyReader, read_policies, service_class

PREMIUM = "name: Premium\npriority: 1\ndata:\n- {model: llama, slo-tpot: 24, slo-ttft: 500}\n"
FREE = (
    "name: Free\npriority: 1000\ndata:\n- {model: llama, slo-tpot: 200}\n- {model: granite, slo-ttft: 900}\n"
)


def test_valid_prices_and_classes_are_read_and_errors_reported() -> None:
    """An error in one entry does not affect the others."""
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


def test_a_class_is_found_by_reference_or_else_by_highest_priority_for_the_model() -> None:
    """A reference to a missing class finds none."""
    policies = read_policies({"c": {"data": {"a": FREE, "b": PREMIUM}}}, unit_costs="costs")

    by_reference = service_class(policies, {"name": "c", "key": "a"}, "llama")
    by_model = service_class(policies, None, "llama")
    assert by_reference is not None
    assert by_reference.name == "Free"
    assert by_model is not None
    assert by_model.name == "Premium"
    assert service_class(policies, None, "unknown") is None
    assert service_class(policies, {"name": "c", "key": "missing"}, "llama") is None


def test_without_a_reference_only_classes_of_the_configured_config_map_apply() -> None:
    """Classes of other ConfigMaps apply only by reference."""
    maps = {"classes": {"data": {"a": FREE}}, "other": {"data": {"b": PREMIUM}}}
    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    by_model = service_class(policies, None, "llama")
    by_reference = service_class(policies, {"name": "other", "key": "b"}, "llama")
    assert by_model is not None
    assert by_model.name == "Free"
    assert by_reference is not None
    assert by_reference.name == "Premium"


PRICES = {
    "invalid JSON": ("{oops", 'must be JSON such as {"device": "NVIDIA-A100", "cost": "40.00"}; '),
    "a number alone": ("40", 'must be JSON such as {"device"'),
    "another member": ('{"price": "1"}', 'cost is missing: must be JSON such as {"device"'),
    "words": (
        '{"cost": "four"}',
        "cost must be a number from 0 to 1000000000, was 'four'; ",
    ),
    "a negative number": ('{"cost": -4}', "cost must be a number from 0 to 1000000000, was -4; "),
}


@pytest.mark.parametrize(("text", "told"), PRICES.values(), ids=PRICES.keys())
def test_an_invalid_price_is_reported_with_its_error(text: str, told: str) -> None:
    """The message also gives the cost that applies instead."""
    (problem,) = read_policies({"costs": {"data": {"H100": text}}}, unit_costs="costs").problems

    assert problem.startswith(f"ConfigMap costs, key H100: {told}")
    assert problem.endswith("; this entry is ignored; a type without a price costs 10 per replica by default")


DOUBTFUL = {
    "a misspelt priority": (
        "name: Premium\npriorty: 1\ndata:\n- {model: llama, slo-tpot: 24}\n",
        [
            "is no service class: priority is missing",
            "unknown: priorty; a class has name, priority, attainment, data",
        ],
    ),
    "misspelt targets": (
        "priority: 1\ndata:\n- {model: a, slo-itl: 8}\n- {model: b, slo-itl: 8, slo-e2e: 9}\n",
        ["unknown in data: slo-e2e, slo-itl; an entry has model, slo-tpot, slo-ttft"],
    ),
    "an entry without a model": (
        "priority: 1\ndata:\n- {model: a, slo-tpot: 8}\n- {slo-tpot: 8}\n",
        ["no effect without model: data[1]"],
    ),
    "invalid YAML": (
        "name: Premium\npriority: [1\n",
        ["is not YAML: line 3: expected ',' or ']', but got '<stream end>'"],
    ),
    "text": ("just text", []),
    "unrelated settings": ("interval: 60s\n", []),
    "an unrelated list": ("data:\n- {model: llama, size: 8}\n- 1\n", []),
}


@pytest.mark.parametrize(("text", "told"), DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_ineffective_parts_of_a_service_class_are_reported(text: str, told: list[str]) -> None:
    """This holds for every ConfigMap entry that resembles a class."""
    policies = read_policies({"other": {"data": {"a": text}}}, unit_costs="costs")

    assert policies.problems == tuple(f"ConfigMap other, key a: {problem}" for problem in told)


NO_MAPPING = {"text": "gold", "a list": "- priority: 1", "a number": "1", "only comments": "# priority: 1"}


@pytest.mark.parametrize("text", NO_MAPPING.values(), ids=NO_MAPPING.keys())
def test_every_entry_of_the_configured_config_map_must_be_a_service_class(text: str) -> None:
    """In other ConfigMaps, entries that do not resemble a class are ignored."""
    maps = {name: {"data": {"a": "name: Premium\nprio: 1\n", "b": text}} for name in ("classes", "other")}

    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    assert policies.problems == (
        "ConfigMap classes, key a: is no service class: priority is missing",
        "ConfigMap classes, key a: unknown: prio; a class has name, priority, attainment, data",
        "ConfigMap classes, key b: must be a mapping with name, priority, attainment and data",
    )


CLASS, OTHER = {"data": {"a": PREMIUM}}, {"data": {"a": "interval: 60s"}}
MISPLACED = {
    "the configured ConfigMap is missing": ({"gold": CLASS, "old": CLASS}, "is missing"),
    "the configured ConfigMap has no class": (
        {"gold": CLASS, "old": CLASS, "classes": {}},
        "has no service class",
    ),
    "the configured ConfigMap has a class": ({"gold": CLASS, "classes": CLASS}, ""),
    "no other ConfigMap has a class": ({"gold": OTHER}, ""),
}


@pytest.mark.parametrize(("maps", "told"), MISPLACED.values(), ids=MISPLACED.keys())
def test_classes_in_other_config_maps_are_reported_once(
    maps: dict[str, dict[str, dict[str, str]]], told: str
) -> None:
    """They applied by model in earlier versions."""
    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    expected = (
        f"ConfigMap classes, named by names.serviceClasses, {told}; the classes of ConfigMap gold, old apply"
        " by spec.sloClassRef only: to apply them by model, name their ConfigMap in names.serviceClasses"
    )
    assert policies.problems == ((expected,) if told else ())


NO_PRICES = "every replica without a spec.variantCost costs 10"
NO_CLASSES = "models have a priority and latency targets by spec.sloClassRef only"
MISSING = {
    "both exist, without content": ({"costs": {}, "classes": {}}, {}),
    "the prices": (
        {"classes": CLASS},
        {"costs": f"ConfigMap costs, named by names.unitCosts, is missing: {NO_PRICES}"},
    ),
    "the service classes": (
        {"costs": {}},
        {"classes": f"ConfigMap classes, named by names.serviceClasses, is missing: {NO_CLASSES}"},
    ),
}


@pytest.mark.parametrize(("maps", "missing"), MISSING.values(), ids=MISSING.keys())
def test_missing_config_maps_are_reported(
    maps: dict[str, dict[str, dict[str, str]]], missing: dict[str, str]
) -> None:
    """They are no problems: offline, a user may leave them out."""
    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    assert (policies.missing, policies.problems) == (missing, ())


TARGETS = {
    "zero": "0",
    "negative": "-5",
    "not a number": ".nan",
    "endless": ".inf",
    "too large for a float": "1" + "0" * 400,
    "text": "fast",
    "true": "true",
    "a fraction of a millisecond": "0.5",
}


@pytest.mark.parametrize("value", TARGETS.values(), ids=TARGETS.keys())
def test_an_invalid_latency_target_is_omitted_and_reported(value: str) -> None:
    """Without an earlier valid value, the class keeps its priority and its other target."""
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
    "invalid YAML": ("c", "a", "name: [Premium"),
    "an invalid priority": ("c", "a", "name: Premium\npriority: high\n"),
    "a target below zero": ("c", "a", "priority: 1\ndata:\n- {model: llama, slo-tpot: -1}\n"),
    "targets that are not a list": ("c", "a", "priority: 1\ndata: {model: llama}\n"),
    "no longer a service class": ("c", "a", "name Premium"),
    "a price that is not a number": ("costs", "A100", '{"cost": "NaN"}'),
    "a price below zero": ("costs", "A100", '{"cost": "-1"}'),
    "a price that is not JSON": ("costs", "A100", "forty"),
}


@pytest.mark.parametrize(("name", "key", "text"), BROKEN.values(), ids=BROKEN.keys())
def test_an_entry_that_becomes_invalid_keeps_its_last_valid_content_and_is_reported(
    name: str, key: str, text: str
) -> None:
    """The values must not jump because of a typing error; the entry applies again once it is corrected."""
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


def test_an_entry_that_was_never_valid_is_omitted_until_it_is_corrected() -> None:
    """A deleted entry is removed."""
    reader = PolicyReader(unit_costs="costs")

    broken = reader.read({"c": {"data": {"a": "priority: high", "b": FREE}}})
    mended = reader.read({"c": {"data": {"a": PREMIUM, "b": FREE}}})
    gone = reader.read({"c": {"data": {"b": FREE}}})

    assert [*broken.classes] == [*gone.classes] == [("c", "b")]
    assert [*mended.classes] == [("c", "a"), ("c", "b")]
    assert not any("stands" in problem for problem in broken.problems)
