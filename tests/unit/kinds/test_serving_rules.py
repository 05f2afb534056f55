"""ModelRoute and ModelServer of Kthena's releases: what differs from those of networking.volcano.sh."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.kinds.judgement import complete_and_judge, errors_of
from apiserver.kinds.kthena.routing import (
    MODEL_ROUTE,
    MODEL_SERVER,
    SERVING_MODEL_ROUTE,
    SERVING_MODEL_SERVER,
    route_advice,
)
from apiserver.kinds.registry import DEFINED, FAMILIES, find_version
from apiserver.schema.json import Json
from apiserver.schema.model import node_of
from webhooks.registration import registrations

SERVING = "networking.serving.volcano.sh/v1alpha1"
SERVER = {"modelServerName": "llama"}
PROVIDER = {"externalModelProviderName": "elsewhere"}
GATEWAY = {"name": "inference"}


def route(*targets: Json, api_version: str = SERVING, **spec: Any) -> Json:
    """Return a ModelRoute whose one rule has some targets."""
    return {
        "apiVersion": api_version,
        "kind": "ModelRoute",
        "metadata": {"name": "chat", "namespace": "chat"},
        "spec": {"modelName": "llama", "rules": [{"targetModels": list(targets or (SERVER,))}], **spec},
    }


def errors(value: Json) -> list[str]:
    """Return the errors of an object as text."""
    found = find_version(value["apiVersion"], value["kind"])
    assert found is not None
    return [str(error) for error in errors_of(*found, value)]


TARGET = "spec.rules[0].targetModels[0]"
PARENT = "spec.parentRefs[0]"
REFUSED = {
    "a target without a name": (
        route({"weight": 1}),
        [
            f"{TARGET}.modelServerName: Required value: exactly one of `modelServerName` and"
            " `externalModelProviderName` must be set"
        ],
    ),
    "a target with two names": (
        route(SERVER | PROVIDER),
        [f"{TARGET}.externalModelProviderName: Forbidden: may not be set together with `modelServerName`"],
    ),
    "a provider that cannot exist": (
        route({"externalModelProviderName": "a/b"}),
        [
            f'{TARGET}.externalModelProviderName: Invalid value: "a/b": must be lower-case letters, digits,'
            " dashes and dots, such as my-name or my.name"
        ],
    ),
    "more tokens than 32 bits hold": (
        route(rateLimit={"inputTokensPerUnit": 2**31}),
        [
            "spec.rateLimit.inputTokensPerUnit: Invalid value: 2147483648: must be less than or equal to"
            " 2147483647"
        ],
    ),
    "a Gateway without a name": (route(parentRefs=[{}]), [f"{PARENT}.name: Required value"]),
    "a listener and a port that cannot exist": (
        route(parentRefs=[GATEWAY | {"port": 0, "sectionName": "a/b"}]),
        [
            f'{PARENT}.sectionName: Invalid value: "a/b": must be lower-case letters, digits, dashes and'
            " dots, such as my-name or my.name",
            f"{PARENT}.port: Invalid value: 0: must be greater than or equal to 1",
        ],
    ),
    "too many Gateways": (
        route(parentRefs=[GATEWAY] * 33),
        ["spec.parentRefs: Too many: 33: must have at most 32 items"],
    ),
}


@pytest.mark.parametrize(("value", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_wrong_values_of_the_added_fields_are_rejected(value: Json, want: list[str]) -> None:
    """Every error is reported, with the path of its field."""
    assert errors(value) == want


ACCEPTED = {
    "a server": route(),
    "a provider": route(PROVIDER),
    "a server beside a provider": route(SERVER, PROVIDER),
    "a Gateway": route(parentRefs=[GATEWAY]),
    "a listener of a Gateway elsewhere": route(
        parentRefs=[GATEWAY | {"namespace": "infra", "sectionName": "https", "port": 443, "group": ""}]
    ),
}


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_the_added_fields_are_accepted_in_the_group_of_the_releases_only(value: Json) -> None:
    """Admission would keep them in the other group, but the API server drops what the definition lacks."""
    assert errors(value) == []
    node = node_of(MODEL_ROUTE.storage_version.declaration).property("spec")
    assert node is not None
    assert node.node.property("parentRefs") is None


def test_defaults_are_those_of_both_groups_and_of_the_gateway_api() -> None:
    """They are filled in before validation, as in the definitions of the releases."""
    found = find_version(SERVING, "ModelRoute")
    assert found is not None
    judged = complete_and_judge(*found, value := route(parentRefs=[GATEWAY]))

    assert judged.errors == []
    assert value["spec"]["rules"][0]["targetModels"] == [SERVER | {"weight": 100}]
    gateway = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}
    assert value["spec"]["parentRefs"] == [GATEWAY | gateway]


def test_a_backend_that_is_named_twice_causes_a_warning() -> None:
    """This holds for servers and providers."""
    value = route(PROVIDER, SERVER, PROVIDER)

    said = "spec.rules[0].targetModels[2]: the same target as targetModels[0]"
    assert route_advice(value) == [said]


def test_a_route_refers_to_servers_of_its_own_group() -> None:
    """A provider is a kind that the webhooks do not watch."""
    for kind in (MODEL_ROUTE, SERVING_MODEL_ROUTE):
        [reference] = kind.storage_version.references(route(PROVIDER, SERVER))
        assert (reference.group, reference.kind, reference.name) == (kind.group, "ModelServer", "llama")


def test_no_field_of_the_other_group_is_lost() -> None:
    """Fields that both groups have are declared once."""
    for ours, theirs in ((MODEL_ROUTE, SERVING_MODEL_ROUTE), (MODEL_SERVER, SERVING_MODEL_SERVER)):
        specs = [node_of(kind.storage_version.declaration).property("spec") for kind in (ours, theirs)]
        names = [{prop.name: prop.description for prop in spec.node.properties} for spec in specs if spec]
        assert names[0].items() <= names[1].items()


def test_stowplan_owns_no_definition_of_the_releases() -> None:
    """Their kinds are admitted while the webhooks are down, and are neither upgraded nor removed."""
    family = next(item for item in FAMILIES if item.name == "kthena-serving")
    policies = [hook["failurePolicy"] for item in registrations(family) for hook in item["webhooks"]]

    assert not {*family.kinds} & {*DEFINED}
    assert policies == ["Ignore", "Ignore"]
