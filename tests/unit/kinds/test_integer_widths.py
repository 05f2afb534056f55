"""Integer widths: a value that typed clients of the releases cannot decode would break their whole list."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apiserver.kinds.registry import DEFINED
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
"""The fields of 64 bits."""

UNSIGNED = {
    "spec.rateLimit.inputTokensPerUnit",
    "spec.rateLimit.outputTokensPerUnit",
    "spec.rules[].targetModels[].weight",
}
"""The unsigned fields of 32 bits."""

KTHENA = [kind for kind in DEFINED if "volcano" in kind.group]


def integers(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield every integer of a tree with its path."""
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
def test_an_integer_of_32_bits_has_bounds(node: Node, width: range) -> None:
    """Its bounds are explicit, which older servers support, too, and its format is wide enough."""
    assert node.keywords["minimum"] in width
    assert node.keywords["maximum"] in width
    assert node.keywords["format"] == ("int64" if width == UINT32 else "int32")


def test_limits_on_tokens_may_use_all_32_bits() -> None:
    """The tokens of a month can exceed 31 bits."""
    route = next(kind for kind in KTHENA if kind.kind == "ModelRoute")
    limit = crd_manifest(route)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in ("spec", "rateLimit", "inputTokensPerUnit"):
        limit = limit["properties"][part]

    assert (limit["minimum"], limit["maximum"]) == (1, 2**32 - 1)


REFUSED: dict[str, tuple[str, Json, str]] = {
    "the attempts of a retry": (
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
def test_an_integer_that_typed_clients_cannot_decode_is_rejected(kind: str, spec: Json, want: str) -> None:
    """The error is at the field, with the bound."""
    version = next(item for item in KTHENA if item.kind == kind).versions[0]

    found = judge(version.declaration).validate({"metadata": {"name": "a"}, "spec": spec})

    assert [str(error) for error in found] == [want]
