"""Rules about the characters of a text for which the pattern of its schema leaves no room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import re2

from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Rule

_WHITESPACE: Final = re2.compile(r"\s")
_MESSAGE: Final = "must not contain whitespace"
_LONGEST_NAME: Final = 253
_NO_SEGMENT: Final = "must be a name that no URL reads as a path: not '.' or '..', and without '/' and '%'"
_BACKSTEPS: Final = "must not contain '..' as a part of the path"


@dataclass(frozen=True, slots=True)
class NoWhitespace(Rule):
    """A text has no space, tab or line break in it. Stands on the text."""

    def check(self, value: str, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error when there is any."""
        if _WHITESPACE.search(value):
            yield invalid(path, value, _MESSAGE)

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        rule = r"!self.matches('\\s')"  # the server takes the cost to grow with the expression's length
        return [CelRule(rule=rule, message=_MESSAGE, reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return "Without whitespace."


@dataclass(frozen=True, slots=True)
class PathSegment(Rule):
    """A text could be the name of some object: it stays one segment of a URL. Stands on the text.

    Its length is the schema's matter: no name has more than 253 characters.

    Demands: `IsValidPathSegmentName` of `k8s.io/apimachinery/pkg/api/validation/path/name.go`.
    """

    def check(self, value: str, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error when a URL would read the text as something else."""
        if len(value) > _LONGEST_NAME:
            return
        if value in {".", ".."} or "/" in value or "%" in value:
            yield invalid(path, value, _NO_SEGMENT)

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        rule = "!(self in ['.', '..']) && !self.contains('/') && !self.contains('%')"
        return [CelRule(rule=rule, message=_NO_SEGMENT, reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return "Not `.` or `..`, and without `/` and `%`."


@dataclass(frozen=True, slots=True)
class NoBacksteps(Rule):
    """A URI of one of some schemes has no `..` in its path. Stands on the text."""

    schemes: tuple[str, ...]

    def check(self, value: str, path: FieldPath) -> Iterator[FieldError]:
        """Yield one error when a part of the path is `..`."""
        is_meant = value.startswith(tuple(f"{scheme}://" for scheme in self.schemes))
        if is_meant and "/../" in f"{value}/":
            yield invalid(path, value, _BACKSTEPS)

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        is_meant = " || ".join(f"self.startsWith('{scheme}://')" for scheme in self.schemes)
        rule = f"!({is_meant}) || !(self + '/').contains('/../')"
        return [CelRule(rule=rule, message=_BACKSTEPS, reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"Without `..` in a path of {' or '.join(f'`{scheme}://`' for scheme in self.schemes)}."
