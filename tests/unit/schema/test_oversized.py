"""Values far beyond their bounds: one short error each, without delay, beside all other errors."""

from __future__ import annotations

import pytest

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.kthena.models import MODEL
from apiserver.schema.json import Json

HUGE = 200_000


def backend(**members: object) -> Json:
    """Return a backend of a fixed number of replicas with some members changed."""
    whole = {
        "name": "h100",
        "type": "vLLM",
        "modelURI": "hf://meta/llama",
        "minReplicas": 1,
        "maxReplicas": 1,
        "workers": [{}],
    }
    return whole | members


OVERSIZED = {
    "a text": (
        [backend(modelURI="hf://" + "x" * HUGE, routeWeight=-1)],
        [
            "spec.backends[0].modelURI: Too long: may not be more than 2048 bytes",
            "spec.backends[0].routeWeight: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    "a length of time": (
        [backend(scaleToZeroGracePeriod="9" * HUGE + "h")],
        ["spec.backends[0].scaleToZeroGracePeriod: Too long: may not be more than 64 bytes"],
    ),
    "a map": (
        [backend(workers=[{"resources": {"limits": {f"r{i}": 1 for i in range(HUGE)}}}])],
        ["spec.backends[0].workers[0].resources.limits: Too many: 200000: must have at most 64 items"],
    ),
}


@pytest.mark.parametrize(("backends", "want"), OVERSIZED.values(), ids=OVERSIZED.keys())
def test_an_oversized_value_gets_one_short_error(backends: list[Json], want: list[str]) -> None:
    """Errors of other fields are listed as well."""
    found = errors_of(backends)

    assert [error for error in found if "[r" not in error] == want
    assert all(len(error) < 400 for error in found)


def test_a_list_beyond_its_maximum_gets_a_limited_number_of_errors() -> None:
    """For 60,000 invalid items, no more errors are listed than for any object."""
    found = errors_of([{"name": f"b{position}"} for position in range(60_000)])

    assert found[0] == "spec.backends: Too many: 60000: must have at most 32 items"
    assert len(found) == 101


def errors_of(backends: list[Json]) -> list[str]:
    """Return the errors of a Model with these backends."""
    value = {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "llama"},
        "spec": {"backends": backends},
    }
    return [str(error) for error in complete_and_judge(MODEL, MODEL.versions[0], value).errors]
