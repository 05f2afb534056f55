"""Read prices and service classes from ConfigMaps, where the last valid content stays in force.

Both are read from Stowplan's own namespace only: a service class determines priority in the whole cluster. A
typing error, or a ConfigMap that is deleted by mistake, must not take every priority away: content that
cannot be used is reported, and the last valid one applies until there is other, or until it is given up on
purpose.
The controller keeps the last valid settings in a ConfigMap for the next leader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec

from apiserver.kinds.llmd.identity import MOST_COST
from apiserver.kinds.llmd.variantautoscaling import DEFAULT_COST
from apiserver.kinds.settings import LATENCY_MOST_MS, Setting, read_class, read_price
from apiserver.kinds.settings_names import ALLOW_EMPTY, LAST_VALID, holds_back
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from controller.observe.accelerators import short_name
from controller.observe.claim import Place
from controller.observe.policies import Policies, ServiceClass, SettingsProblem
from controller.planning.snapshot import LOWEST_PRIORITY
from controller.sizing.records import ATTAINMENT, LEAST_ATTAINMENT, MOST_ATTAINMENT

_MOST_ERRORS: Final = 5

_UNPRICED: Final = (
    f"this entry is ignored; a type without a price costs {float(DEFAULT_COST):g} per replica by default"
)
_NO_PRICES: Final = f"every replica without a spec.variantCost costs {float(DEFAULT_COST):g}"
_NO_CLASSES: Final = "models have a priority and latency targets by spec.sloClassRef only"
_TARGETS: Final = ("slo-tpot", "slo-ttft")
_PREVIOUS: Final = "its last valid content is used"
_RESTORE: Final = (
    f"apply it again; or, to give it up, apply the ConfigMap without data, with the annotation {ALLOW_EMPTY}:"
    ' "true"'
)

Value = Decimal | ServiceClass


@dataclass(frozen=True, slots=True)
class _SettingEntry:
    """The value of one key: a price or a class, or None for anything else, with what is wrong with it."""

    value: Value | None = None
    problems: tuple[str, ...] = ()


@dataclass(kw_only=True, slots=True)
class _Results:
    """What has been read so far."""

    values: dict[Place, Value] = field(default_factory=dict)
    valid: dict[str, dict[str, str]] = field(default_factory=dict)
    """The last valid texts, by ConfigMap and key."""

    wrong: dict[Place, str] = field(default_factory=dict)


class PolicyReader:
    """Reads ConfigMaps repeatedly; what becomes invalid, or is gone, keeps its last valid content."""

    def __init__(
        self,
        *,
        unit_costs: str,
        default_classes: str = "",
        last_valid: LastValid | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        """`unit_costs` names the ConfigMap of prices; for `default_classes` see `Policies`.

        `now` is for the times since which something is wrong; without it, there are none.
        """
        self._unit_costs = unit_costs
        self._default_classes = default_classes
        self._now = now
        self._before: dict[tuple[Place, str], _SettingEntry] = {}
        self._parsed: dict[tuple[Place, str], _SettingEntry] = {}
        self.last_valid = last_valid or LastValid()
        """What the next leader has to know."""

    def read(self, config_maps: Mapping[str, Json], *, named: Collection[str] = ()) -> Policies:
        """Return the policies in the ConfigMaps of Stowplan's namespace, given by name.

        An invalid entry is reported in `problems`, and omitted if nothing of it was ever valid: one typing
        error must not invalidate all others. The content of a ConfigMap that is gone stays in force if it is
        a configured one, or among those `named` by objects.
        """
        result = _Results()
        self._before, self._parsed = self._parsed, {}  # texts of the last cycle are not parsed again
        held = {self._unit_costs, self._default_classes, *named}
        for name in sorted({*config_maps, *self.last_valid.texts} - {LAST_VALID}):
            config_map = config_maps.get(name)
            last = self.last_valid.texts.get(name, {})
            if last and _is_held_back(config_map, is_held=name in held):
                self._hold(name, last, result, is_gone=config_map is None)
            elif config_map is not None:
                self._read_config_map(name, config_map.get("data") or {}, last, result)
        if misplaced := self._misplaced_message(config_maps, result):
            result.wrong.setdefault((self._default_classes, ""), misplaced)
        since = self._since(result)
        self.last_valid = LastValid(texts=result.valid, since=since)
        problems = tuple(
            SettingsProblem(config_map=place[0], key=place[1], text=text, since=since.get(place))
            for place, text in result.wrong.items()
        )
        return Policies(
            unit_costs={
                short_name(place[1]): value
                for place, value in result.values.items()
                if isinstance(value, Decimal)
            },
            classes={
                place: value for place, value in result.values.items() if isinstance(value, ServiceClass)
            },
            price_list=self._unit_costs,
            default_classes=self._default_classes,
            problems=problems,
            missing=self._missing_texts(config_maps, result),
        )

    def _hold(self, name: str, last: Mapping[str, str], result: _Results, *, is_gone: bool) -> None:
        """Let the last valid content of a ConfigMap stay in force that is gone or empty."""
        why = "is missing" if is_gone else "has no entries"
        result.wrong[name, ""] = f"{why}; {_PREVIOUS}: {_RESTORE}"
        result.valid[name] = dict(last)
        for key, text in last.items():
            entry = self._entry((name, key), text)
            if entry.value is not None:
                result.values[name, key] = entry.value

    def _read_config_map(
        self, name: str, data: Mapping[str, str], last: Mapping[str, str], result: _Results
    ) -> None:
        """Read the entries of a ConfigMap, each by itself. An entry that is no longer there is removed."""
        valid: dict[str, str] = {}
        for key, text in sorted(data.items()):
            place = name, key
            entry = self._entry(place, text)
            is_valid = entry.value is not None and not entry.problems
            previous = None if is_valid or key not in last else self._entry(place, last[key])
            if previous is not None and previous.value is not None:
                problems = entry.problems or ("is no longer a service class: it has no priority",)
                entry = _SettingEntry(previous.value, (*problems, _PREVIOUS))
                valid[key] = last[key]
            elif is_valid:
                valid[key] = text
            elif entry.problems:
                entry = _SettingEntry(entry.value, (*entry.problems, self._instead(place, entry)))
            if entry.value is not None:
                result.values[place] = entry.value
            if entry.problems:
                result.wrong[place] = "; ".join(entry.problems)
        if valid:
            result.valid[name] = valid

    def _instead(self, place: Place, entry: _SettingEntry) -> str:
        """Return what applies in place of an entry that was never valid."""
        if entry.value is not None:
            return "what can be read is used"
        return _UNPRICED if place[0] == self._unit_costs else "this entry is ignored"

    def _entry(self, place: Place, text: str) -> _SettingEntry:
        entry = self._before.get((place, text))
        if entry is None and place[0] == self._unit_costs:
            entry = _price_entry(text)
        elif entry is None:
            entry = _class_entry(text, is_expected=place[0] == self._default_classes)
        self._parsed[place, text] = entry
        return entry

    def _since(self, result: _Results) -> Mapping[Place, datetime]:
        if self._now is None:
            return {}
        now = self._now().replace(microsecond=0)
        return {place: self.last_valid.since.get(place, now) for place in result.wrong}

    def _missing_texts(self, config_maps: Mapping[str, Json], result: _Results) -> Mapping[str, str]:
        settings = (
            (self._unit_costs, "names.unitCosts", _NO_PRICES),
            (self._default_classes, "names.serviceClasses", _NO_CLASSES),
        )
        return {
            name: f"ConfigMap {name}, named by {setting}, is missing: {effect}"
            for name, setting, effect in settings
            if name and name not in config_maps and name not in result.valid
        }

    def _misplaced_message(self, config_maps: Mapping[str, Json], result: _Results) -> str:
        """Return a message if only ConfigMaps that are not the configured one have classes; else nothing."""
        ours = self._default_classes
        holders = {name for (name, _), value in result.values.items() if isinstance(value, ServiceClass)}
        if not (ours and holders) or ours in holders:
            return ""
        lacks = "has no service class" if ours in config_maps else "is missing"
        return (
            f"{lacks}; the classes of ConfigMap {', '.join(sorted(holders))} apply by spec.sloClassRef only:"
            " to apply them by model, name their ConfigMap in names.serviceClasses"
        )


def read_policies(
    config_maps: Mapping[str, Json],
    *,
    unit_costs: str,
    default_classes: str = "",
    last_valid: LastValid | None = None,
) -> Policies:
    """Return the policies in ConfigMaps that are read once."""
    reader = PolicyReader(unit_costs=unit_costs, default_classes=default_classes, last_valid=last_valid)
    return reader.read(config_maps)


def _is_held_back(config_map: Json | None, *, is_held: bool) -> bool:
    if config_map is None:
        return is_held
    return is_held and holds_back(config_map.get("metadata") or {}, config_map.get("data"))


def _price_entry(text: str) -> _SettingEntry:
    setting = read_price(text)
    return _SettingEntry(_cost(setting), _messages(setting.errors))


def _cost(setting: Setting) -> Decimal | None:
    if not isinstance(setting.document, dict):
        return None
    try:
        value = Decimal(str(setting.document.get("cost")))
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value <= MOST_COST else None


def _class_entry(text: str, *, is_expected: bool) -> _SettingEntry:
    """Return the service class in a text; any other text is an empty entry, unless a class is expected."""
    setting = read_class(text)
    document = setting.document
    if not is_expected and setting.is_readable and not _resembles_class(document):
        return _SettingEntry()
    return _SettingEntry(_service_class(document), _messages(setting.errors))


def _messages(wrong: Collection[FieldError]) -> tuple[str, ...]:
    shown = [str(error) if error.path.parts else error.body for error in wrong][:_MOST_ERRORS]
    more = len(wrong) - len(shown)
    return (*shown, *([f"and {more} more"] if more else []))


def _resembles_class(document: JsonValue) -> bool:
    """Return whether a document has a priority or latency targets; ConfigMaps also contain other things."""
    if not isinstance(document, dict):
        return False
    if "priority" in document:
        return True
    entries = document.get("data")
    return isinstance(entries, list) and any(
        isinstance(entry, dict) and not entry.keys().isdisjoint(_TARGETS) for entry in entries
    )


def _service_class(document: JsonValue) -> ServiceClass | None:
    """Return what can be read of a class; None without a priority, or if its entries are no list."""
    if not isinstance(document, dict):
        return None
    priority: JsonValue = document.get("priority")
    entries = document.get("data") or []
    if not _is_whole(priority) or not isinstance(entries, list):
        return None
    attainment = document.get("attainment", ATTAINMENT)
    is_number = isinstance(attainment, int | float) and not isinstance(attainment, bool)
    is_allowed = is_number and LEAST_ATTAINMENT <= attainment <= MOST_ATTAINMENT
    models = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("model"), str)]
    return ServiceClass(
        name=str(document.get("name", "")),
        priority=priority if 1 <= priority <= LOWEST_PRIORITY else LOWEST_PRIORITY,
        ttft_ms=_targets(models, "slo-ttft"),
        tpot_ms=_targets(models, "slo-tpot"),
        attainment=float(attainment) if is_allowed else ATTAINMENT,
    )


def _targets(models: list[Json], name: str) -> dict[str, int]:
    return {
        entry["model"]: entry[name]
        for entry in models
        if _is_whole(entry.get(name)) and 0 < entry[name] <= LATENCY_MOST_MS
    }


def _is_whole(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


KEY: Final = "settings.json"
"""The key of the record in its ConfigMap."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LastValid:
    """The last valid texts by ConfigMap and key, and since when something is wrong with which."""

    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    since: Mapping[Place, datetime] = field(default_factory=dict)
    """By ConfigMap and key; the key is empty for a whole ConfigMap."""


class _EntryFault(msgspec.Struct, frozen=True, rename="camel"):
    config_map: str
    key: str
    since: datetime


class _Record(msgspec.Struct, frozen=True, rename="camel"):
    last_valid: dict[str, dict[str, str]]
    invalid: list[_EntryFault] = []


def record_of(last_valid: LastValid) -> str:
    """Return the record as JSON text, the same for equal content."""
    wrong = [_EntryFault(*place, since) for place, since in sorted(last_valid.since.items())]
    record = _Record({name: dict(texts) for name, texts in last_valid.texts.items()}, wrong)
    return msgspec.json.encode(record, order="sorted").decode()


def read_last_valid(config_map: Json | None) -> LastValid:
    """Return the content of the controller's ConfigMap; nothing if it is missing or empty.

    Raises ValueError if somebody else has written what is no record.
    """
    text = ((config_map or {}).get("data") or {}).get(KEY)
    if text is None:
        return LastValid()
    try:
        record = msgspec.json.decode(text, type=_Record)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"ConfigMap {LAST_VALID}, key {KEY}: is no record of settings: {error}") from error
    since = {(item.config_map, item.key): item.since for item in record.invalid}
    return LastValid(texts=record.last_valid, since=since)
