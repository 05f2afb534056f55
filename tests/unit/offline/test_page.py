"""The page for a browser: one file, well-formed, and harmless whatever names are in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from controller.offline.markup import tag
from manifests import deployment, listed, variant

Plan = Callable[..., tuple[int, str, list[str]]]
World = Callable[..., str]

HOSTILE = '<script>alert("x")</script><img src=//evil.example onerror=alert(1)>&amp;\'"'
VOID = {"meta", "rect"}


class Outline(HTMLParser):
    """Reads a page strictly: every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        """Take note of an element."""
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        """Take note of an element without content."""
        assert name in VOID
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        """Close the innermost element."""
        assert self.open.pop() == name


@pytest.fixture
def page(plan: Plan) -> Callable[..., str]:
    """Return a function that plans for some objects and returns the page."""

    def write(given: str, *arguments: str) -> str:
        plan("-f", "-", "--html", "plan.html", *arguments, given=given)
        return Path("plan.html").read_text(encoding="utf-8")

    return write


def outline(text: str) -> Outline:
    """Return what a page consists of."""
    found = Outline()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def test_hostile_names_stay_text(page: Callable[..., str]) -> None:
    """In text, in titles and in attributes."""
    target = deployment("x", product="NVIDIA-L4", accelerators=1)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": HOSTILE, "labels": {"nvidia.com/gpu.product": "NVIDIA-L4"}},
        "status": {"allocatable": {"nvidia.com/gpu": 4}},
    }

    found = outline(page(listed(target, variant("x", modelID=HOSTILE, accelerator="L4"), node)))

    names = {name for name, _ in found.elements}
    assert not names & {"script", "img", "link", "iframe", "object", "a", "base", "form"}
    assert not any(key.startswith("on") for _, attributes in found.elements for key in attributes)


def test_the_page_needs_nothing_else(page: Callable[..., str], world: World) -> None:
    """No address, no file, no font: it opens without a network, for ever."""
    text = page(world())

    assert not re.search(r"https?:|//|@import|url\(|src=|href=", text)
    assert "prefers-color-scheme: dark" in text
    assert text.startswith('<!doctype html>\n<html lang="en">')


def test_the_page_says_what_the_text_says(page: Callable[..., str], world: World) -> None:
    """Who gets what, why, where, for how much, and how good that is."""
    text = page(world(), "--demand", "chat=70k")

    assert "1 model short: default/chat" in text
    for title in ("Variants", "Nodes", "Who got what", "Prices", "Proof"):
        assert f"<h2>{title}</h2>" in text
    assert "chat needs 9 replicas for 70.0k tokens" in text
    assert "Would help: +1 free 4-accelerator L4 node" in text


@pytest.mark.parametrize(("nodes", "is_named"), [(3, True), (1000, False)], ids=["few nodes", "many nodes"])
def test_the_map_suits_its_size(
    page: Callable[..., str], world: World, nodes: int, *, is_named: bool
) -> None:
    """Every node is drawn and told under the pointer; only a few have their names beside them."""
    text = page(world(nodes=nodes))

    found = outline(text)
    assert sum(name == "svg" for name, _ in found.elements) == nodes
    assert f"<title>node-{nodes}\n" in text
    assert ("</svg>node-3</div>" in text) == is_named
    assert len(text) < 600_000


def test_only_what_was_made_is_markup() -> None:
    """Attributes lose a trailing underscore, and empty ones are left out."""
    made = tag("p", "a<b", tag("b", "&"), class_='x"y', id="")

    assert made.html == '<p class="x&quot;y">a&lt;b<b>&amp;</b></p>'
