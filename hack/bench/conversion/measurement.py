"""Everything that one run measured."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from hack.bench.admission.goals import LOADS_US
from hack.bench.admission.objects import model
from hack.bench.admission.reviews import create
from hack.bench.conversion.calls import measure_calls
from hack.bench.conversion.cases import Case, Key
from hack.bench.conversion.client import RefusedError, Waits
from hack.bench.conversion.goals import goals
from hack.bench.conversion.in_process import measure_in_process
from hack.bench.conversion.processes import OverTls, measure_processes, running_servers
from hack.bench.conversion.restarts import Restart, measure_restarts
from hack.bench.conversion.upgraded import client_of, upgraded
from hack.bench.cores import Cores
from hack.bench.goals import Goal
from hack.bench.machine import Machine, look
from hack.bench.pace import Pace, loads_us
from hack.controlplane import ControlPlaneError

_IN_PROCESS_SHARE: Final = 0.25
"""CPU time of a round in process, as a part of that over TLS: there is less noise to average out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How much to measure."""

    rounds: int
    seconds: float
    """Of each case, server and round."""
    calls: int
    """Reads and writes of each sort on the control plane; 0 leaves it out."""
    stored: int
    """Objects that are stored in the old version when the API server is restarted."""
    restarts: int
    """With each converter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """What came of it."""

    settings: Settings
    machine: tuple[Machine, ...]
    """Before and after."""
    pace: Pace
    in_process: dict[Key, float]
    """Microseconds of CPU time per review."""
    over_tls: dict[Key, OverTls]
    calls: Mapping[str, Waits] = field(default_factory=dict)
    restarts: tuple[Restart, ...] = ()
    failure: str = ""
    """Why the control plane's part is missing, where it was asked for."""

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured."""
        return goals(self.in_process, self.restarts, self.pace)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        return {
            "in_process": _table({key: {"cpu_us": spent} for key, spent in self.in_process.items()}),
            "over_tls": _table({key: asdict(cost) for key, cost in self.over_tls.items()}),
            "calls": [{"call": name} | asdict(taken) for name, taken in self.calls.items()],
            "restarts": [asdict(restart) for restart in self.restarts],
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
        step("over TLS")
        with running_servers(cores) as targets:
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


def with_control_plane(measured: Measurement, *, progress: Callable[[str], None]) -> Measurement:
    """Add what an API server's users notice, or why it is missing: what is measured already is not lost."""
    settings = measured.settings
    if not settings.calls:
        return measured
    progress(f"on a control plane with {settings.stored} objects stored in the old version")
    try:
        with upgraded(settings.stored) as (control_plane, _):
            client = client_of(control_plane)
            calls = measure_calls(client, calls=settings.calls)
            client.close()
            restarts = measure_restarts(
                control_plane, stored=settings.stored, rounds=settings.restarts, progress=progress
            )
    except (ControlPlaneError, RefusedError, OSError) as error:
        return replace(measured, failure=str(error))
    return replace(measured, calls=calls, restarts=tuple(restarts))


def _table(costs: Mapping[Key, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"case": case, "objects": count, "direction": direction, "server": server} | dict(cost)
        for (case, count, direction, server), cost in costs.items()
    ]
