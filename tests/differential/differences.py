"""Known differences between the judges, each with a reason. One that no longer occurs must be deleted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import JsonValue
from apiserver.schema.model import SchemaNode
from differential.dispute import SECOND, SERVER, UPDATE, Dispute
from differential.findings import Finding


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A known reason for disputes."""

    name: str
    reason: str
    pair: str
    explains: Callable[[Dispute], bool]


def explanation(dispute: Dispute) -> Difference | None:
    """Return the first difference that explains a dispute."""
    pairs = {dispute.pair} | ({SERVER} if dispute.pair == UPDATE else set())
    fitting = (item for item in DIFFERENCES if item.pair in pairs and item.explains(dispute))
    return next(fitting, None)


def _is_cut(dispute: Dispute) -> bool:
    mark = Finding("spec", "FieldValueTooMany")
    return mark in dispute.ours and (not dispute.is_ours or dispute.finding == mark)


def _is_newline(dispute: Dispute) -> bool:
    return dispute.is_ours and _is_pattern(dispute) and str(dispute.found).endswith("\n")


def _is_digits(dispute: Dispute) -> bool:
    foreign = re.search(r"[^\D0-9]", str(dispute.found)) is not None
    return dispute.is_ours and _is_pattern(dispute) and r"\d" in dispute.node.keywords["pattern"] and foreign


def _is_pattern(dispute: Dispute) -> bool:
    return (
        dispute.finding.reason == "FieldValueInvalid"
        and isinstance(dispute.found, str)
        and "pattern" in dispute.node.keywords
    )


def _is_format(dispute: Dispute) -> bool:
    return (
        dispute.is_ours
        and dispute.finding.reason == "FieldValueInvalid"
        and "format" in dispute.node.keywords
    )


def _is_unchecked_spec(dispute: Dispute) -> bool:
    is_spec = dispute.finding.path == "spec" and dispute.finding.reason == "FieldValueRequired"
    return dispute.is_ours and is_spec and "some validation rules were not checked" in dispute.text


def _is_bound_of_another_type(dispute: Dispute) -> bool:
    is_fraction = isinstance(dispute.found, float) and not dispute.found.is_integer()
    other = "FieldValueInvalid" if dispute.is_ours else "FieldValueTypeInvalid"
    reasons = {"FieldValueInvalid", "FieldValueTypeInvalid"} - {other}
    return is_fraction and dispute.finding.reason in reasons and dispute.elsewhere(other)


def _is_second_fault_of_a_text(dispute: Dispute) -> bool:
    return dispute.is_ours and _is_pattern(dispute) and dispute.elsewhere("FieldValueTooLong")


def _is_leap_second(dispute: Dispute) -> bool:
    return not dispute.is_ours and _is_moment_at(dispute) and ":60" in str(dispute.found)


def _is_loose_digit(dispute: Dispute) -> bool:
    is_strict = re.fullmatch(r"[0-9-]{10}[Tt][0-9:.]+([Zz]|[+-][0-9:]+)", str(dispute.found)) is not None
    return not dispute.is_ours and _is_moment_at(dispute) and not is_strict


def _is_odd_offset(dispute: Dispute) -> bool:
    odd = r"[+-](2[4-9]|[3-9][0-9]):|:[6-9][0-9]$|,[0-9]|[tT].*[tT]"
    return dispute.is_ours and _is_moment_at(dispute) and re.search(odd, str(dispute.found)) is not None


def _is_moment_at(dispute: Dispute) -> bool:
    return dispute.node.keywords.get("format") == "date-time" and isinstance(dispute.found, str)


def _is_moment(dispute: Dispute) -> bool:
    reasons = {"FieldValueInvalid", "FieldValueTypeInvalid"}
    other = reasons - {dispute.finding.reason}
    return _is_moment_at(dispute) and any(map(dispute.elsewhere, other))


def _is_third_of_a_kind(dispute: Dispute) -> bool:
    parent = dispute.finding.path.rpartition(".")[0]
    named = any(
        item.reason == dispute.finding.reason and item.path.rpartition(".")[0] == parent
        for item in dispute.theirs
    )
    return dispute.is_ours and dispute.finding.reason == "FieldValueDuplicate" and named


def _is_whole_float(dispute: Dispute) -> bool:
    if "expected int, got float64" not in dispute.text:
        return False
    if not dispute.is_ours:
        return dispute.finding.reason == "FieldValueInvalid" and isinstance(dispute.found, dict | list)
    scopes = [item.path for item in dispute.theirs - dispute.ours]
    return any(f"{dispute.finding.path}.".startswith(f"{scope}.") for scope in scopes)


def _is_beyond_64_bits(dispute: Dispute) -> bool:
    found = dispute.found
    is_large = isinstance(found, int | float) and not -(2**63) <= found < 2**63
    return is_large and (dispute.elsewhere("FieldValueTypeInvalid") or dispute.elsewhere("FieldValueInvalid"))


