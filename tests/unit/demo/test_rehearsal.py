"""The whole scenario on virtual time, against the real controller: it must still tell its story."""

from __future__ import annotations

from hack.demo import scenario
from hack.demo.checks import findings
from hack.demo.history import History
from hack.demo.rehearsal import prepare


async def test_scenario_shows_what_the_demo_promises() -> None:
    """Every check but the refusal, which needs an API server, holds."""
    history = History()
    async for observation in prepare().run(until_seconds=scenario.END_SECONDS):
        history.observations.append(observation)

    wrong = {finding.name: finding.detail for finding in findings(history) if not finding.holds}

    assert wrong == {"a bad manifest is refused": "none was tried"}
