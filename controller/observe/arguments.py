"""Read engine arguments, such as vLLM's batch limits, from the command lines of containers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from apiserver.schema.json import Json

_NUMBER: Final = re.compile(r"[0-9]{1,9}\Z")
_SHELL_FLAGS: Final = frozenset({"-c", "-lc", "-ec"})


def engine_argument(pod_spec: Json, name: str) -> int | None:
    """Return the integer value of `--name` in any container, or None.

    Both `--name=7` and `--name 7` are recognized, with dashes or underscores, also inside `sh -c "..."`.
    """
    flag = f"--{name}"
    for container in pod_spec.get("containers") or []:
        words = list(_words([*(container.get("command") or []), *(container.get("args") or [])]))
        for word, following in pairwise([*words, ""]):
            head, _, tail = word.partition("=")
            text = tail or following
            if head.replace("_", "-") == flag and _NUMBER.match(text):
                return int(text)
    return None


def _words(arguments: list[str]) -> Iterator[str]:
    is_script = False
    for argument in arguments:
        if is_script or ("\n" in argument and " " in argument):
            yield from _split(argument)
        else:
            yield argument
        is_script = argument in _SHELL_FLAGS


def _split(script: str) -> list[str]:
    try:
        return shlex.split(script.replace("\\\n", " "))
    except ValueError:
        # An unbalanced quote: the shell would reject it too, so no engine runs with it.
        return []
