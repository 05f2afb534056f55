"""The page for a browser: one file, well-formed, and harmless whatever names are in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.manifests import deployment, listed, variant
from support.outline import outline

from controller.offline.colours import colours, contrast_with_white

Plan = Callable[..., tuple[int, str, list[str]]]
World = Callable[..., str]

HOSTILE = '<script>alert("x")</script><img src=//evil.example onerror=alert(1)>&amp;\'"'


@pytest.fixture
def page(plan: Plan) -> Callable[..., str]:
    """Return a function that plans for some objects and returns the page."""

    def write(given: str, *arguments: str) -> str:
        plan("-f", "-", "--html", "plan.html", *arguments, given=given)
        return Path("plan.html").read_text(encoding="utf-8")

    return write


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


def test_nothing_hides_in_a_line(page: Callable[..., str]) -> None:
    """Signs that steer a terminal or turn the direction of text are shown as what they are not."""
    target = deployment("x", product="NVIDIA-L4", accelerators=1)

    text = page(listed(target, variant("x", modelID="evil\x1b[2J\u202emodel", accelerator="L4")))

    assert "evil\ufffd[2J\ufffdmodel" in text
    assert not {"\x1b", "\u202e"} & {*text}


def test_the_page_needs_nothing_else(page: Callable[..., str], world: World) -> None:
    """No address, no file, no font: it opens without a network, for ever."""
    text = page(world())

    assert not re.search(r"https?:|//|@import|url\(|src=|href=", text)
    assert "prefers-color-scheme: dark" in text
    assert text.startswith('<!doctype html>\n<html lang="en">')


def test_the_page_says_what_the_text_says(page: Callable[..., str], world: World) -> None:
    """Who gets what, why, where, for how much, and how good that is."""
    text = page(world(), "--demand", "chat=70")

    assert "1 model short: default/chat" in text
    for title in ("Variants", "Nodes", "Who got what", "Prices", "Proof"):
        assert f"<h2>{title}</h2>" in text
    assert "chat needs 9 replicas for 70 requests/s" in text
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


def test_long_tables_are_folded_with_what_is_urgent_first(
    page: Callable[..., str], parts: Callable[..., list[Any]]
) -> None:
    """A hundred variants are no wall: who goes short comes first, who has nothing to do last."""
    few = [outline(page(listed(*parts()))).elements]
    extra = [part for n in range(60) for part in _asleep(f"idle-{n}")]
    text = page(listed(*parts(nodes=1, size=1), *extra), "--demand", "chat=70", "--scale-to-zero")

    assert not any(name == "details" and "open" not in attributes for name, attributes in few[0])
    titles = re.findall(r"<details[^>]*><summary>([^<]+)</summary>", text)
    assert titles[0].startswith("All: ")
    assert [title.partition(":")[0] for title in titles[1:]] == [
        "Models that are short",
        "Unchanged",
        "Variants without replicas",
        "All models",
        "All variants",
    ]
    assert text.count("<details><summary>") == 4, "all but the few that go short are closed"
    assert text.count('<tr class="first">') == 62


def test_a_drawing_shrinks_with_the_page(page: Callable[..., str], world: World) -> None:
    """A node of many accelerators is scaled to a small screen, not cut."""
    drawings = [a for name, a in outline(page(world(size=72))).elements if name == "svg"]

    assert [a["viewbox"] for a in drawings] == [f"0 0 {a['width']} {a['height']}" for a in drawings]
    assert drawings[0]["width"] == str(72 * 18 + 2)


def test_signs_are_explained_where_they_are_used(page: Callable[..., str], world: World) -> None:
    """Colours, outlines and red sentences: what is drawn is told, and nothing else."""
    calm, short = page(world()), page(world(), "--demand", "chat=70")

    assert "coloured: a pod of the variant" in short
    assert "dashed outline" in short
    assert "red: the model gets less than it needs" in short
    assert "red: the model" not in calm
    assert "takes no new pods" not in calm
    assert "pale: the node takes no new pods" in page(world(), "--drain", "node-1")


def test_the_conclusion_names_a_dozen_models(page: Callable[..., str]) -> None:
    """A hundred names in a headline help nobody: the table has them all."""
    asked = [part for n in range(20) for part in _asleep(f"m-{n:02}")]
    text = page(listed(*asked))

    assert "20 models short: default/m-00, " in text
    assert "default/m-11 and 8 more</p>" in text


def test_unknown_demand_is_no_good_news(page: Callable[..., str], world: World) -> None:
    """Green is for what is known to be enough."""
    assert 'class="verdict good"' in page(world())
    assert 'class="verdict advice">no model is known to be short' in page(world(demand=None))
    assert 'class="verdict bad"' in page(world(), "--demand", "chat=700")


def test_white_letters_are_readable_on_every_colour() -> None:
    """WCAG's 4.5 at least, 7 at most: beyond it blocks fade into a dark page."""
    made = colours({("ns", str(n)): f"{n}" for n in range(500)})

    for colour in made.values():
        hue, saturation, lightness = map(int, re.findall(r"\d+", colour))
        assert 4.5 <= contrast_with_white(hue, saturation / 100, lightness / 100) <= 7


def test_contrast_is_what_browsers_measure() -> None:
    """Pure red, black and white, as in WCAG's own examples."""
    assert round(contrast_with_white(0, 1, 0.5), 2) == 4.0
    assert round(contrast_with_white(120, 1, 64 / 255), 2) == 5.14
    assert round(contrast_with_white(0, 0, 0), 2) == 21


def _asleep(name: str) -> list[Any]:
    """Return a variant without replicas, of which nobody asks anything."""
    target = deployment(name, product="NVIDIA-L4", accelerators=1)
    target["spec"]["replicas"] = 0
    return [target, variant(name, modelID=name, accelerator="L4")]
