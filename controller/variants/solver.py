"""Planning in a child process that is killed when it takes too long and replaced when it dies.

A crash, a hang or excessive memory use in the solver costs one cycle, in which replicas stay as they are.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from controller.planning.assemble import hold
from controller.planning.decision import SolverStatus
from controller.variants.solver_worker import HEADER, frame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from controller.planning.decision import Plan
    from controller.planning.inputs import Settings
    from controller.planning.snapshot import Snapshot

MEMORY_BYTES = 2 * 2**30
"""Address space limit of the child in bytes; an idle child maps 170 MB, of which it touches 50."""

COMMAND = (sys.executable, "-m", "controller.variants.solver_worker", str(MEMORY_BYTES))
"""The program of the child."""

START_SECONDS = 60.0
"""Time limit for the start of the child in seconds."""

_KEPT_BYTES = 4096
"""The size of the end of the child's standard error that is kept: the last line of it is reported."""

GRACE_SECONDS = 2.0


class WorkerEndedError(RuntimeError):
    """The child process ended without an answer."""


class Worker:
    """One child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._last_words = b""
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Return a worker that is ready for requests. Raises WorkerEndedError when it ends before that."""
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ | one_thread
        )
        worker = cls(process)
        try:
            await worker.receive()
        except BaseException:
            await worker.kill()
            raise
        return worker

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended, as far as is known."""
        return self._process.returncode is None

    async def ask(self, body: bytes) -> bytes:
        """Return the answer to a request. Raises WorkerEndedError."""
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # the process is gone: receive() raises, with its last output
            self._process.stdin.write(frame(body))
            await self._process.stdin.drain()
        return await self.receive()

    async def receive(self) -> bytes:
        """Return the next frame. Raises WorkerEndedError."""
        assert self._process.stdout is not None
        try:
            header = await self._process.stdout.readexactly(HEADER.size)
            return await self._process.stdout.readexactly(HEADER.unpack(header)[0])
        except asyncio.IncompleteReadError:
            code = await self._process.wait()
            await self._listener
            lines = self._last_words.decode(errors="replace").strip().splitlines()
            words = lines[-1] if lines else "no output"
            raise WorkerEndedError(f"the solver process ended with code {code}: {words}") from None

    async def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._listener

    async def close(self) -> None:
        """Let the process exit by itself, and kill it after a grace period."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), GRACE_SECONDS)
        await self.kill()

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(_KEPT_BYTES):  # a line may be of any length
            self._last_words = (self._last_words + piece)[-_KEPT_BYTES:]


class Solver:
    """Plans in a child process, one plan at a time. An async context manager; starts on first use."""

    def __init__(
        self, settings: Settings, *, deadline_seconds: float = 60.0, command: Sequence[str] = COMMAND
    ) -> None:
        """Set the time limit of a plan; `command` replaces the child's program.

        The deadline should be well above `Settings.wall_seconds`, which limits one placement. A plan also
        computes what would help models that lack capacity, and which moves would.
        """
        self._settings = settings
        self._deadline_seconds = deadline_seconds
        self._command = command
        self._worker: Worker | None = None
        self._turn = asyncio.Lock()
        self.starts = 0
        """The number of children started so far."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """Process id of the child, or None if there is none."""
        return self._worker.pid if self._worker and self._worker.is_alive else None

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return the plan. If planning fails, replicas are held; see `Plan.solver`."""
        async with self._turn:
            try:
                return await self._ask(snapshot)
            except TimeoutError:
                status, detail = SolverStatus.TIMED_OUT, ""
                message = f"the solver returned no answer within {self._deadline_seconds:g} s"
            except WorkerEndedError as error:
                status, message, detail = SolverStatus.FAILED, "the solver process ended", str(error)
        # In a thread: it takes a while for a large cluster, and leases must be renewed meanwhile.
        return await asyncio.to_thread(
            hold, snapshot, self._settings, status=status, message=message, detail=detail
        )

    async def close(self) -> None:
        """Stop the child."""
        worker, self._worker = self._worker, None
        if worker:
            await worker.close()

    async def _ask(self, snapshot: Snapshot) -> Plan:
        worker = await self._ready_worker()
        try:
            async with asyncio.timeout(self._deadline_seconds):
                # In threads: pickling takes a second for thousands of variants.
                question = await asyncio.to_thread(pickle.dumps, (snapshot, self._settings))
                reply = await worker.ask(question)
        except BaseException:  # also on cancellation: a late answer must not be read for the next request
            self._worker = None
            await worker.kill()
            raise
        answer: Plan = await asyncio.to_thread(pickle.loads, reply)
        return answer

    async def _ready_worker(self) -> Worker:
        if self._worker is None or not self._worker.is_alive:
            self.starts += 1
            try:
                async with asyncio.timeout(START_SECONDS):
                    self._worker = await Worker.start(self._command)
            except TimeoutError:
                raise WorkerEndedError(f"the solver did not start within {START_SECONDS:g} s") from None
        return self._worker
