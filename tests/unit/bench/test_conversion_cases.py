"""Cases of the conversion benchmark: objects, and equal results of all implementations."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from functools import cache

import pytest

from apiserver.kinds.judgement import judged
from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.kinds.registry import find_version
from apiserver.schema.json import Json
from hack.bench.conversion import objects, straightforward, trivial
from hack.bench.conversion.cases import Case, answer_ours, answers, cases, check_agreement
from hack.bench.conversion.reviews import converted_objects, review
from hack.bench.load import WrongAnswerError

SIZES = (20, 100)


@cache
def all_cases() -> Sequence[Case]:
    """Return cases with lists short enough for a test; they are built once, and not at collection."""
    return cases(SIZES)


@pytest.mark.parametrize("make", objects.SHAPES.values(), ids=objects.SHAPES.keys())
def test_objects_have_the_documented_size_and_are_valid(make: objects.Make) -> None:
    """They have 0.7 to 1.5 KB, and admission would not reject them."""
    value = make(1234)
    found = find_version(value["apiVersion"], value["kind"])

    assert 700 <= len(json.dumps(value, separators=(",", ":"))) <= 1500
    assert found is not None
    assert judged(found[0], found[1], value) == []


def test_all_objects_of_a_list_differ() -> None:
    """Otherwise, a cache for a few thousand texts could make the benchmark fast."""
    values = objects.mixed(tuple(objects.SHAPES.values()), 500)

    assert len({json.dumps(value) for value in values}) == 500
    assert len({json.dumps(value["spec"]) for value in values}) > 200


def test_every_size_has_both_directions_with_and_without_the_annotation_for_lost_fields() -> None:
    """Some reviews of each size contain the annotation, others do not."""
    for count in (1, *SIZES):
        of_size = [case for case in all_cases() if case.count == count]
        kept = {b"kept-by-conversion" in case.bodies["stowplan"] for case in of_size}

        assert {case.desired for case in of_size} == {HUB, SPOKE}
        assert kept == {True, False}


def test_reviews_contain_the_documented_number_of_objects() -> None:
    """The objects do not have the desired version yet."""
    for case in all_cases():
        for body in case.bodies.values():
            values = json.loads(body)["request"]["objects"]
            assert len(values) == case.count
            assert case.desired not in {value["apiVersion"] for value in values}


def test_an_edit_is_kept_by_the_straightforward_converter_too() -> None:
    """It handles the annotation like ours; otherwise, the comparison would be unfair."""
    there = converted_objects(straightforward.answer(review([objects.profiled(1), objects.legacy(1)], HUB)))
    edited = copy.deepcopy(there)
    edited[0]["spec"]["acceleratorCount"] = 7
    edited[1]["spec"]["scaleTargetRef"]["name"] = "other"

    profiled, legacy = converted_objects(straightforward.answer(review(edited, SPOKE)))

    assert [entry["accCount"] for entry in profiled["spec"]["modelProfile"]["accelerators"]] == [1, 7]
    assert legacy["spec"]["scaleTargetRef"]["name"] == "other"


def test_the_trivial_converter_only_changes_the_version() -> None:
    """For the current shape, this is the correct result."""
    value = objects.released_current(1)

    answer = trivial.answer(review([value], HUB))

    assert converted_objects(answer) == [value | {"apiVersion": HUB}]
    assert converted_objects(answer) == converted_objects(answer_ours(review([value], HUB)))


def test_a_different_object_stops_the_benchmark() -> None:
    """A converter that omits fields would look fast."""
    case = case_of("legacy")
    answered = answers(case)
    del answered["straightforward"][0]["spec"]["variantProfile"]

    with pytest.raises(WrongAnswerError, match="legacy to v1alpha2: the servers return different objects"):
        check_agreement(case, answered)


def test_a_failure_response_is_rejected() -> None:
    """A server that rejects everything would look fast, too."""
    refused: Json = {"response": {"uid": "u", "result": {"status": "Failure", "message": "why"}}}

    with pytest.raises(ValueError, match="no conversion"):
        converted_objects(json.dumps(refused).encode())


def case_of(name: str) -> Case:
    """Return the case of this name with one object."""
    (found,) = (case for case in all_cases() if case.name == name and case.count == 1)
    return found
