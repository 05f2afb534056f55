"""The text output of a plan: width, folding, colours, and removal of control characters."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from support.manifests import deployment, listed, variant
from support.plan_verb import Parts, Plan, World

from controller.commands.plan.terminal import Tone, print_lines, terminal, wrapping_text


class Stream(io.StringIO):
    """A stub of standard output that may be a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return self.is_terminal


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(
    plan: Plan, world: World, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Messages wrap, nodes are drawn side by side as they fit, and the table drops columns last."""
    monkeypatch.setenv("COLUMNS", str(columns))

    _, out, _ = plan("-f", "-", "--demand", "chat=60", given=world(nodes=9))

    assert max(cell_len(line) for line in out.splitlines()) <= columns


def test_equal_nodes_are_drawn_once(plan: Plan, world: World) -> None:
    """The output for 1000 equal nodes has fewer than 25 lines."""
    _, out, _ = plan("-f", "-", given=world(nodes=1000))

    assert "L4: 1000 nodes, 4000 accelerators: 2 taken, 0 by others, 3998 free" in out
    assert "999 x node-2 .. node-1000 . . . ." in out
    assert len(out.splitlines()) < 25


def test_a_range_of_names_contains_no_node_that_is_drawn_separately(plan: Plan, world: World) -> None:
    """Equal nodes with a different one between them are two ranges."""
    _, out, _ = plan("-f", "-", "--drain", "node-3", given=world(nodes=6))

    assert "4 x node-2, node-4 .. node-6 " in out
    assert " .. node-3" not in out


def test_too_many_ranges_of_names_end_in_dots(plan: Plan, world: World) -> None:
    """The nodes that are not listed are not included in a range."""
    drained = [part for number in range(3, 30, 2) for part in ("--drain", f"node-{number}")]

    _, out, _ = plan("-f", "-", *drained, given=world(nodes=30))

    assert "15 x node-2, node-4, node-6, ... . . . ." in out


def test_each_cell_of_a_node_is_one_accelerator(plan: Plan, parts: Parts) -> None:
    """Letters are variants, + marks new pods, # others, a dot free accelerators, ! nodes without new pods."""
    others = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "training", "namespace": "research"},
        "spec": {"nodeName": "node-1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": 3}}}]},
    }

    _, out, _ = plan(
        "-f", "-", "--drain", "node-2", "--demand", "chat=0", given=listed(*parts(nodes=3), others)
    )

    assert "!node-2 . . . ." in out
    assert "# # # " in out
    assert "A+" in out
    assert "B+" in out


def test_a_large_node_continues_in_the_next_line(
    plan: Plan, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its accelerators are drawn."""
    monkeypatch.setenv("COLUMNS", "60")

    _, out, _ = plan("-f", "-", given=world(nodes=1, size=72))

    drawn = out[out.index("L4: 1 node,") : out.index("  letter:")].split("\n", 1)[1]
    assert sum(drawn.count(sign) for sign in (".", "+")) == 72


def test_control_characters_in_files_do_not_reach_the_terminal(plan: Plan) -> None:
    """Names come from files that others may have written."""
    hostile = "evil\x1b[2J\u202emodel"
    given = listed(
        deployment("x", product="NVIDIA-L4", accelerators=1), variant("x", modelID=hostile, accelerator="L4")
    )

    _, out, _ = plan("-f", "-", given=given)

    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "evil\ufffd[2J\ufffdmodel" in out


@pytest.mark.parametrize("wide", ["漢字", "e\u0301e\u0301"], ids=["wide letters", "combining marks"])
def test_columns_stay_aligned_for_wide_and_combining_characters(plan: Plan, wide: str) -> None:
    """Widths are those of a terminal, not the number of characters."""
    named = [variant(name, modelID=model, accelerator="L4") for name, model in (("x", wide), ("y", "abcd"))]
    targets = [deployment(name, product="NVIDIA-L4", accelerators=1) for name in ("x", "y")]

    _, out, _ = plan("-f", "-", given=listed(*targets, *named))

    head, *rows = out.splitlines()[:3]
    assert {cell_len(row[: row.index("L4")]) for row in rows} == {head.index("ON")}


def test_a_narrow_terminal_drops_columns_and_wraps_names(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of a name is lost."""
    monkeypatch.setenv("COLUMNS", "60")
    name = "-".join(["abcdefgh"] * 6)
    target = deployment(name, product="NVIDIA-L4", accelerators=1)

    _, out, _ = plan("-f", "-", given=listed(target, variant(name, modelID="m", accelerator="L4")))

    rows = out.partition("\n\n")[0].splitlines()
    assert rows[0].split() == ["VARIANT", "REPLICAS", "UNMET", "WHY"]
    assert "".join(row[3:].split()[0] for row in rows[1:]) == f"default/{name}"


COLOURED = {
    "a terminal": ({}, True, True),
    "a terminal with NO_COLOR": ({"NO_COLOR": "1"}, True, False),
    "a pipe": ({}, False, False),
}


@pytest.mark.parametrize(("environment", "is_terminal", "is_coloured"), COLOURED.values(), ids=COLOURED)
def test_colours_are_used_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], *, is_terminal: bool, is_coloured: bool
) -> None:
    """The text is the same without them."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", Stream(is_terminal=is_terminal))

    printed = print_lines([wrapping_text("short", Tone.BAD)], terminal())

    assert printed == ("\x1b[31mshort\x1b[0m\n" if is_coloured else "short\n")