def _is_no_object_in_a_list_map(dispute: Dispute) -> bool:
    said = "must be an object for an array of list-type map" in dispute.text
    return not dispute.is_ours and said and dispute.elsewhere("FieldValueTypeInvalid")


def _is_without_keys(dispute: Dispute) -> bool:
    found = dispute.found if isinstance(dispute.found, dict) else {}
    lacks = any(found.get(key) is None for key in _keys_of_list_around(dispute))
    return not dispute.is_ours and dispute.finding.reason == "FieldValueDuplicate" and lacks


def _keys_of_list_around(dispute: Dispute) -> Sequence[str]:
    keys: Sequence[str] = dispute.around.keywords.get("x-kubernetes-list-map-keys", ())
    return keys


def _is_beyond_the_most_items(dispute: Dispute) -> bool:
    position = dispute.finding.path.rpartition(".")[2]
    most = dispute.around.keywords.get("maxItems")
    return not dispute.is_ours and most is not None and position.isdecimal() and int(position) >= most


def _is_item_named(dispute: Dispute) -> bool:
    path, reason = dispute.finding.path, dispute.finding.reason
    if dispute.is_ours:
        lists = {item.path for item in dispute.theirs if item.reason == reason}
        return dispute.finding in dispute.rules and any(path.startswith(f"{item}.") for item in lists)
    items = {item.path for item in dispute.rules if item.reason == reason}
    return isinstance(dispute.found, list) and any(item.startswith(f"{path}.") for item in items)


def _is_list_for_a_formatted_text(dispute: Dispute) -> bool:
    return dispute.is_ours and "format" in dispute.node.keywords and isinstance(dispute.found, list)


def _is_under_an_empty_key(dispute: Dispute) -> bool:
    path, reason = dispute.finding.path, dispute.finding.reason
    if dispute.is_ours and dispute.pair == UPDATE:
        return isinstance(dispute.found, dict) and "" in dispute.found
    if dispute.is_ours:
        return any(
            item.reason == reason and item.path.replace("..", ".").rstrip(".") == path
            for item in dispute.theirs
        )
    return ("." + path + ".").find("..") >= 0 and Finding(
        path.replace("..", ".").rstrip("."), reason
    ) in dispute.ours


def _is_whole_float_again(dispute: Dispute) -> bool:
    return not dispute.is_ours and isinstance(dispute.found, float) and dispute.found.is_integer()


def _is_forgiven_by_field(dispute: Dispute) -> bool:
    return not dispute.is_ours and dispute.finding in dispute.rules


def _is_forgiven_by_place(dispute: Dispute) -> bool:
    return not dispute.is_ours and any(part.isdecimal() for part in dispute.finding.path.split("."))


def _is_asked_at_creation(dispute: Dispute) -> bool:
    is_name = re.fullmatch(r"spec\.backends\.\d+\.name", dispute.finding.path) is not None
    return dispute.is_ours and is_name and dispute.finding in dispute.rules


def _is_among_doubled_keys(dispute: Dispute) -> bool:
    if dispute.is_ours:
        return False
    node: SchemaNode | None = dispute.root
    value: JsonValue = dispute.value
    for part in [*dispute.finding.path.split("."), ""]:
        if node is not None and isinstance(value, list) and _has_doubled_keys(node, value):
            return True
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            node, value = node.items if node else None, value[int(part)]
        elif isinstance(value, dict) and part in value:
            below = node.property(part) if node else None
            node, value = below.node if below else node.values if node else None, value[part]
        else:
            return False
    return False


def _has_doubled_keys(node: SchemaNode, items: list[JsonValue]) -> bool:
    names = node.keywords.get("x-kubernetes-list-map-keys", [])
    keys = [tuple(repr(item.get(name)) for name in names) for item in items if isinstance(item, dict)]
    return bool(names) and len(set(keys)) < len(keys)


_CUT: Final = "we list a hundred errors and say that there are more"
_EMPTY_KEY: Final = "jsonschema-rs leaves an empty key out of the path that it reports"

