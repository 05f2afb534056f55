"""HTML by construction: text is escaped wherever it comes from, and only what was made here is markup."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from controller.offline.spans import harmless

_VOID: Final = frozenset({"meta", "rect"})
_MOST_OPEN: Final = 40


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is HTML already."""

    html: str


Content = Markup | str


def tag(name: str, /, *content: Content, **attributes: str | float) -> Markup:
    """Return an element. Attributes may end in an underscore, as in `class_`; inner ones become dashes."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(str(value))}"'
        for key, value in attributes.items()
        if value != ""
    )
    if name in _VOID:
        return Markup(f"<{name}{said}/>")
    return Markup(f"<{name}{said}>{joined(content).html}</{name}>")


def joined(content: Iterable[Content]) -> Markup:
    """Return pieces as one, text escaped."""
    return Markup("".join(p.html if isinstance(p, Markup) else _escaped(p) for p in content))


def document(title: str, style: str, *content: Content) -> str:
    """Return a whole page, which needs nothing else: no other file, no script, no network."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        Markup(f"<style>{style}</style>"),
    )
    body = tag("body", tag("main", *content))
    return f"<!doctype html>\n{tag('html', head, body, lang='en').html}\n"


def _escaped(text: str) -> str:
    return escape("\n".join(map(harmless, text.split("\n"))))


def table(heads: Sequence[str], rows: Iterable[Markup], *, numbers: Container[str] = ()) -> Markup:
    """Return a table that scrolls where it is too wide; some columns are numbers."""
    cells = (tag("th", text, scope="col", class_="number" if text in numbers else "") for text in heads)
    whole = tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *rows))
    return tag("div", whole, class_="wide")


def number(text: Content) -> Markup:
    """Return a table's cell that is a number."""
    return tag("td", text, class_="number")


def folded(title: str, count: int, content: Markup, *, most_open: int = _MOST_OPEN) -> Markup:
    """Return content under a title that says how much it is; closed where it is long."""
    summary = tag("summary", f"{title}: {count}")
    return tag("details", summary, content, open="open" if count <= most_open else "")


def is_long(count: int) -> bool:
    """Tell whether a list is better closed until somebody opens it."""
    return count > _MOST_OPEN


def section(title: str, *content: Content) -> Markup:
    """Return a part of the page under its title."""
    return tag("section", tag("h2", title), *content)
