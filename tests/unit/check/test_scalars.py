"""Plain YAML scalars in kubectl 1.36, as read from `kubectl create --dry-run=client -o json`."""

from __future__ import annotations

from typing import Any

import pytest

from controller.commands.check.scalars import key_text, resolve

PLAIN: dict[str, Any] = {
    "": None,
    "~": None,
    "Null": None,
    "nUll": "nUll",
    "yes": True,
    "On": True,
    "y": True,
    "off": False,
    "N": False,
    "tRUE": "tRUE",
    "5": 5,
    "+5": 5,
    "010": 8,
    "08": 8,
    "0o17": 15,
    "0x1F": 31,
    "-0b101": -5,
    "1_000": 1000,
    "_1": "_1",
    "0x": "0x",
    "1e6": 1000000,
    "1e+06": 1000000,
    "1.0": 1,
    "1.": 1,
    "1.5": 1.5,
    ".5": 0.5,
    ".5_0": 0.5,
    "1e999": "1e999",
    "1:30": "1:30",
    "2001-01-01": "2001-01-01",
    "2001-12-14t21:59:43.10-05:00": "2001-12-14t21:59:43.10-05:00",
    "9223372036854775807": 9223372036854775807,
    "9223372036854775808": 9223372036854776000,
    "18446744073709551616": 18446744073709551616.0,
    "=": "=",
}


@pytest.mark.parametrize(("text", "want"), PLAIN.items(), ids=[text or "nothing" for text in PLAIN])
def test_a_plain_scalar_has_the_value_that_kubectl_decodes(text: str, want: object) -> None:
    """The JSON type is the same, too: true is not 1."""
    found = resolve(text, None, plain=True)

    assert (found, type(found)) == (want, type(want))


def test_a_quoted_scalar_is_text() -> None:
    """This holds even if it resembles another type."""
    assert resolve("on", None, plain=False) == "on"


TAGGED = {
    "a number tagged as text": ("5", "str", "5"),
    "a number tagged as an integer": ("5", "int", 5),
    "an integer tagged as a float is still an integer in JSON": ("3", "float", 3),
    "bytes": ("aGVs bG8=", "binary", "hello"),
    "a custom tag": ("5", "python/object", "5"),
}


@pytest.mark.parametrize(("text", "tag", "want"), TAGGED.values(), ids=TAGGED.keys())
def test_an_explicit_tag_determines_the_type(text: str, tag: str, want: object) -> None:
    """Unknown tags leave the text as it is."""
    assert resolve(text, f"tag:yaml.org,2002:{tag}", plain=True) == want


WRONG = {
    "text tagged as a number": ("x", "tag:yaml.org,2002:int", "cannot decode !!str `x` as a !!int"),
    "no base64": ("a", "tag:yaml.org,2002:binary", "invalid base64"),
    "not a number": (".nan", None, "JSON has no number nan"),
    "infinity": ("-.inf", None, "JSON has no number -inf"),
}


@pytest.mark.parametrize(("text", "tag", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_value_that_json_cannot_express_is_an_error(text: str, tag: str | None, why: str) -> None:
    """The message states the reason."""
    with pytest.raises(ValueError, match=why):
        resolve(text, tag, plain=True)


KEYS = {1: "1", 1.5: "1.5", 1e6: "1e+06", 1.23456789: "1.23456789", "a": "a"}


@pytest.mark.parametrize(("key", "want"), KEYS.items(), ids=KEYS.values())
def test_a_key_becomes_a_member_name(key: object, want: str) -> None:
    """Numbers have the format of Go."""
    assert key_text(key) == want


def test_a_boolean_key_becomes_text() -> None:
    """So `y: 1` is a member named true."""
    assert key_text(resolve("y", None, plain=True)) == "true"
