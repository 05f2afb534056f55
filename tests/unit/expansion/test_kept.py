"""What is kept of existing objects."""

from __future__ import annotations

import copy

import pytest
from support.models import POLICY, loading_backend, model, one, split

from apiserver.schema.json import Json
from controller.expansion.adapters import listed_adapters
from controller.expansion.expansion import expand
from controller.expansion.standing import Standing, digest_object, key_of, steps

SCALED = {"minReplicas": 1, "maxReplicas": 4, "autoscalingPolicy": POLICY}
MODEL = model(
    loading_backend("law", "tax") | SCALED,
    split("split"),
    metadata={"namespace": "chat", "uid": "u1", "annotations": {"stowplan.dev/parent-refs": "a"}},
    owner="team",
)
OBJECTS = [{**item, "status": {"availableReplicas": 1}} for item in expand(MODEL).objects]


def test_the_next_steps_for_reduced_objects_are_the_same() -> None:
    """Some are superfluous, some have lost a part of their content."""
    changed = model(
        loading_backend("law"), name="qwen", metadata={"namespace": "chat", "uid": "u1"}, owner="team"
    )
    whole = {key_of(item): copy.deepcopy(item) for item in OBJECTS}
    for item in whole.values():
        item["metadata"]["resourceVersion"] = "1"
    expansion = expand(changed)
    reduced = {key: digest_object(item) for key, item in whole.items()}

    first, second = (steps(changed, expansion, Standing(children=some)) for some in (whole, reduced))
    assert (first.apply, first.awaited) == (second.apply, second.awaited)
    assert first.awaited != ()
    assert listed_adapters(one(first.apply, "ConfigMap")).keys() == {"law", "tax"}


@pytest.mark.parametrize("value", OBJECTS, ids=lambda item: f"{item['kind']} {item['metadata']['name']}")
def test_every_change_of_content_is_visible(value: Json) -> None:
    """A digest replaces what is not kept."""
    members = [(name, key) for name in ("spec", "data") for key in value.get(name) or {}]
    assert members
    for name, key in members:
        changed = {**value, name: {**value[name], key: "changed"}}
        assert digest_object(changed) != digest_object(value), key
