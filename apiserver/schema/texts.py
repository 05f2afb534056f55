"""Rules on the characters of a text, for use where the schema's `pattern` is already taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apiserver.schema.rules import Demand

_WHITESPACE: Final = " \t\n\f\r"
"""The whitespace of `\\s` in RE2, which the API server uses."""

_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class NoWhitespace(Demand):
    """A text must not contain whitespace. Applies to the text."""

    def _python(self, value: str) -> str:
        return " or ".join(f"{space!r} in {value}" for space in _WHITESPACE)

    def english(self) -> str:
        """Return the rule as a sentence."""
        return "Without whitespace."

    def _cel(self) -> str:
        return r"!self.matches('\\s')"  # the API server's cost estimate grows with its length

    def _message(self) -> str:
        return "must not contain whitespace"


@dataclass(frozen=True, slots=True)
class PathSegment(Demand):
    """A text must be usable as an object name, that is, as one segment of a URL. Applies to the text.

    The schema limits its length: no name has more than 253 characters.

    Source: `IsValidPathSegmentName` of `k8s.io/apimachinery/pkg/api/validation/path/name.go`.
    """

    def _python(self, value: str) -> str:
        has_meaning = f"{value} in ('.', '..') or '/' in {value} or '%' in {value}"
        return f"len({value}) <= {_LONGEST_NAME} and ({has_meaning})"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return "Not `.` or `..`, and without `/` and `%`."

    def _cel(self) -> str:
        return "!(self in ['.', '..']) && !self.contains('/') && !self.contains('%')"

    def _message(self) -> str:
        return "must be a name that no URL reads as a path: not '.' or '..', and without '/' and '%'"


@dataclass(frozen=True, slots=True)
class NoBacksteps(Demand):
    """A URI with one of some schemes must not have `..` in its path. Applies to the text."""

    schemes: tuple[str, ...]

    def _python(self, value: str) -> str:
        starts = tuple(f"{scheme}://" for scheme in self.schemes)
        return f"'..' in {value} and {value}.startswith({starts!r}) and '/../' in {value} + '/'"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"Without `..` in a path of {' or '.join(f'`{scheme}://`' for scheme in self.schemes)}."

    def _cel(self) -> str:
        is_meant = " || ".join(f"self.startsWith('{scheme}://')" for scheme in self.schemes)
        return f"!({is_meant}) || !(self + '/').contains('/../')"

    def _message(self) -> str:
        return "must not contain '..' as a part of the path"
