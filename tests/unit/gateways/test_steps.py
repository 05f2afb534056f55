"""What is done for a route behind Gateways: nothing twice, nothing of others, pools while they are used."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from support.routes import route, rule, server, translated

from apiserver.schema.json import Json
from controller.gateways.pools import pool_of, shared_by
from controller.gateways.steps import Surroundings, steps
from controller.models.applied import fingerprint
from controller.models.standing import ChildKey, key_of

POOL = ChildKey("InferencePool", "l4")


def stored(name: str = "chat", **members: Any) -> Json:
    """Return a route that is in the cluster."""
    value = route(name=name, **members)
    value["metadata"] |= {"namespace": "ns", "uid": f"uid-of-{name}"}
    return value


def pool(*owners: Json) -> Json:
    """Return the pool of the server as it was applied for some routes."""
    made, _ = pool_of(server())
    assert made is not None
    return shared_by(made, owners)


def live(*items: Json) -> Mapping[ChildKey, Json]:
    """Return objects by kind and name."""
    return {key_of(item): item for item in items}


def done(value: Json, *, is_wanted: bool = True, servers: Sequence[Json] = (), **around: Any) -> list[str]:
    """Return what is done for a route."""
    known = {item["metadata"]["name"]: item for item in servers or [server()]}
    found = translated(value, *known.values()) if is_wanted else None
    applied = {key: fingerprint(item, item) for key, item in around.get("children", {}).items()}
    taken = steps(value, found, Surroundings(servers=known, **{"applied": applied} | around))
    return [f"apply {'/'.join(key_of(item))}" for item in taken.apply] + [
        f"delete {'/'.join(key_of(item))}" for item in taken.delete
    ]


def test_everything_is_made_pools_first() -> None:
    """What requests come to is there before what leads to it."""
    value = stored()

    assert done(value, sharing=[value]) == ["apply InferencePool/l4", "apply HTTPRoute/chat"]


def test_what_is_as_it_should_be_stays() -> None:
    """Nothing is written twice; what somebody changed is written again."""
    value = stored()
    objects = [*translated(value).objects, pool(value)]

    assert done(value, sharing=[value], children=live(*objects)) == []
    applied = {key: fingerprint(item, item) for key, item in live(*objects).items()}
    objects[-1] = {**objects[-1], "spec": {**objects[-1]["spec"], "targetPorts": []}}
    assert done(value, sharing=[value], children=live(*objects), applied=applied) == [
        "apply InferencePool/l4"
    ]


def test_a_pool_goes_with_the_last_of_its_routes() -> None:
    """The others keep it, and own it without the one that left."""
    first, second = stored(), stored("other")
    children = live(*translated(first).objects, pool(first, second))

    assert done(first, is_wanted=False, sharing=[second], children=children) == [
        "apply InferencePool/l4",
        "delete HTTPRoute/chat",
    ]
    assert done(first, is_wanted=False, sharing=[], children=children) == [
        "delete HTTPRoute/chat",
        "delete InferencePool/l4",
    ]


def test_a_pool_goes_with_its_server_and_stays_while_that_is_invalid() -> None:
    """What cannot be made any more after an edit stays as it was."""
    value = stored(rules=[rule("l4"), rule("h100")])
    children = live(*translated(value, server("h100")).objects, pool(value))
    there = [server("h100")]

    gone = done(value, servers=there, sharing=[value], children=children)
    kept = done(value, servers=there, sharing=[value], children=children, invalid=frozenset({"l4"}))
    assert gone == ["apply InferencePool/h100", "delete InferencePool/l4"]
    assert kept == ["apply InferencePool/h100"]


def test_what_somebody_else_made_is_neither_written_nor_deleted() -> None:
    """Whatever labels it has."""
    value = stored()
    foreign = pool(value)
    foreign["metadata"] |= {"ownerReferences": [], "annotations": {}}
    other = copy.deepcopy(translated(stored("other")).objects[0])
    other["metadata"]["name"] = "chat"

    assert done(value, sharing=[value], children=live(foreign, other)) == []
    assert done(value, is_wanted=False, sharing=[], children=live(foreign, other)) == []
