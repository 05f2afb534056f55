"""Translation of a route: model names, information for endpoint pickers, and missing definitions."""

from __future__ import annotations

import pytest
from support.models import backend, model, one
from support.routes import GATEWAY, http_rules, route, rule, said, server, translated

from apiserver.schema.json import Json
from controller.expansion.expansion import expand
from controller.gateways.inputs import (
    API_VERSIONS,
    HTTP_ROUTES,
    REWRITES,
    InstalledDefinitions,
    installed_of,
    reduce_definition,
)
from controller.gateways.parts import gateway_duration, pool_of
from controller.gateways.translation import Translation, translate


def of_kind(translation: Translation, kind: str) -> list[Json]:
    """Return the objects of a kind."""
    return [item for item in translation.objects if item["kind"] == kind]


def test_each_rule_matches_requests_for_all_names_of_the_route() -> None:
    """The match is on the header of body-based routing; a rule with a name in its body matches only that."""
    value = route(rule(body={"model": "law"}), rule(), loraAdapters=["law", "chat"])

    names = [
        [match["headers"][0]["value"] for match in item["matches"]] for item in http_rules(translated(value))
    ]
    assert names == [["law"], ["chat", "law"]]


@pytest.mark.parametrize(
    ("without", "weights"),
    [((), [100, 100]), (("l4",), [0, 100]), (("l4", "h100"), [100, 100])],
    ids=["both have endpoints", "one has none", "none has any"],
)
def test_a_pool_without_endpoints_gets_no_weight_while_another_has_some(
    without: tuple[str, ...], weights: list[int]
) -> None:
    """Its share of the requests would fail."""
    servers = {name: server(name) for name in ("l4", "h100")}

    made = translate(route(rule("l4", "h100")), servers, [GATEWAY], InstalledDefinitions(), without)

    assert [item["weight"] for item in http_rules(made)[0]["backendRefs"]] == weights


def test_a_route_with_many_names_is_divided_into_several() -> None:
    """An HTTPRoute has at most 128 matches, and sixteen rules for nine names need more."""
    rules = [rule(uri={"exact": f"/v1/{number}"}) for number in range(16)]
    made = of_kind(translated(route(*rules, loraAdapters=[f"a{n}" for n in range(8)])), "HTTPRoute")

    assert [item["metadata"]["name"] for item in made] == ["chat", "chat-2"]
    assert [sum(len(each["matches"]) for each in item["spec"]["rules"]) for item in made] == [128, 16]


def test_the_model_name_is_rewritten_to_that_of_the_server() -> None:
    """Requests for adapters are not changed."""
    value = route(rule("l4", "h100"), loraAdapters=["law"])
    found = translated(value, server("l4", model="Qwen/Qwen3-8B"), server("h100", model="chat"))

    (made,) = of_kind(found, "InferenceModelRewrite")
    assert made["spec"]["poolRef"]["name"] == "l4"
    assert made["spec"]["rules"] == [
        {
            "matches": [{"model": {"type": "Exact", "value": "chat"}}],
            "targets": [{"modelRewrite": "Qwen/Qwen3-8B"}],
        }
    ]


def test_the_engine_type_is_a_label_of_pods_and_not_of_the_pool() -> None:
    """Pods of a Model have the label; for others a note asks to set it."""
    label = "inference.networking.k8s.io/engine-type"
    objects = expand(model(backend(type="SGLang"))).objects
    server = one(objects, "ModelServer")

    assert one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"][label] == "sglang"
    assert pool_of(server)[1] == []
    del server["metadata"]["labels"][label]
    assert [note.path for note in pool_of(server)[1]] == ["spec.inferenceEngine"]


def test_a_priority_is_translated_to_an_objective_of_each_pool() -> None:
    """With more than one pool, a request cannot know which objective to name, which causes a note."""
    annotations = {"stowplan.dev/request-priority": "-5"}
    one = translated(route(annotations=annotations))
    two = translated(route(rule("l4", "h100"), annotations=annotations), server("l4"), server("h100"))

    assert [item["spec"]["priority"] for item in of_kind(one, "InferenceObjective")] == [-5]
    assert said(one) == []
    assert [item["metadata"]["name"] for item in of_kind(two, "InferenceObjective")] == ["chat", "chat-2"]
    assert said(two) == [
        "metadata.annotations[stowplan.dev/request-priority]: a request names one objective in"
        " x-gateway-inference-objective, and each of the pools has another one"
    ]


