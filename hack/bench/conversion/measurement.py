"""Everything that one run of the conversion benchmark measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from hack.bench.conversion.calls import measure_calls
from hack.bench.conversion.cases import Case, Key
from hack.bench.conversion.goals import goals
from hack.bench.conversion.in_process import measure_in_process
from hack.bench.conversion.processes import OverTls, measure_processes, running_servers
from hack.bench.conversion.report import calls_table, in_process_table, restarts_table, tls_table
from hack.bench.conversion.restarts import Restart, measure_restarts
from hack.bench.conversion.start import Start, measure_starts, start_goals, starts_table
from hack.bench.conversion.upgraded import client_of, upgraded
from hack.bench.conversion.waits import Waits
from hack.bench.frame import framed
from hack.bench.goals import Goal
from hack.bench.measurement import Measurement, RoundSettings
from hack.controlplane import ControlPlaneError
from hack.controlplane.client import RefusedError

_IN_PROCESS_SHARE: Final = 0.25
"""CPU time of a round in process, as a part of that over TLS: there is less noise to average out."""

_STARTS: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionSettings(RoundSettings):
    """How much to measure of conversion."""

    calls: int
    """Reads and writes of each sort on the control plane; 0 leaves it out."""
    stored: int
    """Objects that are stored in the old version when the API server is restarted."""
    restarts: int
    """With each converter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionMeasurement(Measurement):
    """What came of measuring conversion."""

    settings: ConversionSettings
    in_process: dict[Key, float]
    """Microseconds of CPU time per review."""
    over_tls: dict[Key, OverTls]
    calls: Mapping[str, Waits] = field(default_factory=dict)
    restarts: tuple[Restart, ...] = ()
    starts: tuple[Start, ...] = ()

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured."""
        return [*goals(self.in_process, self.restarts, self.pace), *start_goals(self.starts)]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        return {
            "in_process": _table({key: {"cpu_us": spent} for key, spent in self.in_process.items()}),
            "over_tls": _table({key: asdict(cost) for key, cost in self.over_tls.items()}),
            "calls": [{"call": name} | asdict(taken) for name, taken in self.calls.items()],
            "restarts": [asdict(restart) for restart in self.restarts],
            "starts": [asdict(start) for start in self.starts],
        }

    def printed_tables(self) -> Iterator[Sequence[str]]:
        """Yield the tables for people, as lines."""
        yield in_process_table(self.in_process)
        yield tls_table(self.over_tls)
        if self.starts:
            yield starts_table(self.starts)
        if self.calls:
            yield calls_table(self.calls)
        if self.restarts:
            yield restarts_table(self.restarts)


def measure(
    cases: Sequence[Case], settings: ConversionSettings, *, progress: Callable[[str], None]
) -> ConversionMeasurement:
    """Measure the cases in process and over TLS. Raises WrongAnswerError for a wrong answer."""
    progress("starts")
    starts = measure_starts(cases[0], count=_STARTS)
    with framed(progress=progress) as frame:
        frame.step("in process")
        local = measure_in_process(
            cases, rounds=settings.rounds, seconds=settings.seconds * _IN_PROCESS_SHARE
        )
        frame.step("over TLS")
        with running_servers(frame.cores) as targets:
            tls = measure_processes(
                cases, targets, rounds=settings.rounds, seconds=settings.seconds, progress=frame.step
            )
    return ConversionMeasurement(
        settings=settings,
        machine=frame.machine(),
        pace=frame.pace(),
        in_process=local,
        over_tls=tls,
        starts=tuple(starts),
    )


def with_control_plane(
    measured: ConversionMeasurement, *, progress: Callable[[str], None]
) -> ConversionMeasurement:
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
        return replace(measured, failure=f"the control plane's part is missing: {error}")
    return replace(measured, calls=calls, restarts=tuple(restarts))


def _table(costs: Mapping[Key, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"case": case, "objects": count, "direction": direction, "server": server} | dict(cost)
        for (case, count, direction, server), cost in costs.items()
    ]
