"""Everything that one run measured."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from hack.bench.admission.api_server import MeanCall, WriteRefusedError, measure_api_server
from hack.bench.admission.cases import Case
from hack.bench.admission.costs import Key, OverTls, table
from hack.bench.admission.goals import LOADS_US, goals
from hack.bench.admission.in_process import measure_in_process
from hack.bench.admission.objects import model
from hack.bench.admission.processes import measure_processes, running_servers
from hack.bench.admission.reviews import create
from hack.bench.cores import Cores
from hack.bench.goals import Goal
from hack.bench.machine import Machine, look
from hack.bench.pace import Pace, loads_us
from hack.controlplane import ControlPlaneError

_IN_PROCESS_SHARE: Final = 0.2
"""CPU time of a round in process, as a part of that over TLS: there is less noise to average out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How much to measure."""

    rounds: int
    seconds: float
    """Of each case, server and round."""
    connections: int
    calls: int
    """Writes of each sort on the control plane; 0 leaves it out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """What came of it."""

    settings: Settings
    machine: tuple[Machine, ...]
    """Before and after."""
    pace: Pace
    in_process: dict[Key, float]
    """Microseconds of CPU time per call."""
    over_tls: dict[Key, OverTls]
    api_server: tuple[MeanCall, ...] = ()
    failure: str = ""
    """Why the API server's own account is missing, where it was asked for."""

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured."""
        return goals(self.over_tls, self.in_process, self.pace)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        return {
            "in_process": table({key: {"cpu_us": spent} for key, spent in self.in_process.items()}),
            "over_tls": table({key: asdict(cost) for key, cost in self.over_tls.items()}),
            "api_server": [asdict(call) for call in self.api_server],
        }


def measure(cases: Sequence[Case], settings: Settings, *, progress: Callable[[str], None]) -> Measurement:
    """Measure the cases in process and over TLS. Raises WrongAnswerError for a wrong answer."""
    before = look()
    allowed = os.sched_getaffinity(0)
    cores = Cores.split(frozenset(allowed))
    document, paces = create(model()), list[float]()

    def step(text: str) -> None:
        progress(text)
        paces.append(loads_us(document))

    cores.pin_load()
    try:
        step("in process")
        local = measure_in_process(
            cases, rounds=settings.rounds, seconds=settings.seconds * _IN_PROCESS_SHARE
        )
        with running_servers(cores, connections=settings.connections) as targets:
            tls = measure_processes(
                cases, targets, rounds=settings.rounds, seconds=settings.seconds, progress=step
            )
    finally:
        os.sched_setaffinity(0, allowed)
    return Measurement(
        settings=settings,
        machine=(before, look()),
        pace=Pace(here_us=statistics.median(paces), there_us=LOADS_US),
        in_process=local,
        over_tls=tls,
    )


def with_api_server(
    measured: Measurement, cases: Sequence[Case], *, progress: Callable[[str], None]
) -> Measurement:
    """Add the API server's own account, or why there is none: what is measured already is not lost."""
    if not measured.settings.calls:
        return measured
    progress("on a control plane")
    try:
        calls = measure_api_server({case.kind for case in cases}, calls=measured.settings.calls)
    except (ControlPlaneError, WriteRefusedError, OSError) as error:
        return replace(measured, failure=str(error))
    return replace(measured, api_server=tuple(calls))
