"""What an update is forgiven, and what it is not."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import defaulted
from apiserver.schema.json import Json

MODEL: Json = {
    "apiVersion": "registry.volcano.sh/v1alpha1",
    "kind": "Model",
    "metadata": {"name": "llama"},
    "spec": {
        "owner": "ann",
        "backends": [
            {
                "name": "h100",
                "type": "vLLM",
                "modelURI": "hf://meta/llama",
                "minReplicas": 1,
                "maxReplicas": 3,
                "workers": [{"image": "vllm:1"}],
            }
        ],
    },
}
"""Stored before a fixed number of replicas was demanded where nothing scales."""

BAD = {"name": "bad", "modelMatch": {"uri": {"regex": "("}}, "targetModels": [{"modelServerName": "a"}]}
GOOD = {"name": "good", "targetModels": [{"modelServerName": "b"}]}
ROUTE: Json = {
    "apiVersion": "networking.volcano.sh/v1alpha1",
    "kind": "ModelRoute",
    "metadata": {"name": "chat"},
    "spec": {"modelName": "llama", "rules": [BAD]},
}
"""Stored before regular expressions were compiled at admission."""


def set_owner(value: Json) -> None:
    """Change what no demand is about."""
    value["spec"]["owner"] = "bob"


def set_image(value: Json) -> None:
    """Change something beside the field in breach."""
    value["spec"]["backends"][0]["workers"][0]["image"] = "vllm:2"


def set_fewest(value: Json) -> None:
    """Change the field in breach, and leave it so."""
    value["spec"]["backends"][0]["minReplicas"] = 2


def put_in_front(value: Json) -> None:
    """Move the item in breach."""
    value["spec"]["rules"].insert(0, GOOD)


def break_another(value: Json) -> None:
    """Break something that was right."""
    value["spec"]["rules"].append(GOOD | {"name": "worse", "modelMatch": {"uri": {"regex": "["}}})


UPDATES = {
    "another field": (MODEL, set_owner, []),
    "another field of the same item": (MODEL, set_image, []),
    "the field itself": (MODEL, set_fewest, ["spec.backends[0].minReplicas"]),
    "an item that moves": (ROUTE, put_in_front, []),
    "a new item": (ROUTE, break_another, ["spec.rules[1].modelMatch.uri.regex"]),
}


@pytest.mark.parametrize(("stored", "change", "want"), UPDATES.values(), ids=UPDATES.keys())
def test_only_what_an_update_breaks_is_refused(
    stored: Json, change: Callable[[Json], None], want: list[str]
) -> None:
    """An object that was accepted once stays editable."""
    found = find_version(stored["apiVersion"], stored["kind"])
    assert found is not None
    old = defaulted(found[1], stored)
    new = copy.deepcopy(old)
    change(new)

    errors = complete_and_judge(*found, new, old).errors

    assert [str(error.path) for error in errors] == want
