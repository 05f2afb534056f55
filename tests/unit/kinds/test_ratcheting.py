"""Ratcheting: errors that an update may leave in the object, and errors that reject it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import with_defaults
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
"""An object from before equal bounds were required for backends without a policy."""

BAD = {"name": "bad", "modelMatch": {"uri": {"regex": "("}}, "targetModels": [{"modelServerName": "a"}]}
GOOD = {"name": "good", "targetModels": [{"modelServerName": "b"}]}
ROUTE: Json = {
    "apiVersion": "networking.volcano.sh/v1alpha1",
    "kind": "ModelRoute",
    "metadata": {"name": "chat"},
    "spec": {"modelName": "llama", "rules": [BAD]},
}
"""An object from before regular expressions were compiled at admission."""


def set_owner(value: Json) -> None:
    """Change a field that no rule is about."""
    value["spec"]["owner"] = "bob"


def set_image(value: Json) -> None:
    """Change a field beside the invalid one."""
    value["spec"]["backends"][0]["workers"][0]["image"] = "vllm:2"


def set_fewest(value: Json) -> None:
    """Change the invalid field to another invalid value."""
    value["spec"]["backends"][0]["minReplicas"] = 2


def lower_the_other_bound(value: Json) -> None:
    """Break a rule over two fields whose error is at the unchanged one, and a bound."""
    value["spec"]["backends"][0]["maxReplicas"] = 0


def put_in_front(value: Json) -> None:
    """Move the invalid item."""
    value["spec"]["rules"].insert(0, GOOD)


def break_another(value: Json) -> None:
    """Add an invalid item."""
    value["spec"]["rules"].append(GOOD | {"name": "worse", "modelMatch": {"uri": {"regex": "["}}})


UPDATES = {
    "a field that no rule is about": (MODEL, set_owner, []),
    "another field of the invalid item": (MODEL, set_image, []),
    "the invalid field itself": (MODEL, set_fewest, ["spec.backends[0].minReplicas"]),
    "the other field of a newly broken rule": (
        MODEL,
        lower_the_other_bound,
        ["spec.backends[0].minReplicas", "spec.backends[0].maxReplicas"],
    ),
    "a new position of the invalid item": (ROUTE, put_in_front, []),
    "a new invalid item": (ROUTE, break_another, ["spec.rules[1].modelMatch.uri.regex"]),
}


@pytest.mark.parametrize(("stored", "change", "want"), UPDATES.values(), ids=UPDATES.keys())
def test_an_update_is_rejected_only_for_errors_in_what_it_changes(
    stored: Json, change: Callable[[Json], None], want: list[str]
) -> None:
    """An object that was accepted once stays editable."""
    found = find_version(stored["apiVersion"], stored["kind"])
    assert found is not None
    old = with_defaults(found[1], stored)
    new = copy.deepcopy(old)
    change(new)

    errors = complete_and_judge(*found, new, old).errors

    assert [str(error.path) for error in errors] == want
