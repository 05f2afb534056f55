"""Read prices and service classes from an administrator's ConfigMaps.

Both are read from Stowplan's own namespace only: a service class determines priority in the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec
import yaml

from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.schema.json import Json, JsonValue
from controller.observe.accelerators import normalised
from controller.observe.grants import Grants
from controller.planning.snapshot import LOWEST_PRIORITY
from controller.sizing.records import ATTAINMENT, LEAST_ATTAINMENT, MOST_ATTAINMENT

_LIMIT_BYTES: Final = 1 << 20
_MOST: Final = Decimal(10) ** 9
_MOST_MS: Final = 10**8
"""Maximum latency target in ms, which is more than a day."""

_LONGEST_PROBLEM: Final = 300
_PRICE: Final = '{"device": "NVIDIA-A100", "cost": "40.00"}'
_UNPRICED: Final = (
    f"this entry is ignored; a type without a price costs {float(DEFAULT_COST):g} per replica by default"
)
_NO_PRICES: Final = f"every replica without a spec.variantCost costs {float(DEFAULT_COST):g}"
_NO_CLASSES: Final = "models have a priority and latency targets by spec.sloClassRef only"
_TARGETS: Final = ("slo-tpot", "slo-ttft")
_ENTRY_MEMBERS: Final = ("model", *_TARGETS)
_MEMBERS: Final = ("name", "priority", "attainment", "data")
_NO_MAPPING: Final = "must be a mapping with name, priority, attainment and data"

Place = tuple[str, str]
"""ConfigMap name and key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceClass:
    """A service class: priority from 1, served first, to 100; latency targets in ms by model."""

    name: str
    priority: int
    ttft_ms: Mapping[str, int]
    tpot_ms: Mapping[str, int]
    attainment: float = ATTAINMENT
    """Promised share of requests within both targets."""

    def covers(self, model_id: str) -> bool:
        """Return whether the class lists a model."""
        return model_id in self.ttft_ms or model_id in self.tpot_ms


@dataclass(frozen=True, kw_only=True, slots=True)
class Policies:
    """The administrator's policies, and messages about unreadable ones."""

    unit_costs: Mapping[str, Decimal] = field(default_factory=dict)
    """Cost per hour of one accelerator, by normalized type."""

    classes: Mapping[tuple[str, str], ServiceClass] = field(default_factory=dict)
    """Service classes by ConfigMap name and key."""

    default_classes: str = ""
    """ConfigMap whose classes apply to models without a reference; empty for all ConfigMaps."""

    problems: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Messages about configured ConfigMaps that do not exist, by name; optional without a cluster."""

    grants: Grants | None = None
    """With tenants, who may use which class and set a cost; None if everyone may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """The parsed value of one key of a ConfigMap."""

    text: str
    value: Decimal | ServiceClass | None = None
    """A price or a class; None for anything else."""

    problems: tuple[str, ...] = ()
    is_sound: bool = True
    """Whether the value is entirely valid."""


