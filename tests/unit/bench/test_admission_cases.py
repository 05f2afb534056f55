"""Request bodies of the admission benchmark: sizes, and whether the answers are correct."""

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
    """Return all cases by name and path, built once; not at collection, because that takes seconds."""
    return {f"{case.name} on /{case.verb}": case for case in cases()}


@pytest.mark.parametrize(("name", "bounds"), SIZES.items(), ids=SIZES.keys())
def test_reviews_have_the_documented_size(name: str, bounds: tuple[int, int]) -> None:
    """The bounds are in bytes of the body."""
    least, most = bounds
    assert least <= len(all_cases()[name].body) <= most


@pytest.mark.parametrize("path", VERBS)
def test_both_implementations_give_equal_and_correct_answers(path: str) -> None:
    """Otherwise, their times could not be compared."""
    chosen = [case for case in all_cases().values() if case.verb == path]
    handlers = [one.answers()[f"/{path}"] for one in (ours, straightforward)]
    for case in chosen:
        answers = [handle(case.body) for handle in handlers]

        for answer in answers:
            case.check(answer)
        check_agreement(case, answers)
    assert len(chosen) == len(SIZES)


def test_all_errors_of_the_invalid_model_are_reported() -> None:
    """One response names the field of each error."""
    refused = answer_mutate(all_cases()["Model, refused on /mutate"].body)

    causes = json.loads(refused)["response"]["status"]["details"]["causes"]
    assert [cause["field"] for cause in causes] == [
        "spec.backends[0].modelURI",
        "spec.backends[1].routeWeight",
        "spec.backends[2].minReplicas",
    ]


def test_about_twenty_fields_of_the_model_are_defaulted() -> None:
    """A patch with a single operation would not represent the cost of patching."""
    value, kept = model(), objects.stored(model())

    assert 20 <= members(kept["spec"]) - members(value["spec"]) <= 30


def test_different_models_have_no_worker_in_common() -> None:
    """Otherwise, a cache of the server could make the benchmark fast."""
    workers = [
        json.dumps(worker)
        for value in objects.unlike_models(3)
        for backend in value["spec"]["backends"]
        for worker in backend["workers"]
    ]

    assert len(set(workers)) == len(workers)


def test_different_models_get_equal_answers() -> None:
    """Every answer can so be compared with the same expected one."""
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
def test_each_answer_has_one_outcome(response: dict[str, Any], want: str) -> None:
    """An empty patch counts as no patch."""
    assert outcome_of(response) == want


def test_a_wrong_answer_stops_the_benchmark() -> None:
    """A server that rejects everything would look fast."""
    refused = json.dumps({"response": {"allowed": False}}).encode()

    with pytest.raises(WrongAnswerError, match="should be patched"):
        all_cases()["Model, create on /mutate"].check(refused)


def members(value: JsonValue) -> int:
    """Return the number of members of all objects in a value."""
    if isinstance(value, dict):
        return len(value) + sum(members(item) for item in value.values())
    return sum(members(item) for item in value) if isinstance(value, list) else 0
