"""The description of the machine in benchmark results."""

from __future__ import annotations

from dataclasses import replace

from hack.bench.machine import Machine, busyness, core_times, pressure_percent

MACHINE = Machine(
    processor="x",
    cores=2,
    python="3.11.7",
    load_average=0.5,
    pressure_percent=None,
    stolen_seconds=1.0,
    core_seconds=100.0,
)
PRESSURE = (
    "some avg10=1.28 avg60=1.63 avg300=2.31 total=1487818496\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
)


def test_cpu_pressure_is_read_from_the_kernel_file() -> None:
    """It is the share of time in which some task waited."""
    assert pressure_percent(PRESSURE) == 1.28
    assert pressure_percent("") is None


def test_missing_cpu_pressure_is_unknown() -> None:
    """Not every kernel measures it."""
    assert "CPU pressure unknown" in MACHINE.line()


def test_the_first_line_contains_load_average_and_steal_time() -> None:
    """The load average is that before and after, the steal time the share in between."""
    after = replace(MACHINE, load_average=2.25, stolen_seconds=1.5, core_seconds=120.0)

    assert busyness([MACHINE, after]) == "load average 0.50 to 2.25, 2.5 % steal time"


def test_steal_time_is_the_eighth_column() -> None:
    """The columns of guests are omitted, because user and nice time include them."""
    assert core_times("cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1\n", 100) == [
        *(0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 8.0)
    ]
