"""Steps for a route behind Gateways, and its condition."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from support.routes import route, rule, server, translated
from support.samples import SAMPLES

from apiserver.schema.json import Json
from controller.expansion.parts import Note
from controller.expansion.steps import ChildKey, fingerprint, key_of
from controller.gateways.parts import pool_of, shared_by
from controller.gateways.reporting import GatewayReason, RouteContext, steps, translation_finding

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
    taken = steps(value, found, RouteContext(servers=known, **{"applied": applied} | around))
    return [f"apply {'/'.join(key_of(item)[:2])}" for item in taken.apply] + [
        f"delete {'/'.join(key_of(item)[:2])}" for item in taken.delete
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


NOTE = Note(path="spec.rateLimit", text="nothing is limited")
TAKEN = frozenset({ChildKey("HTTPRoute", "chat")})


@pytest.mark.parametrize(
    ("result", "reason", "text"),
    [
        ({"children": translated(route()).objects}, "Translated", "made: HTTPRoute chat"),
        ({}, "Translated", "there is no rule to translate"),
        ({"notes": [NOTE]}, "Partially", "spec.rateLimit: nothing is limited"),
        (
            {"notes": [NOTE], "foreign": TAKEN, "refused": "HTTPRoute chat: no"},
            "ObjectExists",
            "HTTPRoute chat does not belong to this route and is not changed: delete it, or rename the"
            " route; HTTPRoute chat: no; spec.rateLimit: nothing is limited",
        ),
        ({"refused": "HTTPRoute chat: no"}, "RequestRefused", "HTTPRoute chat: no"),
    ],
)
def test_the_most_severe_problem_gives_the_reason_and_the_message_contains_all(
    result: dict[str, Any], reason: str, text: str
) -> None:
    """A condition has only one reason."""
    holds, why, said = translation_finding(**result)

    assert (str(why), said) == (reason, text)
    assert holds == (reason == "Translated")


def test_every_reason_is_documented() -> None:
    """The table is in docs/gateways.md."""
    page = (SAMPLES.parents[1] / "docs" / "gateways.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `Translated`"))

    explained = row.split("|")[2]
    assert [reason for reason in GatewayReason if f"`{reason}`" not in explained] == []
