"""Planning annotations of variants: valid ones are applied, others are ignored and reported."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.overrides import Orders, orders_finding, orders_of


def annotated(**annotations: str) -> Json:
    """Return an object with Stowplan's annotations, given by their names after the prefix."""
    return {"metadata": {"annotations": {f"stowplan.dev/{name}": text for name, text in annotations.items()}}}


UNDERSTOOD = {
    "a pause": (annotated(paused="true"), {"is_paused": True}),
    "no pause": (annotated(paused="false"), {"is_paused": False}),
    "pinned replicas": (annotated(replicas="3"), {"pinned_replicas": 3}),
    "pinned to zero replicas": (annotated(replicas="0"), {"pinned_replicas": 0}),
    "the maximum of pinned replicas": (annotated(replicas="1000000"), {"pinned_replicas": 1_000_000}),
    "protection": (annotated(preemption="Never"), {"may_be_preempted": False}),
    "a number of prefill per decode": (
        annotated(**{"prefill-per-decode": "0.5"}),
        {"prefill_per_decode": (0.5, 0.5)},
    ),
    "a range of prefill per decode": (
        annotated(**{"prefill-per-decode": "0.25-1"}),
        {"prefill_per_decode": (0.25, 1.0)},
    ),
    "advice": (annotated(advisory="true"), {"is_advisory": True}),
}


@pytest.mark.parametrize(("value", "want"), UNDERSTOOD.values(), ids=UNDERSTOOD.keys())
def test_a_valid_annotation_sets_its_field_and_no_other(value: Json, want: dict[str, object]) -> None:
    """The condition has reason AnnotationsFollowed."""
    found = orders_of(value)

    plain = Orders(followed=found.followed)
    orders = ("is_paused", "pinned_replicas", "may_be_preempted", "is_advisory", "prefill_per_decode")
    changed = {name for name in orders if getattr(found, name) != getattr(plain, name)}
    assert {name: getattr(found, name) for name in want} == want
    assert changed <= want.keys()
    assert orders_finding(found)[:2] == (True, "AnnotationsFollowed")


def test_the_annotation_that_records_the_writer_is_ignored() -> None:
    """The admission webhook writes it."""
    found = orders_of(annotated(**{"written-by": "{}"}))

    assert found == Orders()
    assert orders_finding(found)[1] == "NoAnnotations"


RATIO = "a number above 0 and below 10000, such as 0.5, or a range of them, such as 0.25-1"

NOT_UNDERSTOOD = {
    "another spelling of true": ("paused", "True", "'true' or 'false'"),
    "an empty value": ("advisory", "", "'true' or 'false'"),
    "a trailing line break": ("paused", "true\n", "'true' or 'false'"),
    "a fraction": ("replicas", "2.5", "a whole number from 0 to 1000000"),
    "a sign": ("replicas", "-1", "a whole number from 0 to 1000000"),
    "more than the maximum": ("replicas", "1000001", "a whole number from 0 to 1000000"),
    "non-ASCII digits": ("replicas", "٣", "a whole number from 0 to 1000000"),
    "no prefill at all": (
        "prefill-per-decode",
        "0",
        RATIO,
    ),
    "a range without an end": (
        "prefill-per-decode",
        "0.5-",
        RATIO,
    ),
    "another policy": ("preemption", "PreemptLowerPriority", "'Never'"),
}


@pytest.mark.parametrize(("name", "text", "allowed"), NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_an_invalid_annotation_value_is_ignored_and_reported(name: str, text: str, allowed: str) -> None:
    """The message gives the annotation, its value and what is allowed."""
    found = orders_of(annotated(**{name: text}))
    is_good, reason, message = orders_finding(found)

    assert found == Orders(problems=found.problems)
    assert (is_good, reason) == (False, "AnnotationNotUnderstood")
    assert message.startswith(f"metadata.annotations[stowplan.dev/{name}]: must be {allowed}, was {text!r}")


def test_an_unknown_annotation_is_reported_and_the_others_are_applied() -> None:
    """Otherwise its author would believe that the variant is paused."""
    found = orders_of(annotated(pause="true", replicas="2"))

    assert (found.is_paused, found.pinned_replicas) == (False, 2)
    assert found.problems[0].endswith(
        "stowplan.dev/pause]: has no effect on a VariantAutoscaling: is stowplan.dev/paused meant?"
    )


def test_an_order_that_a_kind_does_not_have_is_not_followed() -> None:
    """Admission says the same: targets of a binding cannot be pinned together."""
    orders = orders_of(annotated(replicas="2", paused="true"), "AutoscalingPolicyBinding")

    assert (orders.is_paused, orders.pinned_replicas) == (True, None)
    assert orders.problems[0].startswith(
        "metadata.annotations[stowplan.dev/replicas]: has no effect on an AutoscalingPolicyBinding"
    )


def test_annotations_with_other_prefixes_are_ignored() -> None:
    """A prefix that only ends like Stowplan's is another one."""
    value = {"metadata": {"annotations": {"kubectl.kubernetes.io/x": "y", "notstowplan.dev/paused": "true"}}}

    assert orders_finding(orders_of(value))[:2] == (True, "NoAnnotations")
    assert orders_of({"metadata": {}}) == Orders()
