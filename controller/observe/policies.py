"""Prices and service classes, out of the ConfigMaps in which an administrator keeps them.

Both are read from Stowplan's own namespace only: a service class decides who goes first in the whole cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec
import yaml

from apiserver.schema.json import Json, JsonValue
from controller.observe.accelerators import normalised
from controller.planning.snapshot import LOWEST_PRIORITY

_LIMIT_BYTES: Final = 1 << 20
_MOST: Final = Decimal(10) ** 9


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceClass:
    """A class of service: 1 is served first, 100 last; latency targets in ms by model."""

    name: str
    priority: int
    ttft_ms: Mapping[str, int]
    tpot_ms: Mapping[str, int]

    def covers(self, model_id: str) -> bool:
        """Tell whether the class lists a model."""
        return model_id in self.ttft_ms or model_id in self.tpot_ms


@dataclass(frozen=True, kw_only=True, slots=True)
class Policies:
    """What an administrator laid down, and what of it could not be read."""

    unit_costs: Mapping[str, Decimal] = field(default_factory=dict)
    """Cost per hour of one accelerator, by normalised type."""

    classes: Mapping[tuple[str, str], ServiceClass] = field(default_factory=dict)
    """Service classes by ConfigMap and key."""

    default_classes: str = ""
    """The ConfigMap whose classes hold for models that name none; empty: all of them."""

    problems: tuple[str, ...] = ()


def read_policies(config_maps: Mapping[str, Json], *, unit_costs: str, default_classes: str = "") -> Policies:
    """Return what the ConfigMaps of our namespace say, by name; the one named `unit_costs` holds prices.

    Classes of `default_classes` hold for models that name none.

    An entry that cannot be read is left out and named in `problems`: one typing error must not stop all.
    """
    costs: dict[str, Decimal] = {}
    classes: dict[tuple[str, str], ServiceClass] = {}
    problems: list[str] = []
    for name, config_map in sorted(config_maps.items()):
        for key, text in sorted((config_map.get("data") or {}).items()):
            try:
                if name == unit_costs:
                    costs[normalised(key)] = _cost(text)
                elif (document := _class_document(text)) is not None:
                    classes[name, key] = _service_class(document)
                    problems += _doubts(name, key, document)
            except ValueError as error:
                problems.append(f"ConfigMap {name}, key {key}: {error}")
    return Policies(
        unit_costs=costs, classes=classes, default_classes=default_classes, problems=tuple(problems)
    )


def service_class(policies: Policies, reference: Json | None, model_id: str) -> ServiceClass | None:
    """Return the class that serves a variant: the referenced one, else the first that lists its model."""
    if reference is not None:
        return policies.classes.get((reference["name"], reference["key"]))
    listed = [
        (item.priority, where, item) for where, item in policies.classes.items() if item.covers(model_id)
    ]
    return min(listed, key=lambda entry: entry[:2])[2] if listed else None


def _doubts(name: str, key: str, document: Json) -> list[str]:
    priority = document["priority"]
    if 1 <= priority <= LOWEST_PRIORITY:
        return []
    counted = f"priority {priority} is not within 1..{LOWEST_PRIORITY} and counts as {LOWEST_PRIORITY}"
    return [f"ConfigMap {name}, key {key}: {counted}"]


def _cost(text: str) -> Decimal:
    try:
        value = Decimal(str(msgspec.json.decode(text)["cost"]))
    except (msgspec.DecodeError, KeyError, TypeError, InvalidOperation) as error:
        raise ValueError('must be JSON such as {"device": "NVIDIA-A100", "cost": "40.00"}') from error
    if not 0 <= value <= _MOST:
        raise ValueError(f"cost must be between 0 and {_MOST}, was {value}")
    return value


def _class_document(text: str) -> Json | None:
    """Return the document of a service class, or None for text that is about something else."""
    document = _yaml(text)
    return document if isinstance(document, dict) and "priority" in document else None


def _service_class(document: Json) -> ServiceClass:
    entries = document.get("data") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("data must be a list of {model, slo-tpot, slo-ttft}")
    return ServiceClass(
        name=str(document.get("name", "")),
        priority=_priority(document["priority"]),
        ttft_ms=_targets(entries, "slo-ttft"),
        tpot_ms=_targets(entries, "slo-tpot"),
    )


def _yaml(text: str) -> JsonValue:
    if len(text) > _LIMIT_BYTES:
        raise ValueError(f"must be at most {_LIMIT_BYTES} characters long")
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"is no YAML: {error}") from error


def _priority(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"priority must be an integer, was {value!r}")  # noqa: TRY004 (wrong text, not a wrong call)
    return value if 1 <= value <= LOWEST_PRIORITY else LOWEST_PRIORITY


def _targets(entries: list[Json], name: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in entries:
        value = entry.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0 and "model" in entry:
            found[str(entry["model"])] = value
    return found