def test_a_provider_gets_no_requests_from_a_gateway() -> None:
    """The other targets of its rule get them; a rule without others has no pool, so that they fail."""
    far = {"externalModelProviderName": "far", "weight": 100}
    value = route(rule("l4"))
    value["spec"]["rules"] = [
        {"targetModels": [far, {"modelServerName": "l4", "weight": 1}]},
        {"targetModels": [far, far], "modelMatch": {"uri": {"prefix": "/far/"}}},
    ]
    found = translated(value)

    assert [[reference["name"] for reference in made["backendRefs"]] for made in http_rules(found)] == [
        ["l4"],
        [],
    ]
    assert said(found) == [
        "spec.rules[0].targetModels: a Gateway sends no requests to an external provider: the ModelServers of"
        " the rule get them",
        "spec.rules[1].targetModels: a Gateway sends no requests to an external provider: all requests of the"
        " rule fail",
    ]


def test_a_rule_has_the_longest_timeout_and_the_most_attempts_of_its_targets() -> None:
    """A note names each server whose own value has no effect."""
    slow = server("slow", trafficPolicy={"timeout": "2m", "retry": {"attempts": 3}})
    fast = server("fast", trafficPolicy={"timeout": "1500ms"})
    found = translated(route(rule("slow", "fast")), slow, fast)

    (made,) = http_rules(found)
    assert made["timeouts"] == {"request": "2m"}
    assert made["retry"] == {"attempts": 3, "backoff": "100ms"}
    assert said(found) == [
        "ModelServer fast: spec.trafficPolicy.timeout: spec.rules[0] has one timeout for all of its targets:"
        " 2m",
        "ModelServer fast: spec.trafficPolicy.retry: spec.rules[0] has one retry for all of its targets:"
        " 3 attempts",
    ]


def test_a_missing_server_keeps_its_share_of_the_requests() -> None:
    """Its requests fail, and the other servers do not get more."""
    found = translated(route(rule("l4", "gone")))

    assert [item["name"] for item in http_rules(found)[0]["backendRefs"]] == ["l4", "gone"]
    assert said(found) == [
        "spec.rules[0].targetModels[1].modelServerName: there is no valid ModelServer gone: its requests fail"
        " until there is"
    ]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0s"), (1, "1ms"), (90_000, "1m30s"), (3_600_001, "1h1ms"), (604_800_000, "168h")],
)
def test_a_duration_has_the_format_of_the_gateway_api(milliseconds: int, text: str) -> None:
    """GEP-2257 allows at most four parts of at most five digits."""
    assert gateway_duration(milliseconds) == text


def _definition(name: str, fields: tuple[str, ...] = (), version: str = "") -> Json:
    group, _, written = API_VERSIONS[name].partition("/")
    rules: Json = {"items": {"properties": {field: {} for field in fields}}}
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": {"rules": rules}}}}}
    return {
        "metadata": {"name": name, "uid": "u", "resourceVersion": "1", "annotations": {}},
        "spec": {
            "group": group,
            "versions": [{"name": version or written, "served": True, "schema": schema}],
        },
    }


def test_fields_and_kinds_that_the_cluster_lacks_are_omitted() -> None:
    """The cluster has an older release, lacks definitions, or does not serve a version."""
    definitions = [
        _definition(HTTP_ROUTES, ("name", "matches", "timeouts")),
        _definition(REWRITES, version="v1alpha9"),
    ]
    found = installed_of(map(reduce_definition, definitions))

    assert found == InstalledDefinitions(
        definitions=frozenset({HTTP_ROUTES}), rule_fields=frozenset({"name", "timeouts"})
    )
    assert found.missing == ("inferencepools.inference.networking.k8s.io",)
    renamed = translated(route(), server(model="other"), installed=found)
    assert said(renamed) == [
        "ModelServer l4: spec.model: requests go on to say 'chat', not 'other':"
        " inferencemodelrewrites.inference.networking.x-k8s.io are not served by this cluster"
    ]
