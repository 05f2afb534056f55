"""Run `stowplan`, but wait after each line of output until a line can be read.

Whoever reads the output can then kill the process exactly there, however busy the machine is.
"""

from __future__ import annotations

import io
import sys

from apiserver.cli import main


class _Stepped(io.TextIOWrapper):
    """A stream that waits after each line."""

    def write(self, text: str) -> int:
        """Write text, and read as many lines as were written."""
        written = super().write(text)
        self.flush()
        for _ in range(text.count("\n")):
            sys.stdin.readline()
        return written


if __name__ == "__main__":
    sys.stdout = sys.stderr = _Stepped(sys.stdout.buffer, encoding="utf-8")
    sys.exit(main())