class PolicyReader:
    """Reads ConfigMaps repeatedly; an entry that becomes invalid keeps its last valid value."""

    def __init__(self, *, unit_costs: str, default_classes: str = "") -> None:
        """`unit_costs` names the ConfigMap of prices; for `default_classes` see `Policies`."""
        self._unit_costs = unit_costs
        self._default_classes = default_classes
        self._known: Mapping[Place, _Entry] = {}

    def read(self, config_maps: Mapping[str, Json]) -> Policies:
        """Return the policies in the ConfigMaps of Stowplan's namespace, given by name.

        An invalid entry is reported in `problems`, and omitted if it was never valid: one typing error must
        not invalidate all others. Unchanged text is not parsed again.
        """
        texts = {
            (name, key): text
            for name, config_map in sorted(config_maps.items())
            for key, text in sorted((config_map.get("data") or {}).items())
        }
        self._known = {place: self._entry(place, text) for place, text in texts.items()}
        return Policies(
            unit_costs={
                normalised(place[1]): entry.value
                for place, entry in self._known.items()
                if isinstance(entry.value, Decimal)
            },
            classes={
                place: entry.value
                for place, entry in self._known.items()
                if isinstance(entry.value, ServiceClass)
            },
            default_classes=self._default_classes,
            problems=(
                *(
                    f"ConfigMap {name}, key {key}: {problem}"
                    for (name, key), entry in self._known.items()
                    for problem in entry.problems
                ),
                *self._misplaced(config_maps),
            ),
            missing={
                name: f"ConfigMap {name}, named by {setting}, is missing: {effect}"
                for name, setting, effect in (
                    (self._unit_costs, "names.unitCosts", _NO_PRICES),
                    (self._default_classes, "names.serviceClasses", _NO_CLASSES),
                )
                if name and name not in config_maps
            },
        )

    def _misplaced(self, config_maps: Mapping[str, Json]) -> Iterator[str]:
        """Yield a message if only ConfigMaps that are not the configured one have classes."""
        ours = self._default_classes
        holders = {name for (name, _), entry in self._known.items() if isinstance(entry.value, ServiceClass)}
        if ours and holders and ours not in holders:
            lacks = "has no service class" if ours in config_maps else "is missing"
            yield (
                f"ConfigMap {ours}, named by names.serviceClasses, {lacks}; the classes of ConfigMap"
                f" {', '.join(sorted(holders))} apply by spec.sloClassRef only: to apply them by model, name"
                " their ConfigMap in names.serviceClasses"
            )

    def _entry(self, place: Place, text: str) -> _Entry:
        known = self._known.get(place)
        if known is not None and known.text == text:
            return known
        is_price, before = place[0] == self._unit_costs, known.value if known else None
        entry = _priced(text) if is_price else _classed(text, is_expected=place[0] == self._default_classes)
        if before is None and is_price:
            problems = tuple(f"{problem}; {_UNPRICED}" for problem in entry.problems)
            return replace(entry, problems=problems)
        if before is None or (entry.is_sound and entry.value is not None):
            return entry
        if entry.is_sound:
            entry = replace(entry, problems=("is no longer a service class: it has no priority",))
        problems = tuple(f"{problem}; its previous content is used" for problem in entry.problems)
        return _Entry(text=text, value=before, problems=problems, is_sound=False)


def read_policies(config_maps: Mapping[str, Json], *, unit_costs: str, default_classes: str = "") -> Policies:
    """Return the policies in ConfigMaps that are read once."""
    return PolicyReader(unit_costs=unit_costs, default_classes=default_classes).read(config_maps)


def service_class(policies: Policies, reference: Json | None, model_id: str) -> ServiceClass | None:
    """Return the class of a variant: the referenced one, else the one of best priority for its model."""
    place = place_of_class(policies, reference, model_id)
    return None if place is None else policies.classes.get(place)


def place_of_class(policies: Policies, reference: Json | None, model_id: str) -> Place | None:
    """Return where that class is defined; None without a reference or a class for the model."""
    if reference is not None:
        return reference["name"], reference["key"]
    listed = [
        (item.priority, where)
        for where, item in policies.classes.items()
        if policies.default_classes in {"", where[0]} and item.covers(model_id)
    ]
    return min(listed)[1] if listed else None


def _priced(text: str) -> _Entry:
    try:
        return _Entry(text=text, value=_cost(text))
    except ValueError as error:
        return _Entry(text=text, problems=(str(error),), is_sound=False)


def _classed(text: str, *, is_expected: bool) -> _Entry:
    """Return the service class in a text; any other text is an empty entry."""
    try:
        document = _yaml(text)
        if is_expected and not isinstance(document, dict):
            return _Entry(text=text, problems=(_NO_MAPPING,), is_sound=False)
        if not isinstance(document, dict) or not (is_expected or _resembles_class(document)):
            return _Entry(text=text)
        return _service_class(text, document)
    except ValueError as error:
        return _Entry(text=text, problems=(str(error),), is_sound=False)


def _resembles_class(document: Json) -> bool:
    """Return whether a document has a priority or latency targets; ConfigMaps also contain other things."""
    if "priority" in document:
        return True
    entries = document.get("data")
    return isinstance(entries, list) and any(
        isinstance(entry, dict) and not entry.keys().isdisjoint(_TARGETS) for entry in entries
    )


