"""The record of who wrote a binding: admission keeps it, whatever anybody sends."""

from __future__ import annotations

import json

import pytest
from support.bindings import scaling
from support.reviews import asked_by, mutate, review, validate, variant

from apiserver.kinds.authorship import WRITTEN_BY, record_of, writer_of
from apiserver.schema.filler import Addition
from apiserver.schema.json import Json


def record(user: str) -> str:
    """Return what is recorded of somebody who sends requests here."""
    return json.dumps({"groups": ["devs"], "username": user}, separators=(",", ":"))


def binding(*, most: int = 4, **annotations: str) -> Json:
    """Return a binding; `by` says whom its record names."""
    if "by" in annotations:
        annotations[WRITTEN_BY] = record(annotations.pop("by"))
    metadata = {"name": "b", "namespace": "ns"} | ({"annotations": annotations} if annotations else {})
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": metadata,
        "spec": scaling(maxReplicas=most),
    }


def noted(text: str) -> Json:
    """Return a binding whose record is this text."""
    value = binding()
    return value | {"metadata": value["metadata"] | {"annotations": {WRITTEN_BY: text}}}


def written(request: Json) -> Json | None:
    """Return the annotations that /mutate sets; None where it leaves them alone."""
    patch = mutate(request).patch
    found = [item.value for item in patch if isinstance(item, Addition) and "annotations" in item.path]
    assert len(found) <= 1
    return found[0] if found else None


BECOMES: dict[str, tuple[Json, Json | None, Json | None]] = {
    "who creates an object is its writer": (binding(), None, {WRITTEN_BY: record("ann")}),
    "what a new object claims does not count": (binding(by="root"), None, {WRITTEN_BY: record("ann")}),
    "who changes the spec is its writer": (
        binding(by="bob", most=5, team="a"),
        binding(by="bob", team="a"),
        {WRITTEN_BY: record("ann"), "team": "a"},
    ),
    "who changes another annotation is not": (binding(by="bob", team="b"), binding(by="bob"), None),
    "who touches the record is its writer": (
        binding(by="root"),
        binding(by="bob"),
        {WRITTEN_BY: record("ann")},
    ),
    "who removes the record is its writer": (binding(), binding(by="bob"), {WRITTEN_BY: record("ann")}),
    "who gives a record to an object that has none is its writer": (
        binding(by="root"),
        binding(),
        {WRITTEN_BY: record("ann")},
    ),
    "an object without a record stays so while nobody touches it": (binding(team="a"), binding(), None),
    "who writes his own object again changes nothing": (binding(by="ann", most=5), binding(by="ann"), None),
}


@pytest.mark.parametrize(("new", "old", "want"), BECOMES.values(), ids=BECOMES)
def test_the_writer(new: Json, old: Json | None, want: Json | None) -> None:
    """It is who sends the request, and the other webhook agrees with what this one made."""
    assert written(asked_by("ann", new, old)) == want
    annotations = new["metadata"].get("annotations") if want is None else want
    made = new | {"metadata": new["metadata"] | {"annotations": annotations or {}}}
    assert validate(asked_by("ann", made, old)).refusal is None


FORGED: dict[str, tuple[Json, Json | None]] = {
    "a new object": (binding(by="root"), None),
    "another spec": (binding(by="bob", most=5), binding(by="bob")),
    "the record alone": (binding(by="root"), binding(by="bob")),
    "an object that had none": (binding(by="root"), binding()),
}


@pytest.mark.parametrize(("new", "old"), FORGED.values(), ids=FORGED)
def test_a_record_that_names_somebody_else_is_refused(new: Json, old: Json | None) -> None:
    """Where the first webhook did not answer, or another one wrote after it."""
    refusal = validate(asked_by("ann", new, old)).refusal

    assert refusal is not None
    (cause,) = refusal["details"]["causes"]
    assert cause["field"] == f"metadata.annotations[{WRITTEN_BY}]"


def test_a_finalizer_goes_whoever_takes_it() -> None:
    """Neither the spec nor the record is touched."""
    old = binding(by="bob")
    old["metadata"]["finalizers"] = ["example.com/a"]

    assert written(asked_by("ann", binding(by="bob"), old)) is None
    assert validate(asked_by("ann", binding(by="bob"), old)).refusal is None


