"""Thousands of VariantAutoscalings, drawn from seeds by the declarations, valid or malformed.

Hypothesis builds such an object in 13 ms, this module in less than one. A failing law prints the seed, and
`python -c "from variants import *; print(valid(SEED, SPOKE))"` shows the object again.
"""

from __future__ import annotations

import copy
import re
from random import Random

from apiserver.kinds.llmd import v1alpha1, v1alpha2
from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node, node_of

LEGACY = frozenset(v1alpha1.LEGACY_FIELDS)
SHAPES = {
    "modelProfile": (frozenset({"modelProfile"}), LEGACY - {"sloClassRef"}),
    "legacy": (LEGACY, frozenset({"modelProfile"})),
    "current": (frozenset({"scaleTargetRef"}), (LEGACY | {"modelProfile"}) - {"sloClassRef"}),
    "bare": (frozenset(), (LEGACY | {"modelProfile", "scaleTargetRef"}) - {"sloClassRef"}),
}
"""The present and absent fields of each shape of v1alpha1."""

_ROOTS = {SPOKE: node_of(v1alpha1.VariantAutoscaling), HUB: node_of(v1alpha2.VariantAutoscaling)}
_LARGEST = 2**63 - 1
_LETTERS = "aZ0-./_: é漢\u0000\n\"\\'🦙\u2028"
_NUMBERS = ("0", "1", "10.50", "20.580", "0.10", "1e-3", "00.00", "7" * 64)
_BY_PATTERN = {
    r"^\d+(\.\d+)?$": ("10.50", "10.0", "0", "00.10", "9" * 32),
    r"^.+-[A-Za-z0-9]+-[1-9][0-9]*$": ("m-A100-4", "é 漢-H100-1", "a" * 795 + "-B-99"),
    r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$": ("A", "MetricsFound", "R" * 1024),
}
_BY_NAME = {
    "name": ("a", "llama-8b", "my.name", "n" * 253),
    "key": ("premium.yaml", "opt-125m", "k" * 253),
    "kind": ("Deployment", "LeaderWorkerSet"),
    "apiVersion": ("apps/v1", "v1", "leaderworkerset.x-k8s.io/v1"),
}
"""Values for fields that name objects, in the format that the cluster requires."""

_TYPES = ("MetricsAvailable", "OptimizationReady", "x.example.com/Y", "Z")
_NAMES = ("alpha", "beta", "gamma", "delta", "", "Größe", "with.dot", "k" * 40)
_ODD: tuple[JsonValue, ...] = (
    *(None, True, False, 0, 1, -1, 2**53, 1.5, "", "7", "漢"),
    *([], {}, [None], [[]], {"": 0}, [{"acc": 1}]),
)
_OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "ms-decode", "controller": True, "uid": "u"}


def valid(seed: int, api_version: str) -> Json:
    """Return a valid object in a version; the seed determines everything else."""
    random = Random(seed)
    drawn = random.choice(list(SHAPES.values())) if api_version == SPOKE else (frozenset(), frozenset())
    body = {}
    for prop in _ROOTS[api_version].properties:
        if prop.name == "spec":
            body["spec"] = _object(random, prop.node, *drawn)
        elif random.random() < 0.7:
            body[prop.name] = _object(random, prop.node)
    return _head(random, api_version) | {"metadata": _metadata(random)} | body


def odd(seed: int, api_version: str) -> Json:
    """Return a malformed object: fields of all shapes, of any type, and undeclared ones."""
    random = Random(seed)
    value = valid(seed, random.choice([SPOKE, HUB]))
    for _ in range(random.randint(1, 6)):
        _damage(random, value)
    value["kind"] = "VariantAutoscaling"
    return value | {"apiVersion": api_version}


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


def _damage(random: Random, value: Json) -> None:
    holder = value
    while True:
        inner = [item for item in holder.values() if isinstance(item, dict) and item]
        if not inner or random.random() < 0.3:
            break
        holder = random.choice(inner)
    name = random.choice([*holder, *LEGACY, "scaleTargetRef", "modelProfile", "spec", "status", "unheard-of"])
    match random.randrange(3):
        case 0:
            holder.pop(name, None)
        case 1:
            holder[name] = copy.deepcopy(random.choice(_ODD))
        case _:
            holder[name] = _object(random, _ROOTS[SPOKE].properties[0].node)


def _head(random: Random, api_version: str) -> Json:
    head = {"apiVersion": api_version, "kind": "VariantAutoscaling"}
    return head if random.random() < 0.9 else dict(reversed(head.items()))


def _metadata(random: Random) -> Json:
    metadata: Json = {"name": random.choice(["a", "llama-8b"]), "uid": "7", "resourceVersion": "12"}
    parts: Json = {
        "labels": {ACCELERATOR_LABEL: random.choice(["A100", "H100", "é"]), "x": _text(random, 0, 63)},
        "annotations": {random.choice(["x", "y", "z"]): _text(random, 0, 2000)},
        "ownerReferences": [_OWNER],
        "finalizers": ["f", "a"],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {".": {}}}}],
    }
    return metadata | {name: item for name, item in parts.items() if random.random() < 0.4}


def _value(random: Random, node: Node) -> JsonValue:
    if node.properties:
        return _object(random, node)
    if node.values is not None:
        names = random.sample(_NAMES, random.randint(1, 4))
        return {name: random.choice(_NUMBERS) for name in names}
    if node.items is not None:
        return _list(random, node, node.items)
    return _scalar(random, node)


def _object(
    random: Random, node: Node, always: frozenset[str] = frozenset(), never: frozenset[str] = frozenset()
) -> Json:
    chosen = [
        prop
        for prop in node.properties
        if prop.is_required or prop.name in always or (prop.name not in never and random.random() < 0.5)
    ]
    random.shuffle(chosen)
    return {
        prop.name: random.choice(_BY_NAME[prop.name]) if prop.name in _BY_NAME else _value(random, prop.node)
        for prop in chosen
    }


def _list(random: Random, node: Node, items: Node) -> list[JsonValue]:
    found = [_value(random, items) for _ in range(random.randint(node.keywords.get("minItems", 0), 3))]
    if "x-kubernetes-list-map-keys" in node.keywords:
        for item, name in zip(found, random.sample(_TYPES, len(found)), strict=True):
            item["type"] = name
    return found


def _scalar(random: Random, node: Node) -> JsonValue:
    words = node.keywords
    if "enum" in words:
        return random.choice(words["enum"])
    if words.get("format") == "date-time":
        return f"2026-0{random.randint(1, 9)}-11T10:0{random.randint(0, 9)}:00Z"
    if "pattern" in words:
        return random.choice(_BY_PATTERN.get(words["pattern"], _TYPES))
    if node.type == "integer":
        least = words.get("minimum", 0)
        return random.choice([least, least + 1, 8, words.get("maximum", _LARGEST)])
    if node.type == "boolean":
        return random.random() < 0.5
    return _text(random, words.get("minLength", 0), words.get("maxLength", 40))


def _text(random: Random, least: int, most: int) -> str:
    if most == 253 and random.random() < 0.5:  # an accelerator, mostly one that a label can name
        return random.choice(["A100", "H100", "L40S", "NVIDIA-A100-PCIE-80GB"])
    length = random.choice([least, most]) if random.random() < 0.1 else random.randint(least, min(most, 12))
    if length > 64:
        return (random.choice(_LETTERS) * length)[:length]
    return "".join(random.choices(_LETTERS, k=length))


assert all(re.search(pattern, text) for pattern, texts in _BY_PATTERN.items() for text in texts)
