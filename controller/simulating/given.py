"""The user's input: a scenario, or all problems of it."""

from __future__ import annotations

from dataclasses import dataclass

from controller.closedloop.manifests import Manifests
from controller.closedloop.scenario import Scenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A scenario, the objects of a live cluster if it is built from those, and the policies that it names.

    Without a scenario there are problems.
    """

    scenario: Scenario | None = None
    manifests: Manifests | None = None
    policies: tuple[str, ...] = ("stowplan",)
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
