"""Values without parts: within bounds, and those at and beyond bounds that judges like to disagree about."""

from __future__ import annotations

import string
from random import Random
from typing import Final

from apiserver.schema.json import JsonValue
from apiserver.schema.model import Node
from judges.texts import matching

_LONGEST: Final = 600
"""Longer bounds are met by mutation alone: objects stay small enough to be many."""

_SIGNS: Final = string.ascii_letters + string.digits + "-._ /"
_FOREIGN: Final = "é漢٣😀\u00a0"
_MOMENTS: Final = ("2026-01-02T03:04:05Z", "2026-12-31T23:59:59.123456789Z", "2024-02-29T00:00:00+02:00")
_MEANT: Final = ("1", "20.58", "0.5", "example.com:6379", "name-1", "15s", "80Gi", "/metrics", "^a+$", "In")
"""What plain texts often mean to somebody: rules that look into a text are met by one of these."""

WORDS: Final = ("alpha", "beta", "a/b", "~", "a~1b", "app.kubernetes.io/name", "é", "x y", "0", "A")
"""Keys of maps, those among them that a JSON pointer must escape."""


def leaf(node: Node, random: Random) -> JsonValue:
    """Return a value that the keywords of a leaf allow."""
    if "enum" in node.keywords:
        return random.choice(node.keywords["enum"])
    if node.type == "any":
        return junk(random)
    if node.type == "int-or-string":
        return integer(node, random) if random.random() < 0.3 else text(node, random)
    return {"string": text, "integer": integer, "number": number, "boolean": truth}[node.type](node, random)


def text(node: Node, random: Random) -> str:
    """Return a text within the bounds of a node, at one of them now and then."""
    words = node.keywords
    least, most = words.get("minLength", 0), words.get("maxLength", 24)
    if words.get("format") == "date-time":
        return random.choice(_MOMENTS)
    if "pattern" in words:
        return random.choice(matching(words["pattern"], least, most))
    if random.random() < 0.4 and (meant := [item for item in _MEANT if least <= len(item) <= most]):
        return random.choice(meant)
    size = random.choice((least, least, min(most, _LONGEST))) if random.random() < 0.1 else None
    return plain(random, random.randint(least, min(most, least + 12)) if size is None else size)


def plain(random: Random, size: int) -> str:
    """Return a text of some length, beyond ASCII now and then."""
    signs = _SIGNS + _FOREIGN if random.random() < 0.1 else _SIGNS
    return "".join(random.choices(signs, k=size))


def integer(node: Node, random: Random) -> int:
    """Return a whole number within the bounds of a node."""
    least, most = node.keywords.get("minimum", -(2**63)), node.keywords.get("maximum", 2**63 - 1)
    if random.random() < 0.15:
        return int(random.choice((least, most)))
    low = max(least, min(0, most))
    return random.randint(low, min(most, low + 20))


def number(node: Node, random: Random) -> float:
    """Return a number within the bounds of a node."""
    least, most = node.keywords.get("minimum", -1e6), node.keywords.get("maximum", 1e6)
    return random.choice((float(least), float(most), round(random.uniform(least, most), 3)))


def truth(node: Node, random: Random) -> bool:
    """Return true or false."""
    del node
    return random.random() < 0.5


def junk(random: Random, levels: int = 2) -> JsonValue:
    """Return any JSON value, small."""
    flat: list[JsonValue] = [None, True, 0, -1, 1.5, 2.0, 1e3, 2**63, 10**30, "", "x", "é\n", [], {}]
    if levels == 0 or random.random() < 0.6:
        return random.choice(flat)
    if random.random() < 0.5:
        return [junk(random, levels - 1) for _ in range(random.randrange(4))]
    return {random.choice(WORDS): junk(random, levels - 1) for _ in range(random.randrange(4))}
