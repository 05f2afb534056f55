"""The laws of conversion, on generated objects of every shape and of none."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from strategies import Wish, json_values, objects_of

from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, convert
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node
from apiserver.schema.validation import validate

NUMBERS = st.sampled_from(["0", "1", "20.58", "0.10", "1e-3"])
LEGACY = frozenset(v1alpha1.LEGACY_FIELDS)
SHAPES = {
    "modelProfile": (frozenset({"modelProfile"}), LEGACY - {"sloClassRef"}),
    "legacy": (LEGACY, frozenset({"modelProfile"})),
    "current": (frozenset({"scaleTargetRef"}), LEGACY | {"modelProfile"}),
}
"""For each shape the fields that it has and those that it has not."""


def _numeric(node: Node) -> SearchStrategy[JsonValue] | None:
    is_parameters = node.values is not None and node.keywords.get("minProperties") == 1
    names = st.sampled_from(["alpha", "beta", "gamma", "delta"])
    return st.dictionaries(names, NUMBERS, min_size=1, max_size=4) if is_parameters else None


def _metadata() -> SearchStrategy[Json]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "ms-decode",
        "controller": True,
        "uid": "u",
    }
    return st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "llama-8b"]), "uid": st.just("7")},
        optional={
            "labels": st.dictionaries(st.just("inference.optimization/acceleratorName"), st.text(max_size=4)),
            "annotations": st.dictionaries(st.sampled_from(["x", "y"]), st.text(max_size=4), min_size=1),
            "ownerReferences": st.just([owner]),
            "finalizers": st.just(["f"]),
        },
    )


def _objects(api_version: str, body: SearchStrategy[Json]) -> SearchStrategy[Json]:
    head = {"apiVersion": api_version, "kind": "VariantAutoscaling"}
    return st.builds(lambda metadata, rest: head | {"metadata": metadata} | rest, _metadata(), body)


def spokes() -> SearchStrategy[Json]:
    """Return valid v1alpha1 objects of the three shapes."""
    bodies = []
    for has, has_not in SHAPES.values():
        # In status the same names stand for other things and come and go freely.
        spec = objects_of(v1alpha1.VariantAutoscalingSpec, Wish(_numeric, has, has_not))
        status = objects_of(v1alpha1.VariantAutoscalingStatus)
        bodies.append(st.fixed_dictionaries({"spec": spec}, optional={"status": status}))
    return _objects(SPOKE, st.one_of(bodies))


def hubs() -> SearchStrategy[Json]:
    """Return valid v1alpha2 objects."""
    return _objects(HUB, objects_of(v1alpha2.VariantAutoscaling, Wish(_numeric)))


@given(spokes())
def test_there_and_back_from_v1alpha1_loses_nothing(value: Json) -> None:
    """Everything an old manifest says is there again, digits and absences included."""
    before = copy.deepcopy(value)

    assert convert(convert(value, HUB), SPOKE) == before
    assert value == before


@given(hubs())
def test_there_and_back_from_v1alpha2_loses_nothing(value: Json) -> None:
    """The decision survives a reader of the old version."""
    assert convert(convert(value, SPOKE), HUB) == value


@given(spokes() | hubs())
def test_what_is_valid_converts_to_what_is_valid(value: Json) -> None:
    """Validity carries over both ways."""
    target, declared = (HUB, v1alpha2) if value["apiVersion"] == SPOKE else (SPOKE, v1alpha1)

    assert validate(declared.VariantAutoscaling, convert(value, target)) == []


def test_the_longest_valid_names_convert_to_what_is_valid() -> None:
    """The identifier of the legacy shape is as long as its parts together."""
    spec = {
        "modelID": "m" * 512,
        "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "accelerator": "a" * 253,
        "acceleratorCount": 2**63 - 1,
        "sloClassRef": {"name": "n", "key": "k"},
        "variantProfile": {
            "perfParms": {"decodeParms": {"alpha": "1"}, "prefillParms": {"gamma": "1"}},
            "maxBatchSize": 1,
        },
    }
    value = {"apiVersion": HUB, "kind": "VariantAutoscaling", "metadata": {"name": "x"}, "spec": spec}

    assert validate(v1alpha2.VariantAutoscaling, value) == []
    assert validate(v1alpha1.VariantAutoscaling, convert(value, SPOKE)) == []


@given(spokes() | hubs())
def test_metadata_is_untouched_but_for_one_annotation(value: Json) -> None:
    """The API server takes labels and annotations from us, so none may go missing."""
    other = convert(value, HUB if value["apiVersion"] == SPOKE else SPOKE)
    metadata = copy.deepcopy(other["metadata"])
    annotations = metadata.get("annotations", {})
    annotations.pop(ANNOTATION, None)
    if not annotations:
        metadata.pop("annotations", None)

    assert metadata == value["metadata"]


@given(
    st.dictionaries(st.sampled_from(["spec", "status", "metadata", "x"]), json_values()),
    st.sampled_from([HUB, SPOKE]),
)
def test_no_object_however_odd_fails_to_convert(body: Json, target: str) -> None:
    """One failing object would make every LIST fail."""
    source = SPOKE if target == HUB else HUB
    value = body | {"apiVersion": source, "kind": "VariantAutoscaling"}

    assert convert(value, target)["apiVersion"] == target


@given(
    spokes(), st.text(max_size=20) | st.sampled_from(['{"fields":[{"path":[]}]}', "[" * 5000, '{"fields":7}'])
)
def test_a_damaged_annotation_counts_as_none(value: Json, text: str) -> None:
    """Whatever stands in the annotation, conversion goes on."""
    hub = convert(value, HUB)
    hub["metadata"].setdefault("annotations", {})[ANNOTATION] = text

    assert convert(hub, SPOKE)["spec"]["modelID"] == value["spec"]["modelID"]


@given(spokes())
def test_an_edit_in_the_hub_wins_over_what_was_kept(value: Json) -> None:
    """The edited field changes, and only that one."""
    hub = convert(value, HUB)
    edited = hub | {"spec": hub["spec"] | {"modelID": "edited/model"}}

    back = convert(edited, SPOKE)

    assert back["spec"]["modelID"] == "edited/model"
    assert validate(v1alpha1.VariantAutoscaling, back) == []
