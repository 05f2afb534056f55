"""Questions about privileges: shared, asked again after a while, and never guessed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, Invalid, Unavailable
from apiserver.kinds.privileges import OWN_COST, class_privilege
from apiserver.schema.json import Json
from controller.observe.grants import Grants, Question
from controller.reconcilers.privileges import (
    ALLOWED_SECONDS,
    KEPT_SECONDS,
    REFUSED_SECONDS,
    Privileges,
)

ANN = Question(record='{"groups":["devs"],"username":"ann"}', privilege=class_privilege("classes", "premium"))
BOB = Question(record='{"username":"bob"}', privilege=OWN_COST)
BOTH = frozenset({ANN, BOB})


@dataclass
class Server:
    """Lets Ann do everything, and Bob nothing."""

    seconds: float = 1000.0
    fault: ClusterError | None = None
    asked: list[Json] = field(default_factory=list)

    async def create(self, _resource: object, body: Json, **_options: object) -> Json:
        """Answer a SubjectAccessReview."""
        self.asked.append(body["spec"])
        if self.fault:
            raise self.fault
        return {"status": {"allowed": body["spec"]["user"] == "ann"}}

    def privileges(self) -> Privileges:
        """Return what asks this server."""
        cluster = cast("Cluster", self)
        return Privileges(cluster, namespace="stowplan-system", seconds=lambda: self.seconds)

    def users(self) -> list[str]:
        """Return who was asked about since the last call."""
        users, self.asked = sorted(item["user"] for item in self.asked), []
        return users


async def test_the_right_is_looked_for_where_classes_are_kept() -> None:
    """The verb `use` on a resource of ours, for the user and the groups of the record."""
    server = Server()

    found = await server.privileges().grants(frozenset({ANN}))

    assert found == Grants(allowed=frozenset({ANN}), namespace="stowplan-system")
    (asked,) = server.asked
    assert (asked["user"], asked["groups"]) == ("ann", ["devs"])
    assert asked["resourceAttributes"] == {
        "namespace": "stowplan-system",
        "verb": "use",
        "group": "stowplan.dev",
        "resource": "serviceclasses",
        "subresource": "",
        "name": "classes/premium",
    }


async def test_answers_are_kept_for_a_while() -> None:
    """A no for less long: who waits for a right has it soon."""
    server = Server()
    privileges = server.privileges()
    await privileges.grants(BOTH)
    assert server.users() == ["ann", "bob"]

    for seconds, want in ((1.0, []), (REFUSED_SECONDS, ["bob"]), (ALLOWED_SECONDS, ["ann", "bob"])):
        server.seconds += seconds
        assert (await privileges.grants(BOTH)).allowed == {ANN}
        assert server.users() == want

    await privileges.grants(frozenset())
    await privileges.grants(BOTH)
    assert server.users() == ["ann", "bob"], "what no object asks for any more is forgotten"


async def test_without_an_answer_the_last_one_counts_for_minutes() -> None:
    """Then nothing is decided, as when there never was one."""
    server = Server()
    privileges = server.privileges()
    await privileges.grants(BOTH)
    server.fault = Unavailable("no answer")

    server.seconds += KEPT_SECONDS - 1
    assert (await privileges.grants(BOTH)).allowed == {ANN}
    server.seconds += 1
    with pytest.raises(Unavailable):
        await privileges.grants(BOTH)
    with pytest.raises(Unavailable):
        await server.privileges().grants(BOTH)


async def test_without_the_right_to_ask_nothing_is_decided() -> None:
    """A class that is taken from everybody at once would take their replicas along."""
    with pytest.raises(Forbidden):
        await Server(fault=Forbidden("not allowed")).privileges().grants(BOTH)


async def test_a_record_that_no_server_takes_is_nobodys() -> None:
    """One object from before admission must not stop the plan of all."""
    assert (await Server(fault=Invalid("no such user")).privileges().grants(BOTH)).allowed == frozenset()
