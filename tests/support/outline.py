"""A strict parser for the HTML pages of this project."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "rect"}


class Outline(HTMLParser):
    """Parses a page and checks that every opened element is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        """Record an element without content."""
        assert name in VOID
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        """Close the innermost element."""
        assert self.open.pop() == name


def outline(text: str) -> Outline:
    """Return the parsed elements of a page."""
    found = Outline()
    found.feed(text)
    found.close()
    assert found.open == []
    return found
