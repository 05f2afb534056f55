"""Parse the lines of a metrics page that are needed.

The parser of the Prometheus text format takes time proportional to the square of the length of a line. A
tenant can serve a page with a single line as long as the page may be, so long lines are refused before
parsing.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from controller.observe.said import UnreadableMetricsError

LONGEST_LINE_CHARACTERS: Final = 8192
"""The maximum length of a line that is parsed. Real ones have a few hundred characters."""


def families_in(text: str, heads: tuple[str, ...]) -> list[Metric]:
    """Return the metrics in the lines that begin with one of the heads; most others need not be parsed.

    Raises UnreadableMetricsError for invalid text, and for a line that is too long.
    """
    lines = [line for line in text.splitlines() if line.startswith(heads)]
    for line in lines:
        if len(line) > LONGEST_LINE_CHARACTERS:
            raise UnreadableMetricsError(
                f"a line has {len(line)} characters, of at most {LONGEST_LINE_CHARACTERS}: {line[:40]}..."
            )
    try:
        return list(text_string_to_metric_families("\n".join(lines) + "\n"))
    except (ValueError, IndexError) as error:  # the parser raises both, depending on the defect
        raise UnreadableMetricsError(f"not a Prometheus exposition: {error}") from error
