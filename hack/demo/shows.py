"""The display of the demo: a screen on a terminal, a picture of it, or plain lines for logs and pipes."""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hack.demo.checks import gives_way
from hack.demo.observation import (
    AcceleratorView,
    BindingView,
    BoundView,
    DemoObservation,
    ModelView,
    VariantView,
)
from hack.demo.scenario import Chapter, chapter_at

_DECISIONS = 5
_NOTES = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One observation with its chapter and the most recent texts."""

    observation: DemoObservation
    chapter: Chapter
    decisions: tuple[str, ...]
    """The most recent decisions' messages, newest last."""

    notes: tuple[str, ...]
    """The most recent actions and events, newest last."""


class FrameMaker:
    """Makes frames, and keeps the last few texts of each kind."""

    def __init__(self) -> None:
        self._decisions: deque[str] = deque(maxlen=_DECISIONS)
        self._notes: deque[str] = deque(maxlen=_NOTES)
        self._known: dict[str, tuple[str, str, int | None]] = {}

    def note(self, text: str) -> None:
        """Add an action or event."""
        self._notes.append(text)

    def frame(self, observation: DemoObservation) -> Frame:
        """Add the decisions that changed in more than their figures, and return the frame."""
        for variant in observation.variants:
            state = (variant.reason, variant.bound_by, variant.desired_replicas)
            if variant.message and self._known.get(variant.name) != state:
                self._known[variant.name] = state
                if variant.reason != "Steady":
                    self._decisions.append(variant.message)
        for binding in observation.bindings:
            desired = sum(target.desired_replicas or 0 for target in binding.targets)
            if binding.message and self._known.get(binding.name) != ("", "", desired):
                self._known[binding.name] = ("", "", desired)
                self._decisions.append(f"{binding.name}: {binding.message}")
        return Frame(
            observation=observation,
            chapter=chapter_at(observation.seconds),
            decisions=tuple(self._decisions),
            notes=tuple(self._notes),
        )


class Show(Protocol):
    """A display of the demo."""

    def update(self, frame: Frame) -> None:
        """Show a frame."""

    def note(self, text: str) -> None:
        """Show a text at once."""

    def close(self) -> None:
        """Release the terminal."""


_REASON_STYLES = {"ScaleUp": "green", "ScaleDown": "cyan", "Shortage": "bold red", "Holding": "yellow"}
_BAR_CELLS = 20


def screen(frame: Frame) -> RenderableType:
    """Return the whole screen: heading, models, accelerators, recent decisions and notes."""
    return Group(
        _heading(frame),
        _models(frame.observation),
        *map(_binding, frame.observation.bindings),
        _accelerators(frame.observation),
        _lines("decisions", frame.decisions),
        _lines("events", frame.notes),
    )


def _heading(frame: Frame) -> RenderableType:
    minutes, seconds = divmod(int(frame.observation.seconds), 60)
    heading = Table.grid(expand=True)
    heading.add_column()
    heading.add_column(justify="right")
    heading.add_row(
        Text.assemble((f" {frame.chapter.name} ", "bold reverse"), f" {frame.chapter.headline}"),
        Text.assemble(
            ("cost ", "dim"),
            (f"{frame.observation.cost_per_hour:,.0f}/h", "bold"),
            ("  time ", "dim"),
            f"{minutes}:{seconds:02d}",
        ),
    )
    return heading


def _models(observation: DemoObservation) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    table.add_column("model and class")
    table.add_column("req/s", justify="right")
    table.add_column("TTFT p90 / target", justify="right")
    table.add_column("variant")
    table.add_column("cost", justify="right")
    table.add_column("ready", justify="right")
    table.add_column("current -> desired", justify="right")
    table.add_column("decision")
    for model in observation.models:
        for row, variant in enumerate(model.variants):
            table.add_row(*_model_cells(model, row), *_variant_cells(variant))
        table.add_section()
    return table


def _model_cells(model: ModelView, row: int) -> tuple[RenderableType, ...]:
    if row == 0:
        clients = model.clients
        return (
            Text(model.model_id, "bold"),
            f"{clients.requests_per_second:.1f}",
            ttft_text(model),
        )
    subtitle = f"{model.class_name}, priority {model.priority}" if row == 1 else ""
    waiting = f"{model.clients.unfinished_requests} in flight" if row == 1 else ""
    return Text(subtitle, "dim"), "", Text(waiting, "dim")


def ttft_text(model: ModelView) -> Text:
    """Return the latency next to its target, red if it is missed."""
    measured, target = model.clients.ttft_p90_ms, model.ttft_target_ms
    if measured is None:
        return Text("-", "dim")
    style = "" if target is None else ("green" if model.is_on_target else "bold red")
    goal = "" if target is None else f" / {target / 1000:.1f} s"
    return Text.assemble((f"{measured / 1000:.2f} s", style), (goal, "dim"))


