"""Values in YAML as kubectl reads them, by the rules of go-yaml v2, and output that it reads as the same.

They are neither those of YAML 1.1 nor of 1.2: `on` and `y` are booleans, `1e6` becomes the integer 1000000 in
JSON, `010` is 8, `08` is 8 too, `1:30` and dates are text. Source: `go.yaml.in/yaml/v2/resolve.go`,
`sigs.k8s.io/yaml/yaml.go`, and kubectl itself.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import yaml

from apiserver.schema.json import Json, JsonValue

if TYPE_CHECKING:
    _Dumper = yaml.SafeDumper
else:
    _Dumper = yaml.CSafeDumper

_PREFIX: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_PREFIX}str"
_BINARY: Final = f"{_PREFIX}binary"
_TAGS: Final[Mapping[str, type | None]] = {
    f"{_PREFIX}bool": bool,
    f"{_PREFIX}int": int,
    f"{_PREFIX}float": float,
    f"{_PREFIX}null": None,
}
_WORDS: Final[Mapping[str, bool | float | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BARE_FRACTION: Final = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_LONGEST_NUMBER_CHARACTERS: Final = 400
_LARGEST_INTEGER: Final = 2**63 - 1
_LARGEST_UNSIGNED: Final = 2**64 - 1
_NO_BREAKS: Final = 2**31 - 1


def resolve(text: str, tag: str | None, *, plain: bool) -> JsonValue:
    """Return the JSON value of a scalar; tag is the long form of an explicit one, plain means unquoted.

    Raises ValueError for a scalar that does not match its explicit tag, and for a number without a JSON form.
    """
    if tag == _BINARY:
        return _binary(text)
    if tag == _TEXT or (tag is None and not plain) or (tag is not None and tag not in _TAGS):
        return text
    value = _scalar_value(text)
    if tag is not None:
        value = _apply_tag(value, text, tag)
    return as_json_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def as_json_number(value: float) -> int | float:
    """Return a number as the API server receives it: whole ones are integers within 64 bits.

    kubectl has already rounded integers beyond the signed range. Raises ValueError for infinities and NaN,
    OverflowError for integers beyond the range of a float.
    """
    if isinstance(value, int) and -_LARGEST_INTEGER - 1 <= value <= _LARGEST_INTEGER:
        return value
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"JSON has no number {number}")
    whole = int(Decimal(repr(number))) if number.is_integer() else None
    return whole if whole is not None and -_LARGEST_INTEGER - 1 <= whole <= _LARGEST_UNSIGNED else number


def key_text(key: JsonValue) -> str:
    """Return the member name for a mapping key. Raises ValueError for null, lists and mappings."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int():
            return str(key)
        case float():
            return short if float(short := f"{key:g}") == key else repr(key)
        case _:
            raise ValueError(f"a key must be text, a number or a boolean, not {_type_word(key)}")


def _scalar_value(text: str) -> JsonValue:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        return float(text) if _BARE_FRACTION.fullmatch(text) else text
    if text[0] not in "+-0123456789" or len(text) > _LONGEST_NUMBER_CHARACTERS:
        return text
    digits = text.replace("_", "")
    integer = _integer(digits) if _INTEGER.fullmatch(digits) else None
    if integer is not None:
        return integer
    if _FLOAT.fullmatch(digits) and math.isfinite(number := float(digits)):
        return number
    return text


def _integer(digits: str) -> int | None:
    sign, bare = (-1 if digits[0] == "-" else 1), digits.lstrip("+-")
    is_octal = len(bare) > 1 and bare[0] == "0" and bare[1].isdigit()
    value = sign * int(bare, 8 if is_octal else 0)
    largest = _LARGEST_UNSIGNED if digits[0] not in "+-" else _LARGEST_INTEGER
    return value if -_LARGEST_INTEGER - 1 <= value <= largest else None


def _apply_tag(value: JsonValue, text: str, tag: str) -> JsonValue:
    expected = _TAGS[tag]
    if expected is None:
        return None
    if expected is float and type(value) is int:
        return float(value)
    if type(value) is not expected:
        raise ValueError(f"cannot decode {_type_word(value)} `{text}` as a !!{tag.removeprefix(_PREFIX)}")
    return value


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
    except binascii.Error as error:
        raise ValueError("!!binary value contains invalid base64 data") from error


def _type_word(value: JsonValue) -> str:
    names = {str: "!!str", bool: "!!bool", int: "!!int", float: "!!float", dict: "a mapping", list: "a list"}
    return names.get(type(value), "null")


def _is_text_unquoted(text: str) -> bool:
    return isinstance(_scalar_value(text), str)


class _ManifestDumper(_Dumper):
    """A dumper that quotes what go-yaml, and not only PyYAML, would misread, and writes no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True, to write every value out."""
        del data
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return a node that is read as text again: unquoted `y`, `on` and `1e3` would not be."""
        style = None if _is_text_unquoted(text) else '"'
        return self.represent_scalar(_TEXT, text, style=style)


_ManifestDumper.add_representer(str, _ManifestDumper.represent_text)


def as_yaml(value: Json) -> str:
    """Return an object as a YAML document with its separator, members in their order."""
    return yaml.dump(
        value, Dumper=_ManifestDumper, explicit_start=True, sort_keys=False, allow_unicode=True, width=1000
    )


def as_flow_yaml(value: JsonValue) -> str:
    """Return a list or mapping as YAML in flow style, such as `{a: 1, b: [2]}`."""
    text: str = yaml.dump(
        value,
        Dumper=_ManifestDumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=_NO_BREAKS,
    )
    return text.removesuffix("\n")