def test_a_variant_has_a_writer_whatever_its_version() -> None:
    """By whose rights it has its service class and its cost."""
    for version in ("v1alpha1", "v1alpha2"):
        assert written(asked_by("ann", variant(version=version))) == {WRITTEN_BY: record("ann")}


KEPT = "llmd.ai/kept-by-conversion"


def with_class() -> Json:
    """Return a binding of a service class."""
    value = binding()
    value["metadata"]["annotations"] = {"stowplan.dev/service-class": "classes/premium"}
    return value


LIKE_THE_SPEC: dict[str, Json] = {
    "what conversion keeps of it": variant(metadata={"annotations": {KEPT: '{"fields":[]}'}}),
    "the label that conversion looks at": variant(
        metadata={"labels": {"inference.optimization/acceleratorName": "H100"}}
    ),
    "the service class of a binding": with_class(),
}


@pytest.mark.parametrize("new", LIKE_THE_SPEC.values(), ids=LIKE_THE_SPEC)
def test_what_counts_like_the_spec_makes_a_writer(new: Json) -> None:
    """Else somebody's rights would be had by who only changes that."""
    bare = {name: item for name, item in new["metadata"].items() if name in ("name", "namespace")}
    old = new | {"metadata": bare | {"annotations": {WRITTEN_BY: record("bob")}}}
    kept = new["metadata"].get("annotations", {}) | {WRITTEN_BY: record("bob")}
    sent = new | {"metadata": new["metadata"] | {"annotations": kept}}

    found = written(asked_by("ann", sent, old))

    assert found is not None
    assert found[WRITTEN_BY] == record("ann")


def keeping(*fields: Json) -> Json:
    """Return an object in whose annotation conversion keeps these fields of the other version."""
    text = json.dumps({"fields": list(fields)})
    return variant(version="v1alpha1", metadata={"annotations": {KEPT: text, WRITTEN_BY: record("bob")}})


DECIDED: Json = {"path": ["status", "decision"], "value": {"phase": "Planned"}}
COUNTED: Json = {"path": ["spec", "acceleratorCount"], "value": 4}


@pytest.mark.parametrize(
    ("kept", "want"),
    {
        "what was kept of the status": ([DECIDED], None),
        "what was kept of the spec": ([DECIDED, COUNTED], {WRITTEN_BY: record("ann")}),
    }.values(),
    ids=["what was kept of the status", "what was kept of the spec"],
)
def test_who_takes_out_what_conversion_kept_is_a_writer_if_it_is_of_the_spec(
    kept: list[Json], want: Json | None
) -> None:
    """A downgrade takes it out of every object, and leaves no record where a release has the whole spec."""
    old = keeping(*kept)
    new = old | {"metadata": old["metadata"] | {"annotations": {WRITTEN_BY: record("bob")}}}

    assert written(asked_by("ann", new, old)) == want


def test_other_kinds_say_nothing_of_their_writer() -> None:
    """Nothing is done on their writers' behalf."""
    value = {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"metrics": [{"metricName": "m", "targetValue": "1"}]},
    }
    assert written(asked_by("ann", value)) is None


def test_a_record_can_be_asked_with() -> None:
    """Whatever the API server said of the user."""
    user = {"username": "ann", "uid": "7", "groups": ["b", "a"], "extra": {"scopes": ["x"]}}
    assert writer_of(noted(record_of(user))) == user


UNKNOWN: dict[str, Json] = {
    "no record": binding(),
    "no JSON": noted("ann"),
    "a list": noted("[]"),
    "no name": noted('{"groups":["system:masters"]}'),
    "nested too deeply": noted("[" * 10_000),
    "more groups than can be written down": noted(
        record_of({"username": "ann", "groups": ["g" * 100] * 1000})
    ),
}


@pytest.mark.parametrize("value", UNKNOWN.values(), ids=UNKNOWN)
def test_nobody_is_known_to_have_written(value: Json) -> None:
    """Nothing is done in nobody's name."""
    assert writer_of(value) is None


def test_a_user_with_too_many_groups_can_write_all_the_same() -> None:
    """The object is admitted; it names nobody."""
    user = {"username": "ann", "groups": ["g" * 100] * 1000}

    assert written(review(binding(), userInfo=user)) == {WRITTEN_BY: "{}"}
