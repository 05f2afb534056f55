"""VariantAutoscalings generated from seeds, valid or malformed, with metadata as in a cluster.

A failing law prints the seed, and `python -c "from support.variants import *; print(valid(SEED, SPOKE))"`
shows the object again.
"""

from __future__ import annotations

from random import Random

from differential import places
from differential.generate import maker_of
from differential.mutate import mutated

from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import node_of
from apiserver.schema.validation import validate

_DECLARED = {SPOKE: v1alpha1.VariantAutoscaling, HUB: v1alpha2.VariantAutoscaling}
_LETTERS = "aZ0-./_: é漢\u0000\n\"\\'🦙\u2028"
_ODD: tuple[JsonValue, ...] = (
    *(None, True, False, 0, 1, -1, 2**53, 1.5, "", "7", "漢"),
    *([], {}, [None], [[]], {"": 0}, [{"acc": 1}]),
)
_OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "ms-decode", "controller": True, "uid": "u"}


def valid(seed: int, api_version: str) -> Json:
    """Return a valid object in a version; the seed determines everything else."""
    random = Random(seed)
    declared = _DECLARED[api_version]
    body = maker_of(declared).valid(random)
    for place in [*places.each(node_of(declared), body)]:
        before, words = place.value, place.node.keywords
        if isinstance(before, dict):
            place.put(dict(random.sample([*before.items()], len(before))))
        elif isinstance(before, str) and random.random() < 0.2:
            place.put(_text(random, words.get("minLength", 0), words.get("maxLength", 40)))
            if validate(declared, {"metadata": {"name": "a"}} | body):
                place.put(before)
    head: Json = {"apiVersion": api_version, "kind": "VariantAutoscaling"}
    head = head if random.random() < 0.9 else dict(reversed(head.items()))
    target = body["spec"].get("scaleTargetRef", {"name": "llama-8b"})
    if random.random() < 0.7:
        target |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    return head | {"metadata": _metadata(random, target["name"])} | body


def odd(seed: int, api_version: str) -> Json:
    """Return a malformed object of either version, with fields of any type, missing and undeclared ones."""
    random = Random(seed)
    version = random.choice([SPOKE, HUB])
    value, declared = valid(seed, version), _DECLARED[version]
    for _ in range(random.randint(1, 6)):
        mutated(node_of(declared), value, random, fresh=maker_of(declared).fresh)
    if random.random() < 0.2:
        value["metadata"][random.choice(["name", "labels", "annotations"])] = random.choice(_ODD)
    return value | {"apiVersion": api_version, "kind": "VariantAutoscaling"}


def forged(seed: int, value: Json) -> JsonValue:
    """Return a value that a user could have written into our annotation of an object."""
    random = Random(seed)
    paths: list[list[JsonValue]] = [
        ["metadata", "name"], ["apiVersion"], ["kind"], ["spec"], ["status"], [], ["spec", "modelID"],
        ["spec", "modelProfile"], ["spec", "modelID", "x"], ["status", "decision"], ["", ""], [7],
        ["metadata", "annotations", ANNOTATION], ["spec"] * 500,
    ]  # fmt: skip
    field: Json = {"path": random.choice(paths)}
    for name in ("value", "derived"):
        if random.random() < 0.7:
            field[name] = random.choice([*_ODD, value.get("spec"), value.get("kind")])
    profile = {"accelerators": [random.choice(_ODD)]}
    sources: tuple[JsonValue, ...] = (
        {}, 7, [], {"modelProfile": profile, "position": 0}, {"modelProfile": 3, "position": True},
        {"modelProfile": {"accelerators": [{}]}, "position": 0}, {"position": -1, "x": None},
    )  # fmt: skip
    return {
        "fields": random.choice([[field] * random.randint(0, 3), None, {}]),
        "source": random.choice(sources),
    }


def _metadata(random: Random, target: str) -> Json:
    metadata: Json = {"name": random.choice(["a", target]), "uid": "7", "resourceVersion": "12"}
    parts: Json = {
        "labels": {ACCELERATOR_LABEL: random.choice(["A100", "H100", "é"]), "x": _text(random, 0, 63)},
        "annotations": {random.choice(["x", "y", "z"]): _text(random, 0, 2000)},
        "ownerReferences": [_OWNER],
        "finalizers": ["f", "a"],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {".": {}}}}],
    }
    return metadata | {name: item for name, item in parts.items() if random.random() < 0.4}


def _text(random: Random, least: int, most: int) -> str:
    length = random.choice([least, most]) if random.random() < 0.1 else random.randint(least, min(most, 12))
    return "".join(random.choices(_LETTERS, k=length))
