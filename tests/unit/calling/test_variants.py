"""The VariantAutoscalings of each released shape that benchmarks and tests send."""

from __future__ import annotations

import json

import pytest

from apiserver.kinds.judgement import errors_of
from apiserver.kinds.registry import find_version
from hack.calling import variants


@pytest.mark.parametrize("make", variants.SHAPES.values(), ids=variants.SHAPES.keys())
def test_objects_have_the_documented_size_and_are_valid(make: variants.Make) -> None:
    """They have 0.7 to 1.5 KB, and admission would not reject them."""
    value = make(1234)
    found = find_version(value["apiVersion"], value["kind"])

    assert 700 <= len(json.dumps(value, separators=(",", ":"))) <= 1500
    assert found is not None
    assert errors_of(found[0], found[1], value) == []


def test_all_objects_of_a_list_differ() -> None:
    """Otherwise, a cache for a few thousand texts could make a benchmark fast."""
    values = variants.mixed_objects(tuple(variants.SHAPES.values()), 500)

    assert len({json.dumps(value) for value in values}) == 500
    assert len({json.dumps(value["spec"]) for value in values}) > 200
