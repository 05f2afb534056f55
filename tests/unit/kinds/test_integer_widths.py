"""Integers are as wide as clients of the releases hold them: one that is wider spoils their whole list."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apiserver.kinds.registry import KINDS
from apiserver.schema.json import Json
from apiserver.schema.model import Node, node_of
from apiserver.schema.structural import crd_manifest
from apiserver.schema.validation import judge

INT32 = range(-(2**31), 2**31)
UINT32 = range(2**32)
WIDE = {
    "spec.priority",
    "status.observedGeneration",
    "status.conditions[].observedGeneration",
}
"""What is held in 64 bits."""

UNSIGNED = {
    "spec.rateLimit.inputTokensPerUnit",
    "spec.rateLimit.outputTokensPerUnit",
    "spec.rules[].targetModels[].weight",
}
"""What is held in 32 bits without a sign."""

KTHENA = [kind for kind in KINDS if "volcano" in kind.group]


def integers(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield every integer of a tree by its path."""
    if node.type == "integer":
        yield path, node
    for prop in node.properties:
        yield from integers(prop.node, f"{path}.{prop.name}".lstrip("."))
    if node.items is not None:
        yield from integers(node.items, f"{path}[]")
    if node.values is not None:
        yield from integers(node.values, f"{path}{{}}")


NARROW = {
    f"{kind.kind} {path}": (node, UINT32 if path in UNSIGNED else INT32)
    for kind in KTHENA
    for version in kind.versions
    for path, node in integers(node_of(version.declaration))
    if path not in WIDE
}


@pytest.mark.parametrize(("node", "width"), NARROW.values(), ids=NARROW.keys())
def test_an_integer_of_32_bits_is_bounded(node: Node, width: range) -> None:
    """By its own bounds, which older servers know too, and by no narrower format than it has."""
    assert node.keywords["minimum"] in width
    assert node.keywords["maximum"] in width
    assert node.keywords["format"] == ("int64" if width == UINT32 else "int32")


def test_tokens_may_take_all_of_their_width() -> None:
    """A month's worth of them is beyond 31 bits."""
    route = next(kind for kind in KTHENA if kind.kind == "ModelRoute")
    limit = crd_manifest(route)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in ("spec", "rateLimit", "inputTokensPerUnit"):
        limit = limit["properties"][part]

    assert (limit["minimum"], limit["maximum"]) == (1, 2**32 - 1)


REFUSED: dict[str, tuple[str, Json, str]] = {
    "a retry": (
        "ModelServer",
        {
            "inferenceEngine": "vLLM",
            "workloadSelector": {"matchLabels": {"a": "b"}},
            "trafficPolicy": {"retry": {"attempts": 2**31}},
        },
        "spec.trafficPolicy.retry.attempts: Invalid value: 2147483648: must be less than or equal to"
        " 2147483647",
    ),
    "tokens": (
        "ModelRoute",
        {"modelName": "m", "rules": [], "rateLimit": {"unit": "month", "outputTokensPerUnit": 2**32}},
        "spec.rateLimit.outputTokensPerUnit: Invalid value: 4294967296: must be less than or equal to"
        " 4294967295",
    ),
    "instances": (
        "AutoscalingPolicy",
        {
            "metrics": [{"metricName": "m", "targetValue": "1"}],
            "behavior": {"scaleDown": {"instances": 2**40}},
        },
        "spec.behavior.scaleDown.instances: Invalid value: 1099511627776: must be less than or equal to"
        " 2147483647",
    ),
}


@pytest.mark.parametrize(("kind", "spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_typed_client_could_read_is_refused(kind: str, spec: Json, want: str) -> None:
    """At its field, with the bound."""
    version = next(item for item in KTHENA if item.kind == kind).versions[0]

    found = judge(version.declaration).validate({"metadata": {"name": "a"}, "spec": spec})

    assert [str(error) for error in found] == [want]
