"""The demo's screen for a terminal, as a pure function of a frame."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hack.demo.frame import Frame
from hack.demo.observation import AcceleratorView, BindingView, ModelView, Observation, VariantView
from hack.demo.plain import replicas_text

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


def _models(observation: Observation) -> RenderableType:
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


def _accelerators(observation: Observation) -> RenderableType:
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
