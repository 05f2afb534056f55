"""Steps for a route behind Gateways: no repetition, no changes to foreign objects, pools while in use."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from support.routes import route, rule, server, translated

from apiserver.schema.json import Json
from controller.expansion.standing import ChildKey, fingerprint, key_of
from controller.gateways.parts import pool_of, shared_by
from controller.gateways.reporting import Surroundings, steps

POOL = ChildKey("InferencePool", "l4")


def stored(name: str = "chat", **members: Any) -> Json:
    """Return a route that is stored in the cluster."""
    value = route(name=name, **members)
    value["metadata"] |= {"namespace": "ns", "uid": f"uid-of-{name}"}
    return value


def pool(*owners: Json) -> Json:
    """Return the pool of the server as applied for some routes."""
    made, _ = pool_of(server())
    assert made is not None
    return shared_by(made, owners)


def live(*items: Json) -> Mapping[ChildKey, Json]:
    """Return objects by kind and name."""
    return {key_of(item): item for item in items}


def done(value: Json, *, is_wanted: bool = True, servers: Sequence[Json] = (), **around: Any) -> list[str]:
    """Return the steps for a route."""
    known = {item["metadata"]["name"]: item for item in servers or [server()]}
    found = translated(value, *known.values()) if is_wanted else None
    applied = {key: fingerprint(item, item) for key, item in around.get("children", {}).items()}
    taken = steps(value, found, Surroundings(servers=known, **{"applied": applied} | around))
    return [f"apply {'/'.join(key_of(item)[:2])}" for item in taken.apply] + [
        f"delete {'/'.join(key_of(item)[:2])}" for item in taken.delete
    ]


def test_pools_are_created_before_routes() -> None:
    """The target of requests exists before the route that sends them."""
    value = stored()

    assert done(value, sharing=[value]) == ["apply InferencePool/l4", "apply HTTPRoute/chat"]


def test_only_changed_objects_are_applied_again() -> None:
    """An object that another client changed is restored."""
    value = stored()
    objects = [*translated(value).objects, pool(value)]

    assert done(value, sharing=[value], children=live(*objects)) == []
    applied = {key: fingerprint(item, item) for key, item in live(*objects).items()}
    objects[-1] = {**objects[-1], "spec": {**objects[-1]["spec"], "targetPorts": []}}
    assert done(value, sharing=[value], children=live(*objects), applied=applied) == [
        "apply InferencePool/l4"
    ]


def test_a_pool_is_deleted_with_the_last_of_its_routes() -> None:
    """Until then it keeps only the other routes as owners."""
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


def test_a_pool_is_deleted_with_its_server_but_not_if_the_server_is_invalid() -> None:
    """After an invalid edit of the server, the pool is kept as it was."""
    value = stored(rules=[rule("l4"), rule("h100")])
    children = live(*translated(value, server("h100")).objects, pool(value))
    there = [server("h100")]

    gone = done(value, servers=there, sharing=[value], children=children)
    kept = done(value, servers=there, sharing=[value], children=children, invalid=frozenset({"l4"}))
    assert gone == ["apply InferencePool/h100", "delete InferencePool/l4"]
    assert kept == ["apply InferencePool/h100"]


def test_objects_of_another_owner_are_neither_written_nor_deleted() -> None:
    """This does not depend on their labels."""
    value = stored()
    foreign = pool(value)
    foreign["metadata"] |= {"ownerReferences": [], "annotations": {}}
    other = copy.deepcopy(translated(stored("other")).objects[0])
    other["metadata"]["name"] = "chat"

    assert done(value, sharing=[value], children=live(foreign, other)) == []
    assert done(value, is_wanted=False, sharing=[], children=live(foreign, other)) == []
