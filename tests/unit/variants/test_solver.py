"""The solver's child process: plans, and recovery from crashes, hangs and memory errors."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from support import rogue_worker
from support.planning_builders import load, node, variant

from controller.planning.decision import Reason, SolverStatus
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot
from controller.variants.solver import Solver
from controller.variants.solver_worker import frame, without_collection

ROGUE = rogue_worker.__file__
LOADS = (load(25_000),)
GOOD = Snapshot(nodes=(node("n", 8),), variants=(variant("a", "n", serves=12_800),), loads=LOADS)
BAD = Snapshot(nodes=GOOD.nodes, variants=(variant("rogue", "n", serves=12_800),), loads=LOADS)
SETTINGS = Settings()


def _rogue(behaviour: str, deadline_seconds: float = 30.0) -> Solver:
    return Solver(SETTINGS, command=(sys.executable, ROGUE, behaviour), deadline_seconds=deadline_seconds)


async def test_the_child_returns_the_same_plan_as_the_parent_process() -> None:
    """One child solves twice, and both results equal a plan made in this process."""
    async with Solver(SETTINGS) as solver:
        first = await solver.solve(GOOD)
        second = await solver.solve(GOOD)

    assert first == second == plan(GOOD, SETTINGS)
    assert solver.starts == 1


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        pytest.param("crash", "ended with code -6", id="abort in native code"),
        pytest.param("raise", "ZeroDivisionError: planned nothing", id="an unexpected exception"),
        pytest.param("explode", "MemoryError", id="more memory than allowed"),
        pytest.param("shout", "xplanned nothing", id="a line of a mebibyte"),
        pytest.param("stillborn", "no solver today", id="the process fails to start"),
    ],
)
async def test_a_child_that_exits_costs_one_cycle(behaviour: str, words: str) -> None:
    """That plan is held, its message has the last words of the child, and the next plan uses a new one."""
    async with _rogue(behaviour) as solver:
        held = await solver.solve(BAD)
        planned = await solver.solve(GOOD)

    assert held.solver.status is SolverStatus.FAILED
    assert words in held.solver.message
    assert [(d.replicas, d.reason) for d in held.decisions] == [(1, Reason.HOLDING)]
    assert solver.starts == 2
    assert planned.solver.status is (
        SolverStatus.FAILED if behaviour == "stillborn" else SolverStatus.OPTIMAL
    )


async def test_a_child_that_hangs_is_killed_at_the_deadline() -> None:
    """The process is gone afterwards, and the next plan comes from a new one."""
    async with _rogue("hang", deadline_seconds=2.0) as solver:
        await solver.solve(GOOD)
        hanging = solver.pid
        held = await solver.solve(BAD)
        planned = await solver.solve(GOOD)

    assert (held.solver.status, held.solver.message) == (
        SolverStatus.TIMED_OUT,
        "the solver returned no answer within 2 s",
    )
    assert planned.solver.status is SolverStatus.OPTIMAL
    assert hanging is not None
    with pytest.raises(ProcessLookupError):
        os.kill(hanging, 0)


async def test_cancelling_a_request_kills_the_child() -> None:
    """Otherwise its late reply would be taken for the reply to the next request."""
    async with _rogue("hang") as solver:
        await solver.solve(GOOD)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(solver.solve(BAD), 0.5)

        planned = await solver.solve(GOOD)

    assert [decision.name for decision in planned.decisions] == ["a"]
    assert solver.starts == 2


@pytest.mark.parametrize("behaviour", ["babble", "chatter"])
async def test_printed_output_does_not_corrupt_the_reply(behaviour: str) -> None:
    """Native code may print anything, so replies do not use standard output."""
    async with _rogue(behaviour) as solver:
        planned = await solver.solve(BAD)

    assert planned == plan(BAD, SETTINGS)


async def test_a_child_killed_between_two_cycles_is_replaced() -> None:
    """The out-of-memory killer costs at most one cycle."""
    async with Solver(SETTINGS) as solver:
        await solver.solve(GOOD)
        assert solver.pid is not None
        os.kill(solver.pid, signal.SIGKILL)
        await solver.solve(GOOD)
        planned = await solver.solve(GOOD)

    assert planned.solver.status is SolverStatus.OPTIMAL
    assert solver.starts == 2


async def test_closing_the_solver_ends_the_child() -> None:
    """No process is left running."""
    async with Solver(SETTINGS) as solver:
        await solver.solve(GOOD)
        child = solver.pid

    assert solver.pid is None
    assert child is not None
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_busy_child_exits_when_its_parent_does() -> None:
    """The process exits at once when its standard input ends during a plan."""
    child = subprocess.run(
        [sys.executable, ROGUE, "hang"], input=_request(BAD), capture_output=True, timeout=30, check=False
    )

    assert child.returncode == 0


def _request(snapshot: Snapshot) -> bytes:
    return frame(pickle.dumps((snapshot, SETTINGS)))


def test_the_parent_does_not_import_the_solver_libraries() -> None:
    """Importing OR-Tools and NumPy only in the child keeps the controller small."""
    program = "import sys, controller.variants.solver; print({'ortools', 'numpy'} & set(sys.modules))"

    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "set()"


@pytest.mark.parametrize("was_enabled", [True, False], ids=["initially enabled", "initially disabled"])
def test_the_garbage_collector_is_suspended_and_then_restored(*, was_enabled: bool) -> None:
    """This also holds for nested use, and if the code inside fails."""
    before = gc.isenabled()
    (gc.enable if was_enabled else gc.disable)()
    try:
        with suppress(ValueError), without_collection():
            with without_collection():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() == was_enabled
    finally:
        (gc.enable if before else gc.disable)()
