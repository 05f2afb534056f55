"""The lines of a metrics page that are parsed.

The parser of the Prometheus text format takes time proportional to the square of the length of a line. A
tenant can serve a page with a single line as long as the page may be, so long lines are refused before
parsing.
"""

from __future__ import annotations

from typing import Final

from controller.observe.said import UnreadableMetricsError

LONGEST_LINE_CHARACTERS: Final = 8192
"""The maximum length of a line that is parsed. Real ones have a few hundred characters."""


def lines_of(text: str, heads: tuple[str, ...]) -> str:
    """Return the lines that begin with one of the heads; others, which are most, need not be parsed.

    Raises UnreadableMetricsError for a line that is too long.
    """
    lines = [line for line in text.splitlines() if line.startswith(heads)]
    for line in lines:
        if len(line) > LONGEST_LINE_CHARACTERS:
            raise UnreadableMetricsError(
                f"a line has {len(line)} characters, of at most {LONGEST_LINE_CHARACTERS}: {line[:40]}..."
            )
    return "\n".join(lines) + "\n"
