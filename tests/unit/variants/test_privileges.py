"""Checks of privileges: cached results, their lifetime, and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, Invalid, Unavailable
from apiserver.kinds.privileges import OWN_COST, class_privilege
from apiserver.schema.json import Json
from controller.observe.policies import Grants, PrivilegeQuestion
from controller.variants.privileges import ALLOWED_SECONDS, KEPT_SECONDS, REFUSED_SECONDS, Privileges

ANN = PrivilegeQuestion(
    record='{"groups":["devs"],"username":"ann"}', privilege=class_privilege("classes", "premium")
)
BOB = PrivilegeQuestion(record='{"username":"bob"}', privilege=OWN_COST)
BOTH = frozenset({ANN, BOB})


@dataclass
class Server:
    """Allows everything for Ann, and nothing for Bob."""

    seconds: float = 1000.0
    fault: ClusterError | None = None
    asked: list[Json] = field(default_factory=list)

    async def create(self, _resource: object, body: Json, **_options: object) -> Json:
        """Record and answer a SubjectAccessReview."""
        self.asked.append(body["spec"])
        if self.fault:
            raise self.fault
        return {"status": {"allowed": body["spec"]["user"] == "ann"}}

    def privileges(self) -> Privileges:
        """Return privileges that are checked by this server."""
        cluster = cast("Cluster", self)
        return Privileges(cluster, namespace="stowplan-system", seconds=lambda: self.seconds)

    def users(self) -> list[str]:
        """Return the users that were checked since the last call."""
        users, self.asked = sorted(item["user"] for item in self.asked), []
        return users


async def test_a_privilege_is_checked_in_the_namespace_of_the_service_classes() -> None:
    """The check has the verb `use` on our resource, with the user and the groups of the record."""
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


async def test_results_are_cached_for_a_limited_time() -> None:
    """A denial is cached for a shorter time, so that a granted permission has an effect soon."""
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


async def test_without_a_new_result_the_last_one_counts_for_minutes() -> None:
    """After that there is an error, as if there never was a result."""
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


async def test_without_permission_to_check_there_is_an_error() -> None:
    """Denying everybody a class at once would remove their replicas, too."""
    with pytest.raises(Forbidden):
        await Server(fault=Forbidden("not allowed")).privileges().grants(BOTH)


async def test_an_invalid_user_in_a_record_has_no_privileges() -> None:
    """One object from before the webhooks must not prevent the plan for all."""
    assert (await Server(fault=Invalid("no such user")).privileges().grants(BOTH)).allowed == frozenset()
