"""Parse the lines of a metrics page that are needed.

The parser of the Prometheus text format takes time proportional to the square of the length of a line. A
tenant can serve a page with a single line as long as the page may be, or with nothing but lines that match,
so both are refused before parsing.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from controller.engines.metrics import UnreadableMetricsError

LONGEST_LINE_CHARACTERS: Final = 8192
"""The maximum length of a line that is parsed. Real ones have a few hundred characters."""

MOST_LINES: Final = 20_000
"""The maximum number of lines that are parsed. Sixteen engines in one pod have about two thousand."""

MOST_CHARACTERS: Final = 512 << 10
"""The maximum number of characters that are parsed, of all lines together. Those engines have half of it."""


def families_in(text: str, heads: tuple[str, ...]) -> list[Metric]:
    """Return the metric families in the lines that begin with one of the heads; values are floats.

    Raises UnreadableMetricsError for invalid text, and for lines that are too long or too many.
    """
    wanted = _lines_of(text, heads)
    try:
        families = list(text_string_to_metric_families(wanted))
        for family in families:
            # The parser returns integers of any size as such.
            family.samples = [sample._replace(value=float(sample.value)) for sample in family.samples]
    except (ValueError, IndexError, OverflowError) as error:  # the parser raises them by the defect
        raise UnreadableMetricsError(f"not a Prometheus exposition: {error}") from error
    return families


def _lines_of(text: str, heads: tuple[str, ...]) -> str:
    """Return the lines that begin with one of the heads; others, which are most, need not be parsed."""
    lines = [line for line in text.splitlines() if line.startswith(heads)]
    if len(lines) > MOST_LINES:
        raise UnreadableMetricsError(f"{len(lines)} lines are about its metrics, of at most {MOST_LINES}")
    for line in lines:
        if len(line) > LONGEST_LINE_CHARACTERS:
            raise UnreadableMetricsError(
                f"a line has {len(line)} characters, of at most {LONGEST_LINE_CHARACTERS}: {line[:40]}..."
            )
    wanted = "\n".join(lines) + "\n"
    if len(wanted) > MOST_CHARACTERS:
        raise UnreadableMetricsError(
            f"{len(wanted)} characters are about its metrics, of at most {MOST_CHARACTERS}"
        )
    return wanted
