"""Report objects none of whose pods responds, once until the cause changes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, TypeVar

from apiserver.kinds.identity import Key
from apiserver.log import EventLogger
from controller.planning.snapshot import Variant

Asked = TypeVar("Asked", bound=Hashable)

_log = EventLogger(__name__)

_MOST_NAMED: Final = 5
_NUMBER: Final = re.compile(r"\d+")


def silent_objects(asked: Iterable[tuple[Key, Asked]], failures: Mapping[Asked, str]) -> Mapping[Key, str]:
    """Return the objects none of whose endpoints responded, each with the cause of the first failure.

    `asked` are the endpoints of each object, and `failures` the causes of those that failed.
    """
    causes: dict[Key, str] = {}
    responding: set[Key] = set()
    for key, endpoint in asked:
        if endpoint in failures:
            causes.setdefault(key, failures[endpoint])
        else:
            responding.add(key)
    return {key: cause for key, cause in causes.items() if key not in responding}


def silence_of(variant: Variant, failures: Mapping[Key, str]) -> str:
    """Return the first pod of a variant that did not respond, with the cause; empty if all did."""
    for replica in variant.replicas:
        why = failures.get((variant.namespace, replica.name))
        if why is not None:
            return f"{replica.name}: {why}"
    return ""


class SilenceLog:
    """Logs changes of silent objects: one line for all that became silent for the same cause."""

    def __init__(self, kind: str) -> None:
        """`kind` is what the objects are called in log lines."""
        self._kind = kind
        self._known: Mapping[Key, str] = {}

    def update(self, silent: Mapping[Key, str]) -> None:
        """Log what changed since the last update. Numbers in a cause may differ."""
        changed: dict[str, list[Key]] = defaultdict(list)
        for key, cause in silent.items():
            if key not in self._known or _general(self._known[key]) != _general(cause):
                changed[cause].append(key)
        for cause, keys in changed.items():
            _log.warning("no pod responds", kind=self._kind, objects=_name_list(keys), why=cause)
        if heard := [key for key in self._known if key not in silent]:
            _log.info("pods respond again", kind=self._kind, objects=_name_list(heard))
        self._known = silent


def _general(cause: str) -> str:
    return _NUMBER.sub("", cause)


def _name_list(keys: list[Key]) -> str:
    shown = ", ".join("/".join(key) for key in sorted(keys)[:_MOST_NAMED])
    others = len(keys) - _MOST_NAMED
    return f"{shown} and {others} more" if others > 0 else shown
