"""Everything that one run of the admission benchmark measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from hack.bench.admission.api_server import MeanCall, WriteRefusedError, measure_api_server
from hack.bench.admission.cases import Case
from hack.bench.admission.costs import Key, OverTls, table
from hack.bench.admission.goals import goals
from hack.bench.admission.in_process import measure_in_process
from hack.bench.admission.processes import measure_processes, running_servers
from hack.bench.admission.report import api_server_table, in_process_table, tls_table
from hack.bench.frame import framed
from hack.bench.goals import Goal
from hack.bench.measurement import Measurement, RoundSettings
from hack.controlplane import ControlPlaneError

_IN_PROCESS_SHARE: Final = 0.2
"""CPU time of a round in process, as a part of that over TLS: there is less noise to average out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionSettings(RoundSettings):
    """How much to measure of admission."""

    connections: int
    calls: int
    """Writes of each sort on the control plane; 0 leaves it out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionMeasurement(Measurement):
    """What came of measuring admission."""

    settings: AdmissionSettings
    in_process: dict[Key, float]
    """Microseconds of CPU time per call."""
    over_tls: dict[Key, OverTls]
    api_server: tuple[MeanCall, ...] = ()

    @property
    def goals(self) -> list[Goal]:
        """The goals that were measured."""
        return goals(self.over_tls, self.pace)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows for a results file."""
        return {
            "in_process": table({key: {"cpu_us": spent} for key, spent in self.in_process.items()}),
            "over_tls": table({key: asdict(cost) for key, cost in self.over_tls.items()}),
            "api_server": [asdict(call) for call in self.api_server],
        }

    def printed_tables(self) -> Iterator[Sequence[str]]:
        """Yield the tables for people, as lines."""
        yield in_process_table(self.in_process)
        yield tls_table(self.over_tls, connections=self.settings.connections)
        if self.api_server:
            yield api_server_table(self.api_server)


def measure(
    cases: Sequence[Case], settings: AdmissionSettings, *, progress: Callable[[str], None]
) -> AdmissionMeasurement:
    """Measure the cases in process and over TLS. Raises WrongAnswerError for a wrong answer."""
    with framed(progress=progress) as frame:
        frame.step("in process")
        local = measure_in_process(
            cases, rounds=settings.rounds, seconds=settings.seconds * _IN_PROCESS_SHARE
        )
        with running_servers(frame.cores, connections=settings.connections) as targets:
            tls = measure_processes(
                cases, targets, rounds=settings.rounds, seconds=settings.seconds, progress=frame.step
            )
    return AdmissionMeasurement(
        settings=settings,
        machine=frame.machine(),
        pace=frame.pace(),
        in_process=local,
        over_tls=tls,
    )


def with_api_server(
    measured: AdmissionMeasurement, cases: Sequence[Case], *, progress: Callable[[str], None]
) -> AdmissionMeasurement:
    """Add the API server's own account, or why there is none: what is measured already is not lost."""
    if not measured.settings.calls:
        return measured
    progress("on a control plane")
    try:
        calls = measure_api_server({case.kind for case in cases}, calls=measured.settings.calls)
    except (ControlPlaneError, WriteRefusedError, OSError) as error:
        return replace(measured, failure=f"the API server's own account is missing: {error}")
    return replace(measured, api_server=tuple(calls))
