"""CPU time of a process, and cores to run on."""

from __future__ import annotations

import os
import threading

import pytest

from hack.bench.cores import Cores, cpu_seconds

WORK = 200_000


def test_the_time_of_threads_that_ended_counts() -> None:
    """A server works in threads that come and go."""
    before = cpu_seconds(os.getpid())
    worker = threading.Thread(target=lambda: sum(range(WORK)))
    worker.start()
    worker.join()

    assert cpu_seconds(os.getpid()) > before


def test_a_process_that_is_gone_has_no_time() -> None:
    """Rather an error than a server that costs nothing."""
    with pytest.raises(OSError, match="Invalid argument"):
        cpu_seconds(2**22 + 1)


def test_the_load_gets_what_the_servers_leave() -> None:
    """And shares where there is only one core."""
    assert Cores.split(frozenset({1, 2, 3})) == Cores(server=frozenset({1}), load=frozenset({2, 3}))
    assert Cores.split(frozenset({4})) == Cores(server=frozenset({4}), load=frozenset({4}))
