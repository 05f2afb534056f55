"""Read engine arguments, such as vLLM's batch limits, from the command lines of containers."""

from __future__ import annotations

import re
from typing import Final

from apiserver.schema.json import Json

_QUOTING: Final = str.maketrans("", "", "\"'\\")


def engine_argument(pod_spec: Json, name: str) -> int | None:
    """Return the integer value of `--name` in any container, or None.

    Both `--name=7` and `--name 7` are recognized, with dashes or underscores, also in a shell script. Scripts
    are searched and not parsed, because a parser's time can grow with the square of their length.
    """
    flag = re.compile(rf"(?<!\S)--{name.replace('-', '[-_]')}(?:=|\s+)([0-9]{{1,9}})(?!\S)")
    for container in pod_spec.get("containers") or []:
        text = "\n".join([*(container.get("command") or []), *(container.get("args") or [])])
        if found := flag.search(text.translate(_QUOTING)):
            return int(found[1])
    return None