DIFFERENCES: Final[Sequence[Difference]] = (
    Difference(
        name="final newline",
        reason="`$` of Python's re also matches before a final newline, Go's does not",
        pair=SECOND,
        explains=_is_newline,
    ),
    Difference(
        name="digits of other alphabets",
        reason=r"`\d` of Python's re takes every Unicode digit, Go's the ten of ASCII",
        pair=SECOND,
        explains=_is_digits,
    ),
    Difference(
        name="formats unchecked",
        reason="jsonschema checks no format unless further packages are installed",
        pair=SECOND,
        explains=_is_format,
    ),
    Difference(
        name="bounds of another type",
        reason="a number with a fraction where an integer has to be is of a wrong type, and no more is said",
        pair=SECOND,
        explains=_is_bound_of_another_type,
    ),
    Difference(
        name="bounds of another type, on the server",
        reason="as above; beyond the bounds of a format the server tells of these alone",
        pair=SERVER,
        explains=_is_bound_of_another_type,
    ),
    Difference(name="a hundred errors", reason=_CUT, pair=SECOND, explains=_is_cut),
    Difference(name="a hundred errors at the server", reason=_CUT, pair=SERVER, explains=_is_cut),
    Difference(name="empty key", reason=_EMPTY_KEY, pair=SECOND, explains=_is_under_an_empty_key),
    Difference(
        name="empty key at the server", reason=_EMPTY_KEY, pair=SERVER, explains=_is_under_an_empty_key
    ),
    Difference(
        name="a spec among faults of the schema",
        reason="a rule demands the spec of a VariantAutoscaling, and the server checks none beside faults",
        pair=SERVER,
        explains=_is_unchecked_spec,
    ),
    Difference(
        name="one fault of a text",
        reason="the server says of a text that is too long nothing else",
        pair=SERVER,
        explains=_is_second_fault_of_a_text,
    ),
    Difference(
        name="a moment is a type",
        reason="the server calls a malformed date-time a wrong type, we an invalid value",
        pair=SERVER,
        explains=_is_moment,
    ),
    Difference(
        name="leap second",
        reason="RFC 3339 knows the sixtieth second, the server's calendar does not",
        pair=SERVER,
        explains=_is_leap_second,
    ),
    Difference(
        name="odd moment",
        reason="the server takes offsets of a day, a comma before the fraction, and all after a second T",
        pair=SERVER,
        explains=_is_odd_offset,
    ),
    Difference(
        name="a loose digit",
        reason="jsonschema-rs takes signs such as - and / for the last digit of an hour, minute or second",
        pair=SERVER,
        explains=_is_loose_digit,
    ),
    Difference(
        name="third of a kind",
        reason="of items with the same keys the server names the second alone, we each after the first",
        pair=SERVER,
        explains=_is_third_of_a_kind,
    ),
    Difference(
        name="a whole float in a rule",
        reason="the server takes 1.0 for an integer, but no CEL rule can read an object with it",
        pair=SERVER,
        explains=_is_whole_float,
    ),
    Difference(
        name="beyond 64 bits",
        reason="the server calls an integer that it cannot hold a wrong type, we one out of bounds",
        pair=SERVER,
        explains=_is_beyond_64_bits,
    ),
    Difference(
        name="beyond the most items",
        reason="we look at no more items of a list than it may have, the server for duplicates at all",
        pair=SERVER,
        explains=_is_beyond_the_most_items,
    ),
    Difference(
        name="still absent",
        reason="we forgive that a field is absent which was absent before, the server does not",
        pair=UPDATE,
        explains=lambda dispute: not dispute.is_ours and dispute.finding.reason == "FieldValueRequired",
    ),
    Difference(
        name="a rule that cannot read",
        reason="a CEL rule that cannot read a stored value of a wrong type or form is never forgiven",
        pair=UPDATE,
        explains=lambda dispute: not dispute.is_ours and "evaluating rule" in dispute.text,
    ),
    Difference(
        name="a whole float was stored",
        reason="the server stores 1.0 as 1, and then takes 1.0 for a change",
        pair=UPDATE,
        explains=_is_whole_float_again,
    ),
    Difference(
        name="forgiven by field",
        reason="who leaves the field in breach alone is forgiven; the server looks at all that a rule reads",
        pair=UPDATE,
        explains=_is_forgiven_by_field,
    ),
    Difference(
        name="asked at creation",
        reason="the server asks a new Model alone whether names fit into those of Services",
        pair=UPDATE,
        explains=_is_asked_at_creation,
    ),
    Difference(
        name="among doubled keys",
        reason="where keys occur twice in a list map, the server knows the past of none of its items",
        pair=UPDATE,
        explains=_is_among_doubled_keys,
    ),
    Difference(
        name="forgiven by place",
        reason="we know the past of a list's item by its place, the server only that of one with keys",
        pair=UPDATE,
        explains=_is_forgiven_by_place,
    ),
    Difference(
        name="the item named",
        reason="a CEL rule over items can name their list alone, we name the item",
        pair=SERVER,
        explains=_is_item_named,
    ),
    Difference(
        name="no object in a list map",
        reason="the server says of an item that is no object twice that it is none",
        pair=SERVER,
        explains=_is_no_object_in_a_list_map,
    ),
    Difference(
        name="items without keys",
        reason="to the server items that lack their keys have the same ones; we say that they lack them",
        pair=SERVER,
        explains=_is_without_keys,
    ),
    Difference(
        name="a list for a formatted text",
        reason="the server takes any list where a text with a format is declared",
        pair=SERVER,
        explains=_is_list_for_a_formatted_text,
    ),
)
"""All known differences, in the order in which they are tried."""
