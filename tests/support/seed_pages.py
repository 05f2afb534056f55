"""Reads a reference page as it was published: its tables as facts, its sentences as digests.

The pages are what `crd-ref-docs` writes: a section for each type, with a table of fields or of values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from apiserver.schema.json import Json, JsonValue

DIGEST_CHARACTERS: Final = 10

_HEADING: Final = re.compile(r"^#{1,5} (.+)$")
_TYPE_SECTION: Final = re.compile(r"^_(Appears in:|Underlying type:|Validation:)|^\| Field ", re.MULTILINE)
_FACT: Final = re.compile(r"^(\w+): (.+)$")
_CELL_END: Final = re.compile(r"(?<!\\)\|")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_MAP: Final = re.compile(r"^object \(keys:string, values:(\w+)\)$")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])")
_GO_MEMBER: Final = re.compile(r"\s(?=\w+:)")
_PARAGRAPH_ENDS: Final = ("|", "- ", "* ", "#", "_", "```")
_SILENT: Final = ("- [", "_", "```", "#")
_KEYWORDS: Final = {
    "Minimum": "minimum",
    "Maximum": "maximum",
    "MinLength": "minLength",
    "MaxLength": "maxLength",
    "MinItems": "minItems",
    "MaxItems": "maxItems",
    "MinProperties": "minProperties",
    "MaxProperties": "maxProperties",
    "Pattern": "pattern",
    "Enum": "enum",
}


@dataclass(slots=True)
class PageType:
    """What a page says of a type: constraints of a named text, or rows."""

    facts: Json = field(default_factory=dict)
    rows: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True)
class Page:
    """What a page says: types by name, and its sentences as (place, digest, text)."""

    types: dict[str, PageType] = field(default_factory=dict)
    sentences: list[tuple[str, str, str]] = field(default_factory=list)

    def say(self, place: str, text: str) -> None:
        """Take up the sentences of a text, of a cell or of a paragraph."""
        self.sentences += [(place, digest(sentence), sentence) for sentence in _sentences(text)]


def read_page(path: Path) -> Page:
    """Return what a page says.

    Raises ValueError for a fact that is not understood: every one counts.
    """
    page = Page()
    for heading, lines in _chapters(path.read_text(encoding="utf-8")):
        if _TYPE_SECTION.search("\n".join(lines)):
            page.types[heading] = PageType()
        for paragraph in _paragraphs(lines):
            _take(page, heading, paragraph)
    return page


def digest(sentence: str) -> str:
    """Return by what a sentence is known here, whatever its line breaks."""
    return hashlib.sha256(" ".join(sentence.split()).encode()).hexdigest()[:DIGEST_CHARACTERS]


def _chapters(text: str) -> Iterator[tuple[str, list[str]]]:
    heading, lines, in_code = "", list[str](), False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        found = None if in_code else _HEADING.match(line)
        if found:
            yield heading, lines
            heading, lines = found.group(1), []
        else:
            lines.append(line)
    yield heading, lines


def _paragraphs(lines: list[str]) -> Iterator[str]:
    running: list[str] = []
    for line in [*lines, ""]:
        if running and (not line.strip() or line.startswith(_PARAGRAPH_ENDS)):
            yield " ".join(running)
            running = []
        if line.strip():
            running.append(line)
    assert not running


def _take(page: Page, place: str, paragraph: str) -> None:
    item = page.types.get(place)
    if item is not None and paragraph.startswith("| "):
        cells = [cell.strip() for cell in _CELL_END.split(paragraph)[1:-1]]
        if cells[0] not in {"Field", "---"}:
            _take_row(page, place, cells)
    elif item is not None and paragraph.startswith("_Underlying type:_"):
        item.facts["underlying"] = paragraph.split("_")[-2]
    elif item is not None and _is_fact(paragraph.removeprefix("- ")):
        item.facts |= _fact(paragraph.removeprefix("- "))
    elif not paragraph.startswith(_SILENT) or paragraph.startswith("# "):
        page.say(place, paragraph.removeprefix("- ").removeprefix("* "))


def _take_row(page: Page, place: str, cells: list[str]) -> None:
    name, _, written = cells[0].partition(" ")
    name = name.strip("`")
    if not written:
        page.types[place].facts.setdefault("values", []).append(name)
        page.say(f"{place}.{name}", cells[1])
        return
    row = page.types[place].rows.setdefault(name, {"type": _type(written.strip("_"))})
    if re.fullmatch(r"`[^`]+`", cells[1]):
        row["const"] = cells[1].strip("`")
        return
    page.say(f"{place}.{name}", cells[1])
    if cells[2]:
        row["default"] = _default(cells[2], row["type"])
    for text in filter(None, (part.strip() for part in cells[3].split("<br />"))):
        row |= _fact(text)


def _type(written: str) -> str:
    text = _LINK.sub(r"\1", written)
    found = _MAP.match(text)
    return f"{found.group(1)} map" if found else text


def _is_fact(text: str) -> bool:
    found = _FACT.match(text)
    return found is not None and found.group(1) in _KEYWORDS


def _fact(text: str) -> Json:
    found = _FACT.match(text.replace("\\|", "|"))
    if found is None:
        raise ValueError(f"not understood: {text}")
    name, value = found.groups()
    if name in {"Required", "Optional"}:
        return {"required": name == "Required"}
    if name == "Enum":
        return {"enum": value.strip("[]").split()}
    if name == "Pattern":
        return {"pattern": value.strip("`")}
    return {_KEYWORDS[name]: int(float(value))}


def _default(text: str, written: str) -> JsonValue:
    if text.startswith("[map["):
        members = _GO_MEMBER.split(text.removeprefix("[map[").removesuffix("]]"))
        return [dict(member.split(":", 1) for member in members)]
    return int(text) if written == "integer" else text


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text; a line of a cell that begins anew begins a sentence.

    A single word is none: it ends what stands before it.
    """
    found: list[str] = []
    for piece in _pieces(text):
        if found and len(piece.split()) == 1:
            found[-1] += f" {piece}"
        else:
            found.append(piece)
    return found


def _pieces(text: str) -> Iterator[str]:
    running = ""
    for line in (part.strip() for part in text.replace("\\|", "|").split("<br />")):
        if running and not line[:1].islower():
            yield from filter(None, _SENTENCE_END.split(running))
            running = line
        else:
            running = f"{running} {line}".strip()
    yield from filter(None, _SENTENCE_END.split(running))
