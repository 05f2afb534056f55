"""What is told of the machine."""

from __future__ import annotations

from dataclasses import replace

from hack.bench.machine import Machine, busyness, core_times, pressure_percent

MACHINE = Machine(processor="x", cores=2, python="3.11.7", load_average=0.5, pressure_percent=None)
PRESSURE = (
    "some avg10=1.28 avg60=1.63 avg300=2.31 total=1487818496\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
)


def test_pressure_is_read_from_the_kernel_s_file() -> None:
    """The share of time in which something waited."""
    assert pressure_percent(PRESSURE) == 1.28
    assert pressure_percent("") is None


def test_a_machine_without_pressure_says_so() -> None:
    """Not every kernel keeps the account."""
    assert "CPU pressure unknown" in MACHINE.line()


def test_the_first_line_says_how_busy_the_machine_was() -> None:
    """Load at each look, and what the host took meanwhile."""
    before = replace(MACHINE, stolen_seconds=1.0, core_seconds=100.0)
    after = replace(MACHINE, load_average=2.25, stolen_seconds=1.5, core_seconds=120.0)

    assert busyness([before, after]) == "load average 0.50 to 2.25, 2.5 % steal time"
    assert busyness([MACHINE, MACHINE]).endswith(", unknown steal time")


def test_stolen_time_is_the_eighth_column() -> None:
    """Columns of guests, which others hold too, are left out."""
    assert core_times("cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1\n", 100) == [
        *(0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 8.0)
    ]
