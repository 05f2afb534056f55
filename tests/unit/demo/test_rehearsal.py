"""The demo's scenario in simulated time, with the real controller."""

from __future__ import annotations

import pytest

from controller.simulation.run import silent
from hack.demo.checks import findings
from hack.demo.comparison import CHOSEN, account_of, plain_accounts
from hack.demo.rehearsal import rehearse


async def test_the_checks_of_the_demo_hold_in_the_simulated_scenario() -> None:
    """All hold except those on the API server, bindings and the Model; the cost is that of the simulation."""
    with silent():
        history, outcome = await rehearse()

    judged = [finding for finding in findings(history) if "Model" not in finding.name]
    wrong = {finding.name: finding.detail for finding in judged if not finding.holds}
    account = account_of(history, policy="Stowplan")

    assert wrong == {
        "an invalid manifest is refused": "none was tried",
        "a policy scales two different variants": "no binding of several targets was decided on",
    }
    assert account.cost == pytest.approx(outcome.cost, rel=0.03)
    assert account.missed == {model.model_id: model.missed for model in outcome.models}


def test_plain_autoscalers_miss_more_requests_if_they_cost_less() -> None:
    """They have no priorities, and those of one variant cannot use the accelerators of another.

    More than 10 % of premium requests are missed, whatever is scaled by whatever target.
    """
    accounts = plain_accounts()
    every, chosen = accounts[:3], accounts[3:]

    for generous, middle, tight in (every, chosen):
        premium = [account.missed["meta/llama-3.1-70b"] for account in (generous, middle, tight)]
        assert generous.cost > middle.cost > tight.cost
        assert max(premium) == premium[-1]
        assert min(premium) > 0.1
    assert every[0].reversals.keys() >= CHOSEN
