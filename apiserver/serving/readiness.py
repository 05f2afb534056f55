"""May traffic come, and if not, why not: named checks that are asked each time somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Check = Callable[[], str | None]
"""Returns None when all is well, else the reason; must be quick and must not raise."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of all checks, in the order in which they were added: name, and reason or None."""

    outcomes: tuple[tuple[str, str | None], ...]

    @property
    def is_ready(self) -> bool:
        """Whether no check had an objection."""
        return all(reason is None for _, reason in self.outcomes)

    def text(self, *, verbose: bool) -> str:
        """Say it as Kubernetes' own health endpoints do: `ok`, or a line per check."""
        if self.is_ready and not verbose:
            return "ok"
        lines = [
            f"[+]{name} ok" if reason is None else f"[-]{name} failed: {reason}"
            for name, reason in self.outcomes
        ]
        return "\n".join([*lines, f"readyz check {'passed' if self.is_ready else 'failed'}", ""])


class Readiness:
    """The checks of one process. Once it drains it is not ready, whatever they say."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._draining = False

    @property
    def is_draining(self) -> bool:
        """Whether the process is on its way out."""
        return self._draining

    def add(self, name: str, check: Check) -> None:
        """Ask this check, too; `ValueError` if one of that name is there."""
        if name in self._checks:
            raise ValueError(f"there is already a readiness check {name!r}")
        self._checks[name] = check

    def drain(self) -> None:
        """Be not ready from now on."""
        self._draining = True

    def verdict(self) -> Verdict:
        """Ask all checks."""
        shutdown = ("shutdown", "the process is shutting down" if self._draining else None)
        return Verdict((*((name, check()) for name, check in self._checks.items()), shutdown))
