"""What an objective may say: exactly what its releases took."""

from __future__ import annotations

import pytest

from apiserver.kinds.inference.inferenceobjective import InferenceObjective
from apiserver.kinds.inference.objectives import INFERENCE_OBJECTIVE, objective_advice
from apiserver.schema.defaulting import defaulted
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

VERSION = INFERENCE_OBJECTIVE.storage_version
POOL = {"name": "llama-8b"}
GROUP = "inference.networking.k8s.io"


def pool(**members: str) -> Json:
    """Return an objective whose pool is referred to in another way."""
    return {"spec": {"poolRef": POOL | members}}


def priority(number: object) -> Json:
    """Return an objective of a priority."""
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
    "an empty spec": ({"spec": {}}, ["spec.poolRef: Required value"]),
    "a pool without a name": ({"spec": {"poolRef": {}}}, ["spec.poolRef.name: Required value"]),
    "a priority in words": (priority("high"), ['spec.priority: Invalid value: "high": must be an integer']),
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
    "an empty name": (
        pool(name=""),
        ['spec.poolRef.name: Invalid value: "": must be at least 1 character long'],
    ),
}

ADVICE: dict[str, tuple[Json, list[str]]] = {
    "nothing odd": (priority(5), []),
    "a reference as it is filled in": (pool(group=GROUP, kind="InferencePool"), []),
    "no spec": ({}, ["spec: not set: the objective names no pool, and no request can use it"]),
    "a priority that the successor has": (priority(-(2**31)), []),
    "a priority that the successor lacks": (
        priority(2**31),
        ["spec.priority: exceeds 32 bits, the limit of llm-d.ai/v1alpha2 InferenceObjective"],
    ),
    "another kind": (
        pool(kind="Service"),
        ["spec.poolRef.kind: endpoint pickers look for an InferencePool of that name and ignore this field"],
    ),
    "the old group": (
        pool(group="inference.networking.x-k8s.io"),
        [f"spec.poolRef.group: the former group of InferencePools; use {GROUP}"],
    ),
    "another group": (
        pool(group=""),
        [f"spec.poolRef.group: InferencePools are not in this group; use {GROUP}"],
    ),
}


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_an_objective_is_accepted(value: Json) -> None:
    """What the releases took is valid, and stays so once defaults are filled in."""
    assert validate(InferenceObjective, value) == []
    assert validate(InferenceObjective, defaulted(VERSION, value)) == []


@pytest.mark.parametrize(("value", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_an_objective_is_refused_field_by_field(value: Json, want: list[str]) -> None:
    """Each wrong field has its own error."""
    assert [str(error) for error in validate(InferenceObjective, value)] == want


@pytest.mark.parametrize(("value", "want"), ADVICE.values(), ids=ADVICE.keys())
def test_what_is_hardly_meant_is_said(value: Json, want: list[str]) -> None:
    """It is valid all the same, and the sentences are short."""
    assert validate(InferenceObjective, value) == []
    found = objective_advice(value)
    assert found == want
    assert all(len(sentence) <= 120 for sentence in found)


def test_a_priority_is_never_made_up() -> None:
    """An absent one reads as 0, and stays absent: another field may take its place one day."""
    spec = defaulted(VERSION, pool())["spec"]

    assert spec == {"poolRef": {"group": GROUP, "kind": "InferencePool", "name": "llama-8b"}}


def test_an_objective_that_nobody_looked_at_is_pending() -> None:
    """As the releases have it: in a status that is there, since the first of 1970."""
    (condition,) = defaulted(VERSION, {"status": {}})["status"]["conditions"]

    assert condition == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "Pending",
        "message": "Waiting for controller",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
    assert "status" not in defaulted(VERSION, pool())


def test_an_objective_refers_to_its_pool() -> None:
    """In its defaults where it says nothing; without a spec to none."""
    (found,) = VERSION.references(pool())

    assert (str(found.path), found.group, found.kind, found.name) == (
        "spec.poolRef",
        GROUP,
        "InferencePool",
        "llama-8b",
    )
    assert list(VERSION.references({})) == []


def test_columns_are_those_of_the_releases() -> None:
    """Priority as text, so that an absent one is not shown as 0; what else is shown has to be asked for."""
    shown = [
        (column.name, column.type, column.json_path) for column in VERSION.columns if not column.priority
    ]

    assert shown == [
        ("Inference Pool", "string", ".spec.poolRef.name"),
        ("Priority", "string", ".spec.priority"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
