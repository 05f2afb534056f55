"""Validation, defaults and warnings of an InferenceObjective, as in its releases."""

from __future__ import annotations

import pytest

from apiserver.kinds.inference.inferenceobjective import (
    INFERENCE_OBJECTIVE,
    InferenceObjective,
    objective_advice,
)
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

VERSION = INFERENCE_OBJECTIVE.storage_version
POOL = {"name": "llama-8b"}
GROUP = "inference.networking.k8s.io"


def pool(**members: str) -> Json:
    """Return an objective with some members of its pool reference changed."""
    return {"spec": {"poolRef": POOL | members}}


def priority(number: object) -> Json:
    """Return an objective with a priority."""
    return {"spec": {"priority": number, "poolRef": POOL}}


ACCEPTED: dict[str, Json] = {
    "no spec": {},
    "no priority": pool(),
    "a priority below 0": priority(-10),
    "the largest priority": priority(2**63 - 1),
    "the smallest priority": priority(-(2**63)),
    "the core group": pool(group=""),
    "another kind": pool(kind="Service"),
    "any name that an object can have": pool(name="A.b_c"),
    "an empty status": {"status": {}},
}

REFUSED: dict[str, tuple[Json, list[str]]] = {
    "a pool without a name": ({"spec": {"poolRef": {}}}, ["spec.poolRef.name: Required value"]),
    "a priority that is text": (
        priority("high"),
        ['spec.priority: Invalid value: "high": must be an integer'],
    ),
    "a priority beyond 64 bits": (
        priority(2**63),
        [
            "spec.priority: Invalid value: 9223372036854775808: must be less than or equal to"
            " 9223372036854775807"
        ],
    ),
    "a group with a version": (
        pool(group="example.com/v1"),
        [
            'spec.poolRef.group: Invalid value: "example.com/v1": must be an API group such as'
            " inference.networking.k8s.io, or empty for the core group"
        ],
    ),
    "a kind with a slash": (
        pool(kind="invalid/kind"),
        [
            'spec.poolRef.kind: Invalid value: "invalid/kind": must be a kind such as InferencePool: a'
            " letter, then letters, digits and dashes"
        ],
    ),
}

ADVICE: dict[str, tuple[Json, list[str]]] = {
    "a usual objective": (priority(5), []),
    "a reference with its defaults written out": (pool(group=GROUP, kind="InferencePool"), []),
    "no spec": ({}, ["spec: not set: the objective names no pool, and no request can use it"]),
    "the smallest priority that the successor supports": (priority(-(2**31)), []),
    "a priority that the successor does not support": (
        priority(2**31),
        ["spec.priority: exceeds 32 bits, the limit of llm-d.ai/v1alpha2 InferenceObjective"],
    ),
    "another kind": (
        pool(kind="Service"),
        ["spec.poolRef.kind: endpoint pickers look for an InferencePool of that name and ignore this field"],
    ),
    "the former group": (
        pool(group="inference.networking.x-k8s.io"),
        [f"spec.poolRef.group: the former group of InferencePools; use {GROUP}"],
    ),
    "another group": (
        pool(group=""),
        [f"spec.poolRef.group: InferencePools are not in this group; use {GROUP}"],
    ),
}


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_objective_is_accepted_with_and_without_its_defaults(value: Json) -> None:
    """Everything that the releases accepted is valid."""
    assert validate(InferenceObjective, value) == []
    assert validate(InferenceObjective, with_defaults(VERSION, value)) == []


@pytest.mark.parametrize(("value", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(value: Json, want: list[str]) -> None:
    """The list of errors is complete."""
    assert [str(error) for error in validate(InferenceObjective, value)] == want


@pytest.mark.parametrize(("value", "want"), ADVICE.values(), ids=ADVICE.keys())
def test_probably_unintended_values_cause_warnings(value: Json, want: list[str]) -> None:
    """They are valid; each warning has at most 120 characters."""
    assert validate(InferenceObjective, value) == []
    found = objective_advice(value)
    assert found == want
    assert all(len(sentence) <= 120 for sentence in found)


def test_no_default_priority_is_added() -> None:
    """An absent priority counts as 0; it stays absent, so that another field can replace it later."""
    spec = with_defaults(VERSION, pool())["spec"]

    assert spec == {"poolRef": {"group": GROUP, "kind": "InferencePool", "name": "llama-8b"}}


def test_an_empty_status_gets_a_pending_condition() -> None:
    """As in the releases, its time is the beginning of 1970; an absent status stays absent."""
    (condition,) = with_defaults(VERSION, {"status": {}})["status"]["conditions"]

    assert condition == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "Pending",
        "message": "Waiting for controller",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
    assert "status" not in with_defaults(VERSION, pool())


def test_an_objective_refers_to_its_pool() -> None:
    """Omitted fields have defaults; without a spec, there is no reference."""
    (found,) = VERSION.references(pool())

    assert (str(found.path), found.group, found.kind, found.name) == (
        "spec.poolRef",
        GROUP,
        "InferencePool",
        "llama-8b",
    )
    assert list(VERSION.references({})) == []


def test_columns_are_those_of_the_releases() -> None:
    """The priority is text, so that an absent one is not shown as 0; other columns are shown on request."""
    shown = [
        (column.name, column.type, column.json_path) for column in VERSION.columns if not column.priority
    ]

    assert shown == [
        ("Inference Pool", "string", ".spec.poolRef.name"),
        ("Priority", "string", ".spec.priority"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
