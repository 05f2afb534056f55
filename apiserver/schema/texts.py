"""Rules about the characters of a text for which the pattern of its schema leaves no room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import CelRule, Demand

_WHITESPACE: Final = re.compile("[ \t\n\f\r]")
"""As `\\s` of RE2, which the server reads."""

_MESSAGE: Final = "must not contain whitespace"
_LONGEST_NAME: Final = 253
_NO_SEGMENT: Final = "must be a name that no URL reads as a path: not '.' or '..', and without '/' and '%'"
_BACKSTEPS: Final = "must not contain '..' as a part of the path"


@dataclass(frozen=True, slots=True)
class NoWhitespace(Demand):
    """A text has no space, tab or line break in it. Stands on the text."""

    def is_broken(self, value: str) -> bool:
        """Tell whether there is any."""
        return _WHITESPACE.search(value) is not None

    def error(self, value: str, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path, value, _MESSAGE)

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        rule = r"!self.matches('\\s')"  # the server takes the cost to grow with the expression's length
        return [CelRule(rule=rule, message=_MESSAGE, reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return "Without whitespace."


@dataclass(frozen=True, slots=True)
class PathSegment(Demand):
    """A text could be the name of some object: it stays one segment of a URL. Stands on the text.

    Its length is the schema's matter: no name has more than 253 characters.

    Demands: `IsValidPathSegmentName` of `k8s.io/apimachinery/pkg/api/validation/path/name.go`.
    """

    def is_broken(self, value: str) -> bool:
        """Tell whether a URL would read the text as something else."""
        return len(value) <= _LONGEST_NAME and (value in {".", ".."} or "/" in value or "%" in value)

    def error(self, value: str, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path, value, _NO_SEGMENT)

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        rule = "!(self in ['.', '..']) && !self.contains('/') && !self.contains('%')"
        return [CelRule(rule=rule, message=_NO_SEGMENT, reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return "Not `.` or `..`, and without `/` and `%`."


@dataclass(frozen=True, slots=True)
class NoBacksteps(Demand):
    """A URI of one of some schemes has no `..` in its path. Stands on the text."""

    schemes: tuple[str, ...]

    def is_broken(self, value: str) -> bool:
        """Tell whether a part of the path is `..`."""
        if ".." not in value:
            return False
        is_meant = value.startswith(tuple(f"{scheme}://" for scheme in self.schemes))
        return is_meant and "/../" in f"{value}/"

    def error(self, value: str, path: FieldPath) -> FieldError:
        """Return the error."""
        return invalid(path, value, _BACKSTEPS)

    def cel(self) -> Sequence[CelRule]:
        """Return the one rule."""
        is_meant = " || ".join(f"self.startsWith('{scheme}://')" for scheme in self.schemes)
        rule = f"!({is_meant}) || !(self + '/').contains('/../')"
        return [CelRule(rule=rule, message=_BACKSTEPS, reason="FieldValueInvalid")]

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"Without `..` in a path of {' or '.join(f'`{scheme}://`' for scheme in self.schemes)}."
