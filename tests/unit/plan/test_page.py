"""The HTML page of a plan: one self-contained file that is safe for any names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.manifests import deployment, l4_node, listed, variant
from support.outline import outline
from support.plan_verb import Parts, Plan, World

from controller.commands.plan.page import colours, contrast_with_white

HOSTILE = '<script>alert("x")</script><img src=//evil.example onerror=alert(1)>&amp;\'"'


@pytest.fixture
def page(plan: Plan) -> Callable[..., str]:
    """Return a function that makes a plan for objects and returns the page."""

    def write(given: str, *arguments: str) -> str:
        plan("-f", "-", "--html", "plan.html", *arguments, given=given)
        return Path("plan.html").read_text(encoding="utf-8")

    return write


def test_markup_in_names_is_escaped(page: Callable[..., str]) -> None:
    """This holds in text, titles and attributes."""
    target = deployment("x", product="NVIDIA-L4", accelerators=1)

    found = outline(page(listed(target, variant("x", modelID=HOSTILE, accelerator="L4"), l4_node(HOSTILE))))

    names = {name for name, _ in found.elements}
    assert not names & {"script", "img", "link", "iframe", "object", "a", "base", "form"}
    assert not any(key.startswith("on") for _, attributes in found.elements for key in attributes)


def test_control_characters_are_replaced_on_the_page(page: Callable[..., str]) -> None:
    """These include characters that control a terminal or the direction of text."""
    target = deployment("x", product="NVIDIA-L4", accelerators=1)

    text = page(listed(target, variant("x", modelID="evil\x1b[2J\u202emodel", accelerator="L4")))

    assert "evil\ufffd[2J\ufffdmodel" in text
    assert not {"\x1b", "\u202e"} & {*text}


def test_the_page_is_self_contained(page: Callable[..., str], world: World) -> None:
    """It has no addresses, files or fonts, so that it opens without a network."""
    text = page(world())

    assert not re.search(r"https?:|//|@import|url\(|src=|href=", text)
    assert "prefers-color-scheme: dark" in text
    assert text.startswith('<!doctype html>\n<html lang="en">')


def test_the_page_has_the_content_of_the_text(page: Callable[..., str], world: World) -> None:
    """It shows the replicas and their reasons, places, costs, and the proof."""
    text = page(world(), "--demand", "chat=85")

    assert "1 model short: default/chat" in text
    for title in ("Variants", "Nodes", "Who got what", "Prices", "Proof"):
        assert f"<h2>{title}</h2>" in text
    assert "chat needs 9 replicas for 85 requests/s" in text
    assert "Would help: +1 free 4-accelerator L4 node" in text


@pytest.mark.parametrize(("nodes", "is_named"), [(3, True), (1000, False)], ids=["few nodes", "many nodes"])
def test_node_names_are_shown_beside_the_drawing_of_few_nodes_only(
    page: Callable[..., str], world: World, nodes: int, *, is_named: bool
) -> None:
    """Every node is drawn and has a tooltip."""
    text = page(world(nodes=nodes))

    found = outline(text)
    assert sum(name == "svg" for name, _ in found.elements) == nodes
    assert f"<title>node-{nodes}\n" in text
    assert ("</svg>node-3</div>" in text) == is_named
    assert len(text) < 600_000


def test_long_tables_are_folded_with_short_models_first(page: Callable[..., str], parts: Parts) -> None:
    """Variants without replicas come after unchanged ones, and only the first sections are open."""
    few = [outline(page(listed(*parts()))).elements]
    extra = [part for n in range(60) for part in _asleep(f"idle-{n}")]
    text = page(listed(*parts(nodes=1, size=1), *extra), "--demand", "chat=85", "--scale-to-zero")

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


def test_a_drawing_scales_with_the_page(page: Callable[..., str], world: World) -> None:
    """A node of many accelerators is scaled down to a small screen, not cut off."""
    drawings = [a for name, a in outline(page(world(size=72))).elements if name == "svg"]

    assert [a["viewbox"] for a in drawings] == [f"0 0 {a['width']} {a['height']}" for a in drawings]
    assert drawings[0]["width"] == str(72 * 18 + 2)


def test_the_legend_explains_only_the_signs_that_are_used(page: Callable[..., str], world: World) -> None:
    """It covers colours, outlines, and red messages."""
    calm, short = page(world()), page(world(), "--demand", "chat=85")

    assert "coloured: a pod of the variant" in short
    assert "dashed outline" in short
    assert "red: the model gets less than it needs" in short
    assert "red: the model" not in calm
    assert "takes no new pods" not in calm
    assert "pale: the node takes no new pods" in page(world(), "--drain", "node-1")


def test_the_conclusion_names_at_most_a_dozen_models(page: Callable[..., str]) -> None:
    """The table lists all of them."""
    asked = [part for n in range(20) for part in _asleep(f"m-{n:02}")]
    text = page(listed(*asked))

    assert "20 models short: default/m-00, " in text
    assert "default/m-11 and 8 more</p>" in text


def test_the_conclusion_is_green_only_if_all_demand_is_known_and_met(
    page: Callable[..., str], world: World
) -> None:
    """With unknown demand it is advice, and with a shortage it is bad."""
    assert 'class="verdict good"' in page(world())
    assert 'class="verdict advice">no model is known to be short' in page(world(demand=None))
    assert 'class="verdict bad"' in page(world(), "--demand", "chat=700")


def test_white_letters_are_readable_on_every_colour() -> None:
    """The WCAG contrast is at least 4.5, and at most 7, as darker blocks would fade into a dark page."""
    made = colours({("ns", str(n)): f"{n}" for n in range(500)})

    for colour in made.values():
        hue, saturation, lightness = map(int, re.findall(r"\d+", colour))
        assert 4.5 <= contrast_with_white(hue, saturation / 100, lightness / 100) <= 7


def test_contrast_equals_that_of_wcag() -> None:
    """The contrast of red, dark green and black with white is as WCAG defines it."""
    assert round(contrast_with_white(0, 1, 0.5), 2) == 4.0
    assert round(contrast_with_white(120, 1, 64 / 255), 2) == 5.14
    assert round(contrast_with_white(0, 0, 0), 2) == 21


def _asleep(name: str) -> list[Any]:
    """Return a variant without replicas and without demand."""
    target = deployment(name, product="NVIDIA-L4", accelerators=1)
    target["spec"]["replicas"] = 0
    return [target, variant(name, modelID=name, accelerator="L4")]
