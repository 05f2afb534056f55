"""Prices and service classes read from ConfigMaps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from support.observations import claim

from apiserver.kinds.settings import ServiceClassDocument
from apiserver.kinds.settings_names import ALLOW_EMPTY, LAST_VALID
from apiserver.schema.editor import settings_schema
from apiserver.schema.json import Json
from controller.observe.classes import class_of
from controller.observe.policies import Policies
from controller.observe.settings_reading import KEY, PolicyReader, read_last_valid, read_policies, record_of
from controller.planning.snapshot import LOWEST_PRIORITY
from controller.sizing.records import ATTAINMENT, LEAST_ATTAINMENT, MOST_ATTAINMENT

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PREMIUM = "name: Premium\npriority: 1\ndata:\n- {model: llama, slo-tpot: 24, slo-ttft: 500}\n"
FREE = (
    "name: Free\npriority: 1000\ndata:\n- {model: llama, slo-tpot: 200}\n- {model: granite, slo-ttft: 900}\n"
)


def told(policies: Policies) -> list[str]:
    """Return the problems in words."""
    return [str(problem) for problem in policies.problems]


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
    assert told(policies) == [
        'ConfigMap classes, key bad.yaml: priority: Invalid value: "high": must be an integer; this entry is'
        " ignored",
        "ConfigMap classes, key free.yaml: priority: Invalid value: 1000: must be less than or equal to 100;"
        " what can be read is used",
        "ConfigMap costs, key H100: Invalid value: must be JSON such as"
        ' {"device": "NVIDIA-A100", "cost": "40.00"}; this entry is ignored; a type without a price costs 10'
        " per replica by default",
    ]


def test_a_class_is_found_by_reference_or_else_by_highest_priority_for_the_model() -> None:
    """A reference to a missing class finds none."""
    policies = read_policies({"c": {"data": {"a": FREE, "b": PREMIUM}}}, unit_costs="costs")

    by_reference = class_of(claim(model_id="llama", service_class=("c", "a")), policies)
    by_model = class_of(claim(model_id="llama"), policies)
    assert by_reference is not None
    assert by_reference.name == "Free"
    assert by_model is not None
    assert by_model.name == "Premium"
    assert class_of(claim(model_id="unknown"), policies) is None
    assert class_of(claim(model_id="llama", service_class=("c", "missing")), policies) is None


def test_without_a_reference_only_classes_of_the_configured_config_map_apply() -> None:
    """Classes of other ConfigMaps apply only by reference."""
    maps = {"classes": {"data": {"a": FREE}}, "other": {"data": {"b": PREMIUM}}}
    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    by_model = class_of(claim(model_id="llama"), policies)
    by_reference = class_of(claim(model_id="llama", service_class=("other", "b")), policies)
    assert [found and found.name for found in (by_model, by_reference)] == ["Free", "Premium"]


PRICES = {
    "invalid JSON": (
        "{oops",
        'Invalid value: must be JSON such as {"device": "NVIDIA-A100", "cost": "40.00"}; ',
    ),
    "a number alone": ("40", 'Invalid value: must be JSON such as {"device"'),
    "another member": ('{"price": "1"}', "cost: Required value; price: Forbidden: unknown field; "),
    "words": (
        '{"cost": "four"}',
        'cost: Invalid value: "four": must be a number from 0 to 1000000000, such as 40.00; ',
    ),
    "a negative number": ('{"cost": -4}', 'cost: Invalid value: "-4": must be a number from 0 to '),
    "not a number": ('{"cost": NaN}', 'cost: Invalid value: "NaN": must be a number from 0 to '),
}


@pytest.mark.parametrize(("text", "wrong"), PRICES.values(), ids=PRICES.keys())
def test_an_invalid_price_is_reported_with_its_error(text: str, wrong: str) -> None:
    """The message also gives the cost that applies instead."""
    (problem,) = told(read_policies({"costs": {"data": {"H100": text}}}, unit_costs="costs"))

    assert problem.startswith(f"ConfigMap costs, key H100: {wrong}")
    assert problem.endswith("; this entry is ignored; a type without a price costs 10 per replica by default")


ENTRY = "allowed are model, slo-tpot, slo-ttft"
DOUBTFUL = {
    "a misspelt priority": (
        "name: Premium\npriorty: 1\ndata:\n- {model: llama, slo-tpot: 24}\n",
        "priority: Required value; priorty: Forbidden: unknown field (is priority meant?); allowed are"
        " attainment, data, name, priority; this entry is ignored",
    ),
    "misspelt targets": (
        "priority: 1\ndata:\n- {model: a, slo-itl: 8}\n- {model: b, slo-itl: 8, slo-e2e: 9}\n",
        f"data[0].slo-itl: Forbidden: unknown field; {ENTRY}; data[1].slo-itl: Forbidden: unknown field;"
        f" {ENTRY}; data[1].slo-e2e: Forbidden: unknown field; {ENTRY}; what can be read is used",
    ),
    "an entry without a model": (
        "priority: 1\ndata:\n- {model: a, slo-tpot: 8}\n- {slo-tpot: 8}\n",
        "data[1].model: Required value; what can be read is used",
    ),
    "a field that is there twice": (
        "priority: 1\npriority: 2\n",
        'priority: Duplicate value: "priority"; what can be read is used',
    ),
    "invalid YAML": (
        "name: Premium\npriority: [1\n",
        "Invalid value: is not YAML: line 3: expected ',' or ']', but got '<stream end>'; this entry is"
        " ignored",
    ),
    "text": ("just text", ""),
    "nothing": ("", ""),
    "unrelated settings": ("interval: 60s\n", ""),
    "an unrelated list": ("data:\n- {model: llama, size: 8}\n- 1\n", ""),
}


@pytest.mark.parametrize(("text", "wrong"), DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_what_is_wrong_with_a_service_class_is_reported(text: str, wrong: str) -> None:
    """This holds for every ConfigMap entry that resembles a class."""
    policies = read_policies({"other": {"data": {"a": text}}}, unit_costs="costs")

    assert told(policies) == ([f"ConfigMap other, key a: {wrong}"] if wrong else [])


NO_MAPPING = {"text": "gold", "a list": "- priority: 1", "a number": "1", "only comments": "# priority: 1"}


@pytest.mark.parametrize("text", NO_MAPPING.values(), ids=NO_MAPPING.keys())
def test_every_entry_of_the_configured_config_map_must_be_a_service_class(text: str) -> None:
    """In other ConfigMaps, entries that do not resemble a class are ignored."""
    maps = {name: {"data": {"a": "name: Premium\nprio: 1\n", "b": text}} for name in ("classes", "other")}

    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    assert told(policies) == [
        "ConfigMap classes, key a: priority: Required value; prio: Forbidden: unknown field; allowed are"
        " attainment, data, name, priority; this entry is ignored",
        "ConfigMap classes, key b: Invalid value: must be a mapping with name, priority, attainment and data;"
        " this entry is ignored",
    ]


def test_aliases_do_not_multiply_the_content_of_a_class() -> None:
    """A text of some hundred bytes could stand for billions of values."""
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))]

    policies = read_policies({"c": {"data": {"a": "\n".join(lines)}}}, unit_costs="", default_classes="c")

    assert told(policies) == [
        "ConfigMap c, key a: Invalid value: must have at most 100000 values, with aliases written out; this"
        " entry is ignored"
    ]


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


@pytest.mark.parametrize(("maps", "lack"), MISPLACED.values(), ids=MISPLACED.keys())
def test_classes_in_other_config_maps_are_reported_once(
    maps: dict[str, dict[str, dict[str, str]]], lack: str
) -> None:
    """They applied by model in earlier versions."""
    policies = read_policies(maps, unit_costs="costs", default_classes="classes")

    expected = (
        f"ConfigMap classes: {lack}; the classes of ConfigMap gold, old apply"
        " by spec.sloClassRef only: to apply them by model, name their ConfigMap in names.serviceClasses"
    )
    assert told(policies) == ([expected] if lack else [])


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
    (problem,) = told(policies)
    assert problem.startswith("ConfigMap c, key a: data[0].slo-tpot: Invalid value: ")
    assert problem.endswith("; what can be read is used")


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
        assert str(found.problems[0]).startswith(f"ConfigMap {name}, key {key}: ")
        assert str(found.problems[0]).endswith("; its last valid content is used")
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
    assert told(broken) == [
        'ConfigMap c, key a: priority: Invalid value: "high": must be an integer; this entry is ignored',
        "ConfigMap c, key b: priority: Invalid value: 1000: must be less than or equal to 100; what can be"
        " read is used",
    ]


STORED = {
    "classes": {"data": {"a": PREMIUM}},
    "costs": {"data": {"A100": '{"cost": "40"}'}},
    "gold": {"data": {"b": PREMIUM}},
}
GONE: dict[str, Json] = {
    "deleted": {},
    "created again without content": {"classes": {}, "costs": {}, "gold": {}},
    "emptied": {name: {"data": {}} for name in STORED},
    "made invalid": {
        "classes": {"data": {"a": "priority: one"}},
        "costs": {"data": {"A100": '{"cost": "a lot"}'}},
        "gold": {"data": {"b": "priority: [1"}},
    },
}


@pytest.mark.parametrize("maps", GONE.values(), ids=GONE.keys())
def test_the_next_leader_continues_with_the_last_valid_settings(maps: Json) -> None:
    """It knows since when something is wrong; a ConfigMap that an object names is kept, too."""
    first = PolicyReader(unit_costs="costs", default_classes="classes", now=lambda: NOON)
    valid = first.read(STORED, named={"gold"})
    first.read(maps, named={"gold"})

    stored = {LAST_VALID: {"data": {KEY: record_of(first.last_valid)}}}
    later = PolicyReader(
        unit_costs="costs",
        default_classes="classes",
        last_valid=read_last_valid(stored[LAST_VALID]),
        now=lambda: NOON + timedelta(hours=1),
    )
    found = later.read(maps | stored, named={"gold"})

    assert (found.classes, found.unit_costs) == (valid.classes, valid.unit_costs)
    assert [item.config_map for item in found.problems] == ["classes", "costs", "gold"]
    assert {item.since for item in found.problems} == {NOON}
    assert all("; its last valid content is used" in text for text in told(found))
    assert later.read(STORED | stored, named={"gold"}).problems == ()


ON_PURPOSE: dict[str, Json] = {
    "an entry is removed": {"classes": {"data": {"b": PREMIUM}}},
    "everything is removed, with the annotation": {
        "classes": {"metadata": {"annotations": {ALLOW_EMPTY: "true"}}}
    },
}


@pytest.mark.parametrize("maps", ON_PURPOSE.values(), ids=ON_PURPOSE.keys())
def test_settings_can_be_removed_on_purpose(maps: Json) -> None:
    """After that, a ConfigMap that is deleted leaves nothing behind."""
    reader = PolicyReader(unit_costs="", default_classes="classes")
    reader.read({"classes": {"data": {"a": PREMIUM}}})

    found = reader.read(maps)

    assert ("classes", "a") not in found.classes
    assert (found.problems, "a" in reader.last_valid.texts.get("classes", {})) == ((), False)


def test_a_config_map_that_nothing_names_ends_with_its_deletion() -> None:
    """Otherwise each renamed ConfigMap would stay in force for ever."""
    reader = PolicyReader(unit_costs="costs", default_classes="classes")
    reader.read({"gold": {"data": {"a": PREMIUM}}}, named={"gold"})

    assert (reader.read({}).classes, reader.last_valid.texts) == ({}, {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"lastValid": {"a": 1}}', "[" * 10_000])
def test_what_is_no_record_is_refused(text: str) -> None:
    """The error names the ConfigMap."""
    with pytest.raises(ValueError, match=f"ConfigMap {LAST_VALID}, key {KEY}: is no record of settings"):
        read_last_valid({"data": {KEY: text}})


def test_the_schema_has_the_ranges_of_planning() -> None:
    """The declarations cannot import them."""
    properties = settings_schema(ServiceClassDocument)["properties"]

    assert properties["priority"]["maximum"] == LOWEST_PRIORITY
    ranges = (properties["attainment"]["minimum"], properties["attainment"]["maximum"])
    assert (*ranges, properties["attainment"]["default"]) == (LEAST_ATTAINMENT, MOST_ATTAINMENT, ATTAINMENT)


@pytest.mark.parametrize(("maps", "why"), [({}, "is missing"), ({"costs": {}}, "has no entries")])
def test_a_config_map_that_is_gone_is_reported_with_what_to_do(maps: Json, why: str) -> None:
    """Both ways are named: to restore it, and to remove it on purpose."""
    reader = PolicyReader(unit_costs="costs")
    reader.read({"costs": STORED["costs"]})

    (problem,) = told(reader.read(maps))
    assert problem.startswith(f"ConfigMap costs: {why}; its last valid content is used: apply it again; or, ")
    assert problem.endswith('without data, with the annotation stowplan.dev/allow-empty: "true"')
