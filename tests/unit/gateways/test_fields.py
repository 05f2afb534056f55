"""Every field of a ModelRoute and of its ModelServers has an effect behind Gateways, or a note says why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from support.routes import route, rule, server, translated

from apiserver.kinds.kthena.modelroute import ModelRouteSpec
from apiserver.kinds.kthena.modelserver import ModelServerSpec
from apiserver.schema.json import Json
from apiserver.schema.model import SchemaNode, node_of
from controller.gateways.translation import Translation

_GROUP: Final = {"groupKey": "group", "prefillLabels": {"role": "p"}, "decodeLabels": {"role": "d"}}
_ROLES: Final = {"matchLabels": {"app": "l4"}, "pdGroup": _GROUP}
_LIMIT: Final = {"inputTokensPerUnit": 1000}

Change = tuple[Translation, Translation]
"""The translations of a route without a field or with another value, and with the field."""


def of_rule(**members: Any) -> Change:
    """Return the translations without and with fields of a rule."""
    return translated(route()), translated(route(rule() | members))


def of_match(**match: Any) -> Change:
    """Return the translations without and with conditions of a rule."""
    return translated(route()), translated(route(rule(**match)))


def of_route(**members: Any) -> Change:
    """Return the translations without and with fields of a route."""
    return translated(route()), translated(route(**members))


def of_server(**members: Any) -> Change:
    """Return the translations without and with fields of a server."""
    return translated(route(), server()), translated(route(), server(**members))


def of_limit(**members: Any) -> Change:
    """Return the translations without and with a rate limit."""
    return translated(route()), translated(route(rateLimit=_LIMIT | members))


def of_group(**members: Any) -> Change:
    """Return the translations without and with the labels of roles."""
    return translated(route()), of_server(workloadSelector=_ROLES | {"pdGroup": _GROUP | members})[1]


def of_policy(**members: Any) -> Change:
    """Return the translations without and with a traffic policy."""
    return of_server(trafficPolicy=members)


CHANGES: Final[Mapping[str, Change]] = {
    "ModelRoute.modelName": of_route(modelName="other"),
    "ModelRoute.loraAdapters": of_route(loraAdapters=["law"]),
    "ModelRoute.rules.name": of_rule(name="default"),
    "ModelRoute.rules.modelMatch.headers.exact": of_match(headers={"x-tier": {"exact": "gold"}}),
    "ModelRoute.rules.modelMatch.headers.prefix": of_match(headers={"x-tier": {"prefix": "g"}}),
    "ModelRoute.rules.modelMatch.headers.regex": of_match(headers={"x-tier": {"regex": "^g"}}),
    "ModelRoute.rules.modelMatch.uri.exact": of_match(uri={"exact": "/v1/chat/completions"}),
    "ModelRoute.rules.modelMatch.uri.prefix": of_match(uri={"prefix": "/v1/"}),
    "ModelRoute.rules.modelMatch.uri.regex": of_match(uri={"regex": "^/v1"}),
    "ModelRoute.rules.modelMatch.body.model": (
        translated(route(loraAdapters=["law"])),
        translated(route(rule(body={"model": "law"}), loraAdapters=["law"])),
    ),
    "ModelRoute.rules.targetModels.modelServerName": (translated(route()), translated(route(rule("h100")))),
    "ModelRoute.rules.targetModels.weight": of_rule(targetModels=[{"modelServerName": "l4", "weight": 7}]),
    "ModelRoute.rateLimit.inputTokensPerUnit": of_limit(),
    "ModelRoute.rateLimit.outputTokensPerUnit": of_limit(outputTokensPerUnit=5),
    "ModelRoute.rateLimit.unit": of_limit(unit="hour"),
    "ModelRoute.rateLimit.global.redis.address": of_limit(**{"global": {"redis": {"address": "redis:6379"}}}),
    "ModelServer.model": of_server(model="Qwen/Qwen3-8B"),
    "ModelServer.inferenceEngine": of_server(inferenceEngine="SGLang"),
    "ModelServer.workloadSelector.matchLabels": of_server(workloadSelector={"matchLabels": {"app": "x"}}),
    "ModelServer.workloadSelector.pdGroup.groupKey": of_group(groupKey="other"),
    "ModelServer.workloadSelector.pdGroup.prefillLabels": of_group(prefillLabels={"role": "reads"}),
    "ModelServer.workloadSelector.pdGroup.decodeLabels": of_group(decodeLabels={"role": "writes"}),
    "ModelServer.workloadPort.port": of_server(workloadPort={"port": 30000}),
    "ModelServer.workloadPort.protocol": of_server(workloadPort={"port": 8000, "protocol": "https"}),
    "ModelServer.trafficPolicy.timeout": of_policy(timeout="90s"),
    "ModelServer.trafficPolicy.retry.attempts": of_policy(retry={"attempts": 2}),
    "ModelServer.trafficPolicy.retry.retryInterval": (
        of_policy(retry={"attempts": 2})[1],
        of_policy(retry={"attempts": 2, "retryInterval": "1s"})[1],
    ),
    "ModelServer.kvConnector.type": (
        of_group()[1],
        of_server(workloadSelector=_ROLES, kvConnector={"type": "nixl"})[1],
    ),
}


def fields(node: SchemaNode, path: str) -> Iterator[str]:
    """Yield the paths of all fields below a node."""
    for prop in node.properties:
        inner = prop.node.items or prop.node.values or prop.node
        here = f"{path}.{prop.name}"
        if inner.properties:
            yield from fields(inner, here)
        else:
            yield here


def test_each_field_has_a_case() -> None:
    """A new field of one of the kinds needs an entry in the table above."""
    declared = {"ModelRoute": ModelRouteSpec, "ModelServer": ModelServerSpec}
    expected = {path for kind, spec in declared.items() for path in fields(node_of(spec), kind)}

    assert set(CHANGES) == expected


@pytest.mark.parametrize("field", CHANGES)
def test_the_field_has_an_effect_or_a_note(field: str) -> None:
    """The objects differ with it, or a note names it or a field that contains it."""
    before, after = CHANGES[field]
    path = f"spec.{field.partition('.')[2]}"

    assert before.objects != after.objects or before.pools != after.pools or _names(after, path)


def _names(translation: Translation, path: str) -> bool:
    noted = [note.path.partition(": ")[2] or note.path for note in translation.notes]
    return any(f"{path}.".startswith(f"{item}.") for item in noted)


PATHS: Final[Mapping[str, Json]] = {
    "an adapter that no header can carry": {"loraAdapters": ["law", "é"]},
    "the name of a rule that a Gateway does not take": {"rules": [rule() | {"name": "Default rule"}]},
}


@pytest.mark.parametrize(
    ("members", "note"),
    [
        (
            PATHS["an adapter that no header can carry"],
            "spec.loraAdapters[1]: cannot be the value of a header: no request for it comes here",
        ),
        (
            PATHS["the name of a rule that a Gateway does not take"],
            "spec.rules[0].name: the rule of the HTTPRoute has no name: it takes others",
        ),
    ],
    ids=list(PATHS),
)
def test_a_field_that_cannot_be_translated_causes_a_note(members: Json, note: str) -> None:
    """The note has the path of the field; the rest is translated."""
    found = translated(route(**members))

    assert [str(item) for item in found.notes] == [note]
    assert found.objects
