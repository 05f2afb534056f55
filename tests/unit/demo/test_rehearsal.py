"""The whole scenario on virtual time, against the real planner: it must still tell its story."""

from __future__ import annotations

import pytest

from hack.demo import scenario
from hack.demo.checks import findings
from hack.demo.history import History
from hack.demo.rehearsal import prepare


@pytest.fixture(scope="module")
def history() -> History:
    """Rehearse from the first request to the end."""
    return History(observations=list(prepare().run(until_seconds=scenario.END_SECONDS)))


def test_scenario_shows_what_the_demo_promises(history: History) -> None:
    """Every check but the refusal, which needs an API server, holds."""
    wrong = {finding.name: finding.detail for finding in findings(history) if not finding.holds}

    assert wrong == {"a bad manifest is refused": "none was tried"}
