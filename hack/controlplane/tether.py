"""Replaces itself by another program that dies with the process that started it.

Run as a script: `python -I -S tether.py PARENT_PID PROGRAM ARGUMENT...`. Linux sends the signal when the
parent *thread* ends (prctl(2), PR_SET_PDEATHSIG), so the parent must start programs from a thread that lives
as long as itself. The setting survives exec. It is made here and not between fork and exec of the parent,
because a process with threads must not run Python code there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Tie this process to its parent, then exec the program."""
    parent, program = int(arguments[0]), arguments[1:]
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the parent ended before this program began")
    os.execv(program[0], program)  # noqa: S606 (it becomes the program)


if __name__ == "__main__":
    main(sys.argv[1:])
