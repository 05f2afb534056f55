"""Rules, defaults and warnings of ModelServers, and of the kinds of Kthena's releases."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.kinds.judgement import complete_and_judge, errors_of
from apiserver.kinds.kthena.modelserver import ModelServer
from apiserver.kinds.kthena.routing import (
    MODEL_ROUTE,
    MODEL_SERVER,
    SERVING_MODEL_ROUTE,
    SERVING_MODEL_SERVER,
    route_advice,
    server_advice,
)
from apiserver.kinds.registry import DEFINED, FAMILIES, find_version
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json
from apiserver.schema.model import node_of
from apiserver.schema.validation import validate
from webhooks.registration import registrations

VERSION = MODEL_SERVER.storage_version
PORT = {"port": 8000}
GROUP = {"groupKey": "example.com/group", "prefillLabels": {"role": "p"}, "decodeLabels": {"role": "d"}}
LABELS_DIFFER = 'Invalid value: {"role":"p"}: must differ from `prefillLabels`'


def server(**spec: Any) -> Json:
    """Return a complete server spec with some members changed."""
    least = {"inferenceEngine": "vLLM", "workloadSelector": {"matchLabels": {"app": "a"}}}
    return {**least, "workloadPort": PORT, **spec}


def selecting(**selector: Any) -> Json:
    """Return a server spec with this selector."""
    return server(workloadSelector=selector)


def apart(**members: Any) -> Json:
    """Return a server spec with separate prefill and decode pods."""
    return selecting(matchLabels={"app": "a"}, pdGroup=GROUP | members)


def patience(**policy: Any) -> Json:
    """Return a server spec with a traffic policy."""
    return server(trafficPolicy=policy)


ACCEPTED: dict[str, Json] = {
    "the least": {"inferenceEngine": "SGLang", "workloadSelector": {"matchLabels": {"app": "a"}}},
    "a port": server(),
    "separate prefill and decode pods": apart(),
    "roles alone": selecting(pdGroup=GROUP),
    "roles beside empty labels": selecting(matchLabels={}, pdGroup=GROUP),
    "roles by different keys": apart(prefillLabels={"prefill": ""}, decodeLabels={"decode": ""}),
    "a connector without a type": server(kvConnector={}),
    "a model of 256 characters": server(model="m" * 256),
    "a timeout of zero": patience(timeout="0s"),
    "a timeout of a week": patience(timeout="168h"),
    "no retries": patience(retry={"attempts": 0}),
    "retries without a pause": patience(retry={"attempts": 3, "retryInterval": "0"}),
    "an empty policy": patience(),
}

REFUSED: dict[str, tuple[Json, list[str]]] = {
    "nothing": ({}, ["spec.inferenceEngine: Required value", "spec.workloadSelector: Required value"]),
    "an invalid label": (
        selecting(matchLabels={"app": "a b"}),
        [
            'spec.workloadSelector.matchLabels[app]: Invalid value: "a b": a valid label must be an empty'
            " string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
            " alphanumeric character"
        ],
    ),
    "an incomplete group": (
        selecting(pdGroup={"groupKey": "g"}),
        [
            "spec.workloadSelector.pdGroup.prefillLabels: Required value",
            "spec.workloadSelector.pdGroup.decodeLabels: Required value",
        ],
    ),
    "equal labels for both roles": (
        apart(decodeLabels={"role": "p"}),
        [f"spec.workloadSelector.pdGroup.decodeLabels: {LABELS_DIFFER}"],
    ),
    "a group key that is no label key": (
        apart(groupKey="a/b/c"),
        [
            'spec.workloadSelector.pdGroup.groupKey: Invalid value: "a/b/c": must be a label key such as app'
            " or example.com/team"
        ],
    ),
    "a port without a number": (server(workloadPort={}), ["spec.workloadPort.port: Required value"]),
    "a port above the maximum, and an unknown protocol": (
        server(workloadPort={"port": 65536, "protocol": "h2c"}),
        [
            "spec.workloadPort.port: Invalid value: 65536: must be less than or equal to 65535",
            'spec.workloadPort.protocol: Unsupported value: "h2c": supported values: "http", "https"',
        ],
    ),
    "a time without a unit": (
        patience(timeout="30"),
        [
            'spec.trafficPolicy.timeout: Invalid value: "30": must be a length of time such as 15s, 1m30s or'
            " 100ms"
        ],
    ),
    "a timeout above the maximum": (
        patience(timeout="169h"),
        ['spec.trafficPolicy.timeout: Invalid value: "169h": must be between 0s and 168h'],
    ),
    "negative attempts, and a long interval": (
        patience(retry={"attempts": -1, "retryInterval": "2h"}),
        [
            "spec.trafficPolicy.retry.attempts: Invalid value: -1: must be greater than or equal to 0",
            'spec.trafficPolicy.retry.retryInterval: Invalid value: "2h": must be between 0s and 1h',
        ],
    ),
    "an unknown connector": (
        server(kvConnector={"type": "tcp"}),
        [
            'spec.kvConnector.type: Unsupported value: "tcp": supported values: "http", "lmcache", "nixl",'
            ' "mooncake"'
        ],
    ),
    "a model of 257 characters": (
        server(model="m" * 257),
        ["spec.model: Too long: may not be more than 256 bytes"],
    ),
}

ADVICE: dict[str, tuple[Json, list[str]]] = {
    "a usual server": (server(), []),
    "usual roles": (apart(), []),
    "decode labels that include the prefill labels": (
        apart(decodeLabels={"role": "p", "more": ""}),
        [
            "spec.workloadSelector.pdGroup.decodeLabels: contain prefillLabels: a decode pod counts as a"
            " prefill pod, too"
        ],
    ),
    "prefill labels that include the decode labels": (
        apart(prefillLabels={"role": "d", "more": ""}),
        [
            "spec.workloadSelector.pdGroup.prefillLabels: contain decodeLabels: a prefill pod counts as a"
            " decode pod, too"
        ],
    ),
    "a role that contradicts matchLabels": (
        selecting(matchLabels={"role": "p"}, pdGroup=GROUP),
        [
            "spec.workloadSelector.pdGroup.decodeLabels: select no pod: matchLabels has another value for one"
            " of the keys"
        ],
    ),
    "no port": (
        {"inferenceEngine": "vLLM", "workloadSelector": {"matchLabels": {"app": "a"}}},
        ["spec.workloadPort: not set: a router does not know where the pods listen"],
    ),
    "a protocol that the router ignores": (
        server(workloadPort={"port": 1, "protocol": "https"}),
        ["spec.workloadPort.protocol: the router of Kthena uses http for the pods and ignores this field"],
    ),
    "a timeout of zero": (
        patience(timeout="0ms"),
        ["spec.trafficPolicy.timeout: 0ms means no timeout; omit the field instead"],
    ),
    "a timeout": (patience(timeout="1m"), []),
    "retries without attempts": (
        patience(retry={"retryInterval": "1s"}),
        ["spec.trafficPolicy.retry: nothing is retried without attempts"],
    ),
    "a connector without roles": (
        server(kvConnector={"type": "nixl"}),
        ["spec.kvConnector: has no effect without spec.workloadSelector.pdGroup"],
    ),
    "a connector between roles": (apart() | {"kvConnector": {"type": "nixl"}}, []),
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_server_is_accepted_with_and_without_its_defaults(spec: Json) -> None:
    """Everything that the reference page allows is valid."""
    assert validate(ModelServer, {"spec": spec}) == []
    assert validate(ModelServer, with_defaults(VERSION, {"spec": spec})) == []


@pytest.mark.parametrize(("spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(spec: Json, want: list[str]) -> None:
    """The list of errors is complete."""
    assert [str(error) for error in validate(ModelServer, {"spec": spec})] == want


@pytest.mark.parametrize(("spec", "want"), ADVICE.values(), ids=ADVICE.keys())
def test_probably_unintended_values_cause_warnings(spec: Json, want: list[str]) -> None:
    """They are valid; each warning has at most 120 characters."""
    assert validate(ModelServer, {"spec": spec}) == []
    found = server_advice({"spec": spec})
    assert found == want
    assert all(len(sentence) <= 120 for sentence in found)


def test_defaults_are_those_of_the_reference_page() -> None:
    """They are set in objects that exist; absent objects are not added."""
    spec = with_defaults(VERSION, {"spec": server(kvConnector={}, trafficPolicy={"retry": {}})})["spec"]

    assert spec["workloadPort"] == {"port": 8000, "protocol": "http"}
    assert spec["kvConnector"] == {"type": "http"}
    assert spec["trafficPolicy"] == {"retry": {"retryInterval": "100ms"}}
    assert with_defaults(VERSION, {"spec": ACCEPTED["the least"]}) == {"spec": ACCEPTED["the least"]}


def test_a_server_without_a_spec_is_rejected() -> None:
    """The spec has a required field."""
    assert [str(error) for error in validate(ModelServer, {})] == ["spec: Required value"]


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
REFUSED_ADDITIONS = {
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


@pytest.mark.parametrize(("value", "want"), REFUSED_ADDITIONS.values(), ids=REFUSED_ADDITIONS.keys())
def test_wrong_values_of_the_added_fields_are_rejected(value: Json, want: list[str]) -> None:
    """Every error is reported, with the path of its field."""
    assert errors(value) == want


ACCEPTED_ADDITIONS = {
    "a server": route(),
    "a provider": route(PROVIDER),
    "a server beside a provider": route(SERVER, PROVIDER),
    "a Gateway": route(parentRefs=[GATEWAY]),
    "a listener of a Gateway elsewhere": route(
        parentRefs=[GATEWAY | {"namespace": "infra", "sectionName": "https", "port": 443, "group": ""}]
    ),
}


@pytest.mark.parametrize("value", ACCEPTED_ADDITIONS.values(), ids=ACCEPTED_ADDITIONS.keys())
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
