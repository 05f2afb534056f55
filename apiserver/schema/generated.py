"""Functions whose source is generated from a schema tree, with one loop or condition per node.

Interpreting the tree for each object would take longer than the work itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def function(signature: str, body: Iterable[str], known: dict[str, Any], *, about: str) -> Any:  # noqa: ANN401 (the caller knows its type)
    """Return the function `call` with this signature and these lines of source.

    It refers to objects by the names in `known`. `about` is shown in tracebacks in place of a file.
    """
    source = "\n".join([f"def call({signature}):", *indented(body)])
    exec(compile(source, f"<{about}>", "exec"), known)  # noqa: S102 (all of it is written in our modules)
    return known["call"]


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Return lines of source as those of an inner block."""
    return (f" {line}" for line in lines)
