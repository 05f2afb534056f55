"""Texts that match a pattern, generated from the pattern, and texts that almost match it."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import re2

Maker = Callable[[Random], str]
"""Generates a text that matches a part of a pattern."""

POOL_SIZE: Final = 48
_FEW: Final = (0, 1, 1, 2, 3)
_LONG: Final = 24
_ESCAPED: Final = {"d": string.digits, "w": string.ascii_letters + string.digits + "_", "s": " \t"}
_ANY: Final = string.ascii_letters + string.digits + " -_./:é漢"
_ARABIC_ZERO: Final = 0x660
_SPECIAL: Final = frozenset("|()[]*+?{}")


@functools.cache
def matching(pattern: str, least: int, most: int) -> tuple[str, ...]:
    """Return different texts that match the pattern, of a length within bounds; they are always the same.

    Raises ValueError if no such text is found, or if the pattern has unsupported syntax.
    """
    make, compiled = maker(pattern), re2.compile(pattern)
    random = Random(pattern)
    made = [make(random) for _ in range(POOL_SIZE * 20)]
    fitting = [text for text in dict.fromkeys(made) if least <= len(text) <= most and compiled.search(text)]
    if not fitting:
        raise ValueError(f"nothing between {least} and {most} characters was made from {pattern!r}")
    return tuple(fitting[:POOL_SIZE])


def near_misses(text: str, random: Random) -> str:
    """Return a text that differs in one step, which an inexact regular expression might accept."""
    place = random.randrange(len(text) + 1)
    changed = random.choice("0aZ-./ é٣\n_:~")
    return random.choice(
        [
            f"{text}\n",
            "",
            f" {text}",
            text[:place] + changed + text[place:],
            text[:place] + text[place + 1 :],
            text[:place] + changed + text[place + 1 :],
            foreign_digits(text),
            text.swapcase(),
            f"{text}\x00",
        ]
    )


def foreign_digits(text: str) -> str:
    """Return a text with Arabic-Indic digits instead of ASCII digits."""
    return "".join(chr(_ARABIC_ZERO + int(sign)) if sign in string.digits else sign for sign in text)


def maker(pattern: str) -> Maker:
    """Return a generator of texts that match a pattern. Raises ValueError for unsupported syntax."""
    make, rest = _either(pattern)
    if rest:
        raise ValueError(f"{rest!r} of {pattern!r} cannot be read")
    return make


def _either(rest: str) -> tuple[Maker, str]:
    branches: list[Maker] = []
    while True:
        branch, rest = _sequence(rest)
        branches.append(branch)
        if not rest.startswith("|"):
            return (lambda random: random.choice(branches)(random)), rest
        rest = rest[1:]


def _sequence(rest: str) -> tuple[Maker, str]:
    parts: list[Maker] = []
    while rest and rest[0] not in "|)":
        part, rest = _atom(rest)
        part, rest = _repeated(part, rest)
        parts.append(part)
    return (lambda random: "".join(part(random) for part in parts)), rest


def _atom(rest: str) -> tuple[Maker, str]:
    head, rest = rest[0], rest[1:]
    if head in "^$":
        return (lambda _: ""), rest
    if head == ".":
        return _one_of(_ANY), rest
    if head == "\\":
        return _one_of(_ESCAPED.get(rest[0], rest[0])), rest[1:]
    if head == "[":
        return _class(rest)
    if head == "(":
        part, rest = _either(rest.removeprefix("?:"))
        return part, rest.removeprefix(")")
    if head in _SPECIAL:
        raise ValueError(f"{head!r} in a place where it is not known")
    return _one_of(head), rest


def _class(rest: str) -> tuple[Maker, str]:
    negated, rest = rest.startswith("^"), rest.removeprefix("^")
    signs = ""
    while not rest.startswith("]") or not signs:
        first, rest = _class_member(rest)
        if rest.startswith("-") and rest[1] != "]":
            last, rest = _class_member(rest[1:])
            first = "".join(map(chr, range(ord(first), ord(last) + 1)))
        signs += first
    return _one_of([sign for sign in _ANY if sign not in signs] if negated else signs), rest[1:]


def _class_member(rest: str) -> tuple[str, str]:
    if rest.startswith("\\"):
        return _ESCAPED.get(rest[1], rest[1]), rest[2:]
    return rest[0], rest[1:]


def _repeated(part: Maker, rest: str) -> tuple[Maker, str]:
    if rest.startswith("{"):
        bounds, rest = rest[1:].split("}", 1)
        least, _, most = bounds.partition(",")
        highest = int(most) if most else int(least) + (3 if "," in bounds else 0)
        return _times(part, range(int(least), highest + 1)), rest.removeprefix("?")
    for sign, counts in (("*", (*_FEW, _LONG)), ("+", (1, *_FEW[1:], _LONG)), ("?", (0, 1))):
        if rest.startswith(sign):
            return _times(part, counts), rest[1:].removeprefix("?")
    return part, rest


def _times(part: Maker, counts: Sequence[int]) -> Maker:
    return lambda random: "".join(part(random) for _ in range(random.choice(counts)))


def _one_of(signs: Sequence[str]) -> Maker:
    return lambda random: random.choice(signs)
