"""Names of Models and their backends, from which the names of other objects are made."""

from __future__ import annotations

from typing import Any

import pytest
from support.models import backend, split

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.kthena.models import MODEL
from apiserver.schema.json import Json

FIRST = "spec.backends[0]"


def model(*backends: Json, name: str = "llama") -> Json:
    """Return a Model, valid or not."""
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": name},
        "spec": {"backends": list(backends)},
    }


def spanning(name: str, **members: Any) -> Json:
    """Return a Model with one backend whose engines have two pods each."""
    return model(backend(name, workers=[{"pods": 2, **members}]))


def errors_of(value: Json, old: Json | None = None) -> list[str]:
    """Return every error of an object."""
    return [str(error) for error in complete_and_judge(MODEL, MODEL.storage_version, value, old).errors]


ACCEPTED = {
    "the longest name of a Service": model(backend("b" * 57)),
    "the longest name of an engine that spans nodes": spanning("b" * 44, replicas=5),
    "backends with similar names but different workloads": model(
        split("a"), backend("a-server"), split("a-decode-x")
    ),
    "no name yet": model(backend("b" * 57)) | {"metadata": {"generateName": "llama-"}},
}

REFUSED = {
    "the name of a workload of an earlier backend": (
        model(split("a"), backend("a-prefill")),
        [
            'spec.backends[1].name: Invalid value: "a-prefill": backend a has a workload'
            " llama-a-prefill as well: rename one of both"
        ],
    ),
    "a workload with the name of an earlier backend": (
        model(backend("a-decode"), split("a")),
        [
            'spec.backends[1].name: Invalid value: "a": backend a-decode has a workload'
            " llama-a-decode as well: rename one of both"
        ],
    ),
    "a name of a model that is not valid for a Service": (
        model(backend(), name="7b"),
        ['metadata.name: Invalid value: "7b": must begin with a letter: Services are called by it'],
    ),
    "a name of a backend that is too long together with that of the model": (
        model(backend("b" * 58)),
        [
            f'{FIRST}.name: Invalid value: "{"b" * 58}": its Service would be named llama-{"b" * 58},'
            " which has 64 characters of at most 63: shorten it, or metadata.name"
        ],
    ),
    "a name of a model that is too long together with that of a workload": (
        model(split("l4"), name="m" * 53),
        [
            f'{FIRST}.name: Invalid value: "l4": its Service would be named {"m" * 53}-l4-prefill,'
            " which has 64 characters of at most 63: shorten it, or metadata.name"
        ],
    ),
    "a name that is too long for a label of the last engine that spans nodes": (
        spanning("b" * 44, replicas=6),
        [
            f'{FIRST}.name: Invalid value: "{"b" * 44}": a label of its pods would be'
            f" llama-{'b' * 44}-11-REVISION,"
            " which has 64 characters of at most 63: shorten it, or metadata.name"
        ],
    ),
}


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_names_that_fit_are_accepted(value: Json) -> None:
    """There are no errors."""
    assert errors_of(value) == []


@pytest.mark.parametrize(("value", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_names_that_are_invalid_for_other_objects_are_rejected(value: Json, want: list[str]) -> None:
    """The message contains the name of the other object."""
    assert errors_of(value) == want


def test_a_stored_name_that_is_too_long_remains_valid() -> None:
    """The object stays editable; new backends must have valid names."""
    long = backend("b" * 58)
    old = model(long)

    assert errors_of(model(long | {"routeWeight": 1}), old) == []
    assert len(errors_of(model(long, backend("c" * 58)), old)) == 1
