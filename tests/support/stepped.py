"""Run `stowplan` until it ends by itself: start it again each time it is killed.

It first waits after a line with its process id, and then after each line of output, until a line can be read.
Whoever reads the output can kill the process exactly there, however busy the machine is. Each of them is
forked after the imports, which take most of the CPU time of a run.
"""

from __future__ import annotations

import io
import os
import sys

from apiserver.cli import load_verb, main


class _Stepped(io.TextIOWrapper):
    """A stream that waits after each line."""

    def write(self, text: str) -> int:
        """Write text, and read as many lines as were written."""
        written = super().write(text)
        self.flush()
        for _ in range(text.count("\n")):
            sys.stdin.readline()
        return written


def _run() -> int:
    sys.stdout = sys.stderr = _Stepped(sys.stdout.buffer, encoding="utf-8")
    sys.stdout.write(f"{os.getpid()}\n")
    return main()


if __name__ == "__main__":
    load_verb(sys.argv[1])
    while child := os.fork():
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            sys.exit(os.WEXITSTATUS(status))
    sys.exit(_run())