def _doubts(document: Json, entries: list[Json]) -> Iterator[str]:
    """Yield what has no effect, or another one than written."""
    priority = document["priority"]
    if not 1 <= priority <= LOWEST_PRIORITY:
        yield f"priority {priority} is not within 1..{LOWEST_PRIORITY}; {LOWEST_PRIORITY} is used"
    yield from _unknown(document, entries)


def _unknown(document: Json, entries: list[Json]) -> Iterator[str]:
    """Yield the unknown fields of a class and of its entries, and entries without a model."""
    if names := sorted(map(str, document.keys() - {*_MEMBERS})):
        yield _shortened(f"unknown: {', '.join(names)}; a class has {', '.join(_MEMBERS)}")
    if names := sorted({str(name) for entry in entries for name in entry.keys() - {*_ENTRY_MEMBERS}}):
        yield _shortened(f"unknown in data: {', '.join(names)}; an entry has {', '.join(_ENTRY_MEMBERS)}")
    if places := [f"data[{place}]" for place, entry in enumerate(entries) if "model" not in entry]:
        yield _shortened(f"no effect without model: {', '.join(places)}")


def _shortened(text: str) -> str:
    return text[:_LONGEST_PROBLEM]


def _cost(text: str) -> Decimal:
    try:
        price = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"must be JSON such as {_PRICE}") from error
    if "cost" not in price:
        raise ValueError(f"cost is missing: must be JSON such as {_PRICE}")
    try:
        value = Decimal(str(price["cost"]))
    except InvalidOperation:
        value = Decimal("NaN")
    if not (value.is_finite() and 0 <= value <= _MOST):
        raise ValueError(_shortened(f"cost must be a number from 0 to {_MOST}, was {price['cost']!r}"))
    return value


def _service_class(text: str, document: Json) -> _Entry:
    entries = document.get("data") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("data must be a list of {model, slo-tpot, slo-ttft}")
    if "priority" not in document:
        missing = "is no service class: priority is missing"
        return _Entry(text=text, problems=(missing, *_unknown(document, entries)), is_sound=False)
    attainment = document.get("attainment", ATTAINMENT)
    no_attainment = [*_wrong_attainment(attainment)]
    wrong = [*no_attainment, *_wrong_targets(entries)]
    found = ServiceClass(
        name=str(document.get("name", "")),
        priority=_priority(document["priority"]),
        ttft_ms=_targets(entries, "slo-ttft"),
        tpot_ms=_targets(entries, "slo-tpot"),
        attainment=ATTAINMENT if no_attainment else float(attainment),
    )
    return _Entry(text=text, value=found, problems=(*wrong, *_doubts(document, entries)), is_sound=not wrong)


def _yaml(text: str) -> JsonValue:
    if len(text) > _LIMIT_BYTES:
        raise ValueError(f"must be at most {_LIMIT_BYTES} characters long")
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"is not YAML: {where}{error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from error


def _priority(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"priority must be an integer, was {value!r}")  # noqa: TRY004 (an invalid value, not a wrong Python type)
    return value if 1 <= value <= LOWEST_PRIORITY else LOWEST_PRIORITY


def _wrong_attainment(value: JsonValue) -> Iterator[str]:
    """Yield why a value is no attainment; a class with it has the default one."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and LEAST_ATTAINMENT <= value <= MOST_ATTAINMENT):
        yield _shortened(
            f"attainment must be a share of requests from {LEAST_ATTAINMENT} to {MOST_ATTAINMENT}, such as"
            f" {ATTAINMENT}, was {value!r}; {ATTAINMENT} is used"
        )


def _wrong_targets(entries: list[Json]) -> Iterator[str]:
    for entry in entries:
        for name in _TARGETS:
            if name in entry and not _is_target(entry[name]):
                yield _shortened(
                    f"{name} of model {entry.get('model')!r} must be a whole number of ms from 1 to"
                    f" {_MOST_MS}, was {entry[name]!r}"
                )


def _is_target(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_MS


def _targets(entries: list[Json], name: str) -> dict[str, int]:
    return {
        str(entry["model"]): entry[name]
        for entry in entries
        if "model" in entry and _is_target(entry.get(name))
    }
