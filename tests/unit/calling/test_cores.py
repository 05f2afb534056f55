"""CPU time and memory of a process, and the assignment of cores."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from hack.calling.cores import Cores, cpu_seconds, memory_mebibytes

WORK = 200_000


def test_cpu_time_includes_threads_that_ended() -> None:
    """Servers work in short-lived threads."""
    before = cpu_seconds(os.getpid())
    worker = threading.Thread(target=lambda: sum(range(WORK)))
    worker.start()
    worker.join()

    assert cpu_seconds(os.getpid()) > before


def test_the_cpu_time_of_a_process_that_does_not_exist_is_an_error() -> None:
    """A CPU time of zero would look like a server without cost."""
    with pytest.raises(OSError, match="Invalid argument"):
        cpu_seconds(2**22 + 1)


def test_the_memory_of_a_process_is_plausible() -> None:
    """A new interpreter holds 50 MiB more than another one, and never exceeds its peak."""
    held_mebibytes = []
    for size in (0, 50):
        program = f"held = bytes([1]) * ({size} << 20); print(flush=True); input()"
        command = [sys.executable, "-I", "-S", "-c", program]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            held_mebibytes.append(memory_mebibytes("VmRSS", process.pid))
            assert held_mebibytes[-1] <= memory_mebibytes("VmHWM", process.pid)

    assert held_mebibytes[1] - held_mebibytes[0] == pytest.approx(50, abs=5)


def test_the_load_generator_gets_the_cores_that_the_server_leaves() -> None:
    """They share a single core."""
    assert Cores.split(frozenset({1, 2, 3})) == Cores(server=frozenset({1}), load=frozenset({2, 3}))
    assert Cores.split(frozenset({4})) == Cores(server=frozenset({4}), load=frozenset({4}))
