"""What plain YAML means to kubectl 1.36; every row was read off `kubectl create --dry-run=client -o json`."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.checking.scalars import key_text, resolve

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
def test_a_plain_scalar_is_what_kubectl_takes_it_for(text: str, want: object) -> None:
    """And of the same JSON type: true is not 1."""
    found = resolve(text, None, plain=True)

    assert (found, type(found)) == (want, type(want))


def test_a_quoted_scalar_is_text() -> None:
    """Whatever it looks like."""
    assert resolve("on", None, plain=False) == "on"


TAGGED = {
    "a number forced to be text": ("5", "str", "5"),
    "text forced to be a number": ("5", "int", 5),
    "a whole number as a float is still whole in JSON": ("3", "float", 3),
    "bytes": ("aGVs bG8=", "binary", "hello"),
    "a tag of somebody's own": ("5", "python/object", "5"),
}


@pytest.mark.parametrize(("text", "tag", "want"), TAGGED.values(), ids=TAGGED.keys())
def test_an_explicit_tag_decides(text: str, tag: str, want: object) -> None:
    """Tags that mean nothing here leave the text as it is."""
    assert resolve(text, f"tag:yaml.org,2002:{tag}", plain=True) == want


WRONG = {
    "text that is said to be a number": ("x", "tag:yaml.org,2002:int", "cannot decode !!str `x` as a !!int"),
    "no base64": ("a", "tag:yaml.org,2002:binary", "invalid base64"),
    "not a number": (".nan", None, "JSON has no number nan"),
    "infinity": ("-.inf", None, "JSON has no number -inf"),
}


@pytest.mark.parametrize(("text", "tag", "why"), WRONG.values(), ids=WRONG.keys())
def test_what_json_cannot_say_is_an_error(text: str, tag: str | None, why: str) -> None:
    """With the words that say what it was taken for."""
    with pytest.raises(ValueError, match=why):
        resolve(text, tag, plain=True)


KEYS = {1: "1", 1.5: "1.5", 1e6: "1e+06", 1.23456789: "1.23456789", "a": "a"}


@pytest.mark.parametrize(("key", "want"), KEYS.items(), ids=KEYS.values())
def test_a_key_becomes_a_member_name(key: object, want: str) -> None:
    """Numbers are written the way Go writes them."""
    assert key_text(key) == want


def test_a_boolean_key_becomes_a_word() -> None:
    """So `y: 1` is a member named true."""
    assert key_text(resolve("y", None, plain=True)) == "true"