def _variant_cells(variant: VariantView) -> tuple[RenderableType, ...]:
    shape = {"legacy": " (legacy shape)", "annotated": " (annotated HPA)"}.get(variant.shape, "")
    desired = "?" if variant.desired_replicas is None else str(variant.desired_replicas)
    is_moving = variant.desired_replicas not in (None, variant.current_replicas)
    return (
        Text.assemble(
            variant.name, (f" {variant.accelerators_per_replica}x{variant.accelerator}{shape}", "dim")
        ),
        f"{variant.cost_per_replica * variant.placed_replicas:,.0f}",
        str(variant.ready_replicas),
        Text(f"{variant.current_replicas} -> {desired}", "bold" if is_moving else ""),
        Text(variant.reason, _REASON_STYLES.get(variant.reason, "dim")),
    )


def _binding(binding: BindingView) -> RenderableType:
    line = Text.assemble((binding.name, "bold"), ("  by policy  ", "dim"))
    return line.append("   ".join(replicas_text(target).replace("->", " -> ") for target in binding.targets))


def _accelerators(observation: DemoObservation) -> RenderableType:
    grid = Table.grid(expand=True)
    for _ in observation.accelerators:
        grid.add_column()
    grid.add_row(*map(_bar, observation.accelerators))
    return grid


def _bar(accelerator: AcceleratorView) -> Text:
    cells = round(_BAR_CELLS * accelerator.used / accelerator.total) if accelerator.total else 0
    style = "red" if accelerator.used == accelerator.total else "green"
    return Text.assemble(
        (f"{accelerator.name} ", "bold"),
        ("█" * cells, style),
        ("░" * (_BAR_CELLS - cells), "dim"),
        f" {accelerator.used}/{accelerator.total}",
    )


def _lines(title: str, lines: tuple[str, ...]) -> RenderableType:
    text = Text("\n".join(lines) or "-", overflow="fold")
    return Panel(text, title=title, title_align="left", box=box.ROUNDED, border_style="dim")


_PICTURE_COLUMNS = 150


class LiveScreen:
    """Redraws the whole screen for each frame; notes are part of the frames."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, screen=True)
        self._console = console

    def update(self, frame: Frame) -> None:
        """Draw the frame."""
        self._live.start()
        self._live.update(screen(frame), refresh=True)

    def note(self, text: str) -> None:
        """Print the text before there is a screen; afterwards frames contain it."""
        if not self._live.is_started:
            self._console.print(text, highlight=False)

    def close(self) -> None:
        """Release the terminal."""
        self._live.stop()


def pick_frame(frames: Sequence[Frame]) -> Frame:
    """Return the first frame with a preempted model and the first model on target, or the last frame."""
    for frame in frames:
        first, *others = frame.observation.models or (None,)
        if first and first.is_on_target and any(gives_way(v) for model in others for v in model.variants):
            return frame
    return frames[-1]


def save_picture(frame: Frame, path: Path, *, title: str) -> None:
    """Write the frame as SVG."""
    console = Console(record=True, width=_PICTURE_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(screen(frame))
    console.save_svg(str(path), title=title)


_EVERY_SECONDS = 5.0


class PlainLines:
    """Writes a line for each new chapter, each model with changed replicas, and each new decision."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._chapter = ""
        self._last_seconds = float("-inf")
        self._last_texts: dict[str, str] = {}

    def update(self, frame: Frame) -> None:
        """Write the changes, unless something was written very recently."""
        if frame.chapter.name != self._chapter:
            self._chapter = frame.chapter.name
            self._write(frame.observation, f"== {frame.chapter.name}: {frame.chapter.headline}")
        elif frame.observation.seconds - self._last_seconds < _EVERY_SECONDS:
            return
        self._last_seconds = frame.observation.seconds
        for subject, state, text in lines(frame.observation):
            if self._last_texts.get(subject) != state:
                self._last_texts[subject] = state
                self._write(frame.observation, text)

    def note(self, text: str) -> None:
        """Write a text at once."""
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Do nothing, as there is no terminal to release."""

    def _write(self, observation: DemoObservation, text: str) -> None:
        self.note(f"{observation.seconds:4.0f} s  {text}")


def lines(observation: DemoObservation) -> Iterator[tuple[str, str, str]]:
    """Yield a subject, the state whose change triggers a line, and the text of the line."""
    for model in observation.models:
        replicas = ", ".join(map(replicas_text, model.variants))
        yield model.model_id, replicas, f"{model.model_id} ({_clients(model)}): {replicas}"
        for variant in model.variants:
            decided = f"{variant.reason} {variant.bound_by} {variant.desired_replicas}"
            if variant.reason not in ("", "Steady"):
                yield variant.name, decided, f"  {variant.message}"
    for binding in observation.bindings:
        replicas = ", ".join(replicas_text(target) for target in binding.targets)
        yield binding.name, replicas, f"{binding.name} (by policy): {replicas}\n        {binding.message}"


def replicas_text(view: VariantView | BoundView) -> str:
    """Return `llama-8b-l40s 2->5`."""
    desired = "?" if view.desired_replicas is None else view.desired_replicas
    return f"{view.name} {view.current_replicas}->{desired}"


def _clients(model: ModelView) -> str:
    clients, target = model.clients, model.ttft_target_ms
    wait = "-" if clients.ttft_p90_ms is None else f"{clients.ttft_p90_ms:.0f} ms"
    goal = "" if target is None else f" of {target} ms"
    return f"{clients.requests_per_second:.0f} req/s, TTFT p90 {wait}{goal}"
