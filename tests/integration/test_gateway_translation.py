"""Translations of ModelRoutes to the Gateway API, validated by the real CRDs."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest
from differential.generate import maker_of
from support.campaign import often
from support.routes import GATEWAY, NETWORKING, route, rule, server

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import find_version
from controller.gateways.inputs import installed_of, reduce_definition
from controller.gateways.translation import translate
from controller.models.gateways import RESOURCES
from hack.controlplane.foreign import Definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.manifests import Manifest

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

MADE = {resource.kind: resource for resource in RESOURCES}
OBJECTS = often(25)
SERVED = 0.8
"""The share of targets whose ModelServer exists."""


@pytest.fixture(scope="module", autouse=True)
def _defined(control_plane: ControlPlane, installation: Installation) -> None:
    """Install the kinds that routes are translated to; Stowplan installs InferenceObjectives itself."""
    definitions = (Definition.HTTP_ROUTES, Definition.INFERENCE_POOLS, Definition.MODEL_REWRITES)
    control_plane.define(*definitions)


@pytest.mark.parametrize("definition", [Definition.HTTP_ROUTES, Definition.EXPERIMENTAL_HTTP_ROUTES])
def test_the_translation_of_a_valid_route_is_accepted(
    control_plane: ControlPlane, namespace: str, definition: Definition
) -> None:
    """The real CRDs accept it, with their CEL rules and strict field validation."""
    control_plane.define(definition)
    found = json.loads(control_plane.kubectl("get", "crd", "--output=json").stdout)["items"]
    installed = installed_of(map(reduce_definition, found))
    assert ("retry" in installed.rule_fields) == (definition is Definition.EXPERIMENTAL_HTTP_ROUTES)
    random = Random(definition.name)

    with control_plane.client() as administrator:
        for _ in range(OBJECTS):
            value, servers = _drawn(random)
            translation = translate(value, servers, [GATEWAY], installed)
            for made in (*translation.pools.values(), *translation.objects):
                path = MADE[made["kind"]].path(namespace)
                administrator.call("POST", f"{path}?dryRun=All&fieldValidation=Strict", made)
    control_plane.define(Definition.HTTP_ROUTES)


def _drawn(random: Random) -> tuple[Manifest, Mapping[str, Manifest]]:
    """Return a random valid route, and ModelServers for some of its targets."""
    value = _made("ModelRoute", "chat", random)
    names = {target["modelServerName"] for item in value["spec"]["rules"] for target in item["targetModels"]}
    return value, {name: _made("ModelServer", name, random) for name in names if random.random() < SERVED}


def _made(kind: str, name: str, random: Random) -> Manifest:
    found = find_version(NETWORKING, kind)
    assert found is not None
    while True:
        value = maker_of(found[1].declaration).valid(random)
        value |= {"apiVersion": NETWORKING, "kind": kind, "metadata": {"name": name}}
        if not complete_and_judge(*found, value).errors:
            return value


def test_the_rules_of_an_ordered_route_are_accepted_by_the_real_crd(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The route has as many combinations of matches and adapters as an HTTPRoute can contain."""
    matches = [{"headers": {f"x-{number}": {"exact": "a"} for number in range(count)}} for count in range(6)]
    value = route(*(rule(**match) for match in matches), loraAdapters=["law", "tax"])
    translation = translate(value, {"l4": server()}, [GATEWAY], installed_of([]))

    with control_plane.client() as administrator:
        for made in translation.objects:
            path = MADE[made["kind"]].path(namespace)
            administrator.call("POST", f"{path}?dryRun=All&fieldValidation=Strict", made)
