"""The rows in which accelerators run out: three models of several priorities on few nodes.

An H100 serves about 18 requests/s of the conversations, an L40S 4.5. Unless stated otherwise, the models have
priority 1, 5 and 10, three H100 and six L40S are there, and the load can be served until the first model's
jumps: from then on three quarters of the third one's load are left over for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from controller.closedloop.scenario import Model, NodeGroup, Outage, Scenario
from controller.simulation.curve import Curve
from controller.simulation.workload import Workload
from hack.bench.decisions import fleet
from hack.bench.decisions.row import CODE, CONVERSATIONS, Row, drawn, recorded

_LONG_SECONDS: Final = 600.0
_NAMES: Final = ("first", "second", "third")
_PRIORITIES: Final = (1, 5, 10)

_Counts = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""Initial replicas of each model, on H100 and on L40S."""

_JUMP: Final = Curve(shape="step", low=10, high=33, at_seconds=1200)
_PULSE: Final = Curve(shape="spike", low=10, high=33, at_seconds=1200, length_seconds=_LONG_SECONDS)
_SURGE: Final = Curve(shape="step", low=25, high=75, at_seconds=1200)
_CALM: Final = Curve(shape="constant", high=10)
_SECOND: Final = Curve(shape="constant", high=20)
_THIRD: Final = Curve(shape="constant", high=25)


def shortages() -> Iterator[Row]:
    """Yield the rows."""
    jump = (drawn(_JUMP), drawn(_SECOND), drawn(_THIRD))
    first = _row("scarcity", jump, (12, 7, 45))
    yield first
    for window in (60, 300):
        other = _row(f"scarcity-window-{window}", jump, (12, 7, 45), window_seconds=window)
        yield replace(other, rivals_of=first.name)
    yield _row("scarcity-start-60", jump, (10, 4, 45), start_up_seconds=60.0)
    yield _row("scarcity-start-300", jump, (20, 15, 60), start_up_seconds=300.0)
    yield _row(
        "bursts",
        (recorded(CONVERSATIONS, 4), recorded(CODE), drawn(_THIRD)),
        (0.5, 20, 2),
        nodes={"H100": 4, "L40S": 8},
        initial=((2, 0), (1, 2), (1, 6)),
    )
    lost = _row("node-lost", (drawn(_CALM), drawn(_SECOND), drawn(_THIRD)), (2.3, 0.7, 5.5), nodes_of=1)
    outage = Outage(node="h100-0-0", from_seconds=1200.0, to_seconds=1200.0 + _LONG_SECONDS)
    yield replace(lost, scenario=replace(lost.scenario, outages=(outage,)))
    yield _row("pulse", (drawn(_PULSE), drawn(_SECOND), drawn(_THIRD)), (22, 4, 28))
    yield _row("lowest-surges", (drawn(_CALM), drawn(_SECOND), drawn(_SURGE)), (0.5, 1, 50))
    yield _row("deep", jump, (8, 50, 80), nodes={"H100": 2, "L40S": 3}, initial=((1, 0), (1, 0), (0, 3)))
    equal = _row("equal-priorities", jump, (0, 0, 0))
    models = tuple(replace(model, priority=10) for model in equal.scenario.models)
    # What the best version so far lets all three models miss together.
    yield replace(equal, scenario=replace(equal.scenario, models=models), most_missed={0: 38.0})


def _row(
    name: str,
    loads: tuple[Workload, Workload, Workload],
    most_missed: tuple[float, float, float],
    *,
    nodes: Mapping[str, int] | None = None,
    nodes_of: int = 0,
    initial: _Counts = ((1, 0), (2, 0), (0, 6)),
    start_up_seconds: float = fleet.START_UP_SECONDS,
    window_seconds: int = 0,
) -> Row:
    """Return a row with accelerators by type, on one node of each type, or on nodes with so many."""
    pair = fleet.pair(start_up_seconds=start_up_seconds, window_seconds=window_seconds)
    models = tuple(
        Model(model_id=model, workload=workload, targets=fleet.TARGETS, priority=priority)
        for model, workload, priority in zip(_NAMES, loads, _PRIORITIES, strict=True)
    )
    variants = tuple(
        fleet.of_model(variant, model, count)
        for model, counts in zip(_NAMES, initial, strict=True)
        for variant, count in sorted(zip(pair, counts, strict=True), key=lambda item: -item[1])
    )  # the running variant comes first, because rivals scale it
    groups = tuple(
        NodeGroup(accelerator=kind, accelerators=nodes_of or count, count=count // (nodes_of or count))
        for kind, count in (nodes or {"H100": 3, "L40S": 6}).items()
    )
    scenario = Scenario(name=name, models=models, variants=fleet.stating(variants), nodes=groups)
    goals = dict(zip(_PRIORITIES, most_missed, strict=True))
    return Row(scenario=scenario, most_missed=goals, scaled=("",))
