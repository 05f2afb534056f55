"""The known properties of a variant, read from its spec, then the label, then the status."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final

from apiserver.kinds.llmd.identity import implied_target, label_of
from apiserver.schema.json import Json, JsonValue, as_object

_DECIMAL: Final = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)
_MOST_CHARACTERS_SHOWN: Final = 60
_MOST_DIGITS: Final = 32
_LARGEST_INTEGER: Final = 2**63 - 1
_EXACT: Final = Context(prec=100)


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """The known properties of a variant; None for each that is unknown."""

    model: str | None
    accelerator: str | None
    count: int | None
    parameters: Json | None
    batch: int | None
    service_class: Json | None
    target: JsonValue
    cost: str | None
    replicas: int
    """The most replicas in the status."""


def facts_of(hub: Json) -> Facts:
    """Return the known properties of a variant, given its object in `v1alpha2`."""
    spec, status = as_object(hub.get("spec")), as_object(hub.get("status"))
    current = as_object(status.get("currentAlloc"))
    desired = as_object(status.get("desiredOptimizedAlloc"))
    profile = as_object(spec.get("variantProfile"))
    count = _at_least_one(spec.get("acceleratorCount"))
    accelerators = (
        spec.get("accelerator"),
        label_of(hub),
        current.get("accelerator"),
        desired.get("accelerator"),
    )
    return Facts(
        model=_text(spec.get("modelID")),
        accelerator=next(filter(None, map(_text, accelerators)), None),
        count=count,
        parameters=_parameters(profile.get("perfParms")),
        batch=_at_least_one(profile.get("maxBatchSize")) or _at_least_one(current.get("maxBatch")),
        service_class=_service_class(spec.get("sloClassRef")),
        target=spec.get("scaleTargetRef") or implied_target(hub),
        cost=_text(spec.get("variantCost")) or _cost_per_replica(current, count),
        replicas=max(_at_least_one(item.get("numReplicas")) or 0 for item in (current, desired)),
    )


def total_cost(cost: str | None, replicas: JsonValue) -> str | None:
    """Return the cost of all replicas, exact to every digit, or None if either factor is unknown."""
    if cost is None or not _DECIMAL.fullmatch(cost):
        return None
    if type(replicas) is not int or not 0 <= replicas <= _LARGEST_INTEGER:
        return None
    return _cost_text(_EXACT.multiply(Decimal(cost), Decimal(replicas)))


def brief_json(value: JsonValue) -> str:
    """Return a value as JSON for use in a message, truncated if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_CHARACTERS_SHOWN else f"{text[: _MOST_CHARACTERS_SHOWN - 1]}…"


def _cost_per_replica(current: Json, count: int | None) -> str | None:
    """Return the cost of one replica implied by a legacy status.

    The status has the cost of all replicas, with one accelerator each.
    """
    total, replicas = _text(current.get("variantCost")), _at_least_one(current.get("numReplicas"))
    if total is None or replicas is None or not _DECIMAL.fullmatch(total):
        return None
    cost = _EXACT.divide(_EXACT.multiply(Decimal(total), Decimal(count or 1)), Decimal(replicas))
    return _cost_text(_EXACT.quantize(cost, Decimal("0.01")))


def _cost_text(cost: Decimal) -> str | None:
    text = f"{cost:f}"
    return text if len(text) <= _MOST_DIGITS else None


def _parameters(value: JsonValue) -> Json | None:
    phases = ("decodeParms", "prefillParms")
    return value if isinstance(value, dict) and all(as_object(value.get(name)) for name in phases) else None


def _service_class(value: JsonValue) -> Json | None:
    names = ("name", "key")
    return value if isinstance(value, dict) and all(_text(value.get(name)) for name in names) else None


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _at_least_one(value: JsonValue) -> int | None:
    return value if type(value) is int and 1 <= value <= _LARGEST_INTEGER else None
