"""Laws of migration, on generated objects: there and back, twice the same, and never a crash."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random

import pytest
from differential.generate import case, maker_of
from differential.generate import manifest as generated
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.manifests import autoscaler
from support.migrate_verb import migrated, target

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import KINDS, find_version
from apiserver.schema.json import Json, JsonValue, as_object
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import node_of
from apiserver.schema.shape import without_nulls
from controller.commands.migrate.migration import Side, migrate

KIND_OF = {(kind.group, kind.kind): kind for kind in KINDS}
VARIANT = KIND_OF["llmd.ai", "VariantAutoscaling"]
POLICY, BINDING, MODEL = (
    KIND_OF["registry.volcano.sh", kind]
    for kind in ("AutoscalingPolicy", "AutoscalingPolicyBinding", "Model")
)
ROUTING = [
    KIND_OF["networking.volcano.sh", "ModelRoute"],
    KIND_OF["networking.volcano.sh", "ModelServer"],
    KIND_OF["inference.networking.x-k8s.io", "InferenceObjective"],
]
ODD: list[JsonValue] = [None, True, -1, 0.5, "", "x", [], {}, [None], [[]], [{}], {"": None}, {"name": []}]


def latest(kind: Kind) -> Version:
    """Return the version of a kind that is stored."""
    return next(version for version in kind.versions if version.is_storage)


def valid(kind: Kind, seed: int) -> Json:
    """Return a valid object without status, unless the generator fails."""
    version = latest(kind)
    value = generated(kind, version, maker_of(version.declaration).valid(Random(seed)))
    value.pop("status", None)
    return value


def variants(seed: int) -> list[Json]:
    """Return a variant, and an autoscaler of its target."""
    value = valid(VARIANT, seed)
    assume("scaleTargetRef" in as_object(value.get("spec")))
    value["spec"]["scaleTargetRef"].setdefault("apiVersion", "apps/v1")
    scaler = autoscaler("judged", least=seed % 2)
    scaler["spec"]["scaleTargetRef"] = value["spec"]["scaleTargetRef"]
    if scaler["spec"]["minReplicas"] == 0:
        value["spec"]["minReplicas"] = 0
    return [value, scaler]


def policies(seed: int) -> list[Json]:
    """Return a policy and its binding, to ModelServings."""
    policy, binding = valid(POLICY, seed), valid(BINDING, seed)
    spec = as_object(binding.get("spec"))
    spec["policyRef"] = {"name": "judged"}
    params = as_object(spec.get("optimizerConfiguration")).get("params", [])
    for place, item in enumerate([*params, as_object(spec.get("scalingConfiguration"))]):
        scaled = as_object(item.get("target"))
        scaled["targetRef"] = target(f"serving-{place}")["targetRef"]
        if not scaled.get("additionalMatchLabels"):
            scaled.pop("additionalMatchLabels", None)
    return [policy, binding]


def models(seed: int) -> list[Json]:
    """Return a model, mostly with one backend of fixed replicas."""
    model = valid(MODEL, seed)
    spec = as_object(model.get("spec"))
    if seed % 4:
        spec.pop("autoscalingPolicy", None)
        spec.pop("costExpansionRatePercent", None)
        spec["backends"] = [dict(item) for item in spec["backends"][:1]]
        for item in spec["backends"]:
            lost = (
                "autoscalingPolicy",
                "scaleToZeroGracePeriod",
                "scalingCost",
                "loraAdapters",
                "routeWeight",
            )
            for name in lost:
                item.pop(name, None)
            item |= {"type": "vLLM", "minReplicas": 2, "maxReplicas": 2}
            item["workers"] = [item["workers"][0] | {"type": "server"}]
    return [model]


def routing(seed: int) -> list[Json]:
    """Return a route, a server or an objective."""
    return [valid(ROUTING[seed % 3], seed)]


FAMILIES = {"variants": variants, "policies": policies, "models": models, "routing": routing}


def complete(value: Json) -> Json:
    """Return an object with its defaults, and without costs that have no effect."""
    value = copy.deepcopy(value)
    if served := find_version(value["apiVersion"], value["kind"]):
        complete_and_judge(*served, value)
        value = without_nulls(node_of(served[1].declaration), value)
    for backend in as_object(value.get("spec")).get("backends", ()):
        backend.pop("scalingCost", None)
    return value


def ordered(values: list[Json]) -> list[Json]:
    """Return complete objects in the order of their kinds."""
    return sorted(map(complete, values), key=lambda value: str(value["kind"]))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_what_is_not_named_comes_back(family: Callable[[int], list[Json]]) -> None:
    """Whatever changes on the way to the released shape and back is named on one of them."""

    @settings(max_examples=often(60), deadline=None)
    @given(st.integers(0, 2**62))
    def law(seed: int) -> None:
        objects = family(seed)
        there, notes = migrated(*objects)
        assume(not notes)
        assert there != objects
        back, notes = migrated(*there, to="stowplan")
        assume(not notes)
        assert ordered(back) == ordered(objects)

    law()


@pytest.mark.parametrize("side", Side)
@given(st.sampled_from(KINDS), st.integers(0, 2**62))
@settings(max_examples=often(60), deadline=None)
def test_migrating_twice_changes_nothing_more(side: Side, kind: Kind, seed: int) -> None:
    """Neither for valid objects nor for others; those that are left as they are remain so."""
    values = [*family(seed)] if (family := FAMILIES.get(kind.plural)) else [read_case(kind, seed)]
    once, _ = migrated(*values, *migrated(*values)[0], to=side)
    assert migrated(*once, to=side)[0] == once


def read_case(kind: Kind, seed: int) -> Json:
    """Return an object that is valid in half of the cases."""
    version = kind.versions[seed % len(kind.versions)]
    value: Json = json.loads(case(kind, version, seed % 10_000).body)
    return value


def broken(value: Json, random: Random) -> None:
    """Replace a part of an object at random by something odd."""
    container, key = random.choice(list(_places(value)))
    container[key] = copy.deepcopy(random.choice(ODD))


def _places(value: JsonValue) -> Iterator[tuple[JsonValue, JsonValue]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from _places(item)


@given(st.sampled_from([*FAMILIES.values()]), st.integers(0, 2**62))
@settings(max_examples=often(150), deadline=None)
def test_broken_objects_of_both_shapes_never_crash(family: Callable[[int], list[Json]], seed: int) -> None:
    """Each of them becomes something, or stays, and none is removed without a trace."""
    random = Random(seed)
    ours = family(seed)
    values = copy.deepcopy([*ours, *migrated(*ours)[0]])
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(values))
        kind = values[place]["kind"]
        broken(values[place], random)
        values[place]["kind"] = kind
    for side in Side:
        results = migrate(values, side)
        gone = [place for place, result in results.items() if not result.objects]
        assert all(values[place]["kind"] in {"VariantAutoscaling", BINDING.kind} for place in gone)
        assert len(gone) < len(values)
