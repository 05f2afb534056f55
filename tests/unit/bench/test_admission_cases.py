"""The payloads: as large as the goals say, and as right or wrong as their names say."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from apiserver.schema.json import JsonValue
from hack.bench.admission import objects, ours, straightforward
from hack.bench.admission.cases import VERBS, Case, cases, check_agreement, outcome_of
from hack.bench.admission.ours import answer_mutate
from hack.bench.load import WrongAnswerError
from hack.bench.received import model

SIZES = {
    "Model, create on /mutate": (8_900, 9_700),
    "Model, refused on /mutate": (8_900, 9_700),
    "Model, update unchanged on /mutate": (17_000, 19_500),
    "Model, update changed on /mutate": (17_000, 19_500),
    "VariantAutoscaling, create on /mutate": (1_200, 2_200),
}


@cache
def all_cases() -> dict[str, Case]:
    """Return them by name and path; made once, and not while tests are collected: that takes seconds."""
    return {f"{case.name} on /{case.verb}": case for case in cases()}


@pytest.mark.parametrize(("name", "bounds"), SIZES.items(), ids=SIZES.keys())
def test_reviews_have_the_size_that_is_claimed(name: str, bounds: tuple[int, int]) -> None:
    """Bytes of the body."""
    least, most = bounds
    assert least <= len(all_cases()[name].body) <= most


@pytest.mark.parametrize("path", VERBS)
def test_both_ways_answer_rightly_and_alike(path: str) -> None:
    """What is measured is the same job."""
    chosen = [case for case in all_cases().values() if case.verb == path]
    handlers = [one.answers()[f"/{path}"] for one in (ours, straightforward)]
    for case in chosen:
        answers = [handle(case.body) for handle in handlers]

        for answer in answers:
            case.check(answer)
        check_agreement(case, answers)
    assert len(chosen) == len(SIZES)


def test_all_mistakes_of_the_spoilt_model_are_named() -> None:
    """At once, each by its field."""
    refused = answer_mutate(all_cases()["Model, refused on /mutate"].body)

    causes = json.loads(refused)["response"]["status"]["details"]["causes"]
    assert [cause["field"] for cause in causes] == [
        "spec.backends[0].modelURI",
        "spec.backends[1].routeWeight",
        "spec.backends[2].minReplicas",
    ]


def test_about_twenty_members_of_the_model_are_filled_in() -> None:
    """A patch of one operation would be no measure of patching."""
    value, kept = model(), objects.stored(model())

    assert 20 <= members(kept["spec"]) - members(value["spec"]) <= 30


def test_models_that_are_to_be_unlike_share_no_worker() -> None:
    """A server that remembers what it saw must look at each of them again."""
    workers = [
        json.dumps(worker)
        for value in objects.unlike_models(3)
        for backend in value["spec"]["backends"]
        for worker in backend["workers"]
    ]

    assert len(set(workers)) == len(workers)


def test_unlike_models_are_answered_alike() -> None:
    """So that a wrong answer to any of them is noticed."""
    for name in ("create", "refused", "update changed", "update unchanged"):
        bodies = all_cases()[f"Model, {name} on /mutate"].bodies

        assert len(set(bodies)) == len(bodies)
        assert answer_mutate(bodies[0]) == answer_mutate(bodies[1]) == answer_mutate(bodies[-1])


ANSWERS = {
    "refused": ({"allowed": False}, "refused"),
    "allowed with an empty patch": ({"allowed": True, "patch": "W10="}, "allowed"),
    "allowed with a patch": ({"allowed": True, "patch": "W3t9XQ=="}, "patched"),
    "allowed": ({"allowed": True}, "allowed"),
}


@pytest.mark.parametrize(("response", "want"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_has_one_outcome(response: dict[str, Any], want: str) -> None:
    """An empty patch is none."""
    assert outcome_of(response) == want


def test_a_wrong_answer_stops_the_measuring() -> None:
    """A server that refuses everything would look fast."""
    refused = json.dumps({"response": {"allowed": False}}).encode()

    with pytest.raises(WrongAnswerError, match="should be patched"):
        all_cases()["Model, create on /mutate"].check(refused)


def members(value: JsonValue) -> int:
    """Count the members of all objects in a value."""
    if isinstance(value, dict):
        return len(value) + sum(members(item) for item in value.values())
    return sum(members(item) for item in value) if isinstance(value, list) else 0
