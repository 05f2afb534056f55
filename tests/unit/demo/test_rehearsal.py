"""The whole scenario on virtual time, against the real controller: it must still tell its story."""

from __future__ import annotations

import pytest

from controller.closedloop.named import silent
from hack.demo.checks import findings
from hack.demo.comparison import CHOSEN, account_of, plain_accounts
from hack.demo.rehearsal import rehearse


async def test_scenario_shows_what_the_demo_promises() -> None:
    """Every check holds but those of the API server, of bindings and of the Model; so does the cost."""
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


def test_a_plain_autoscaler_serves_less_the_less_it_costs() -> None:
    """It knows no priorities: on every variant, the premium model goes short beside the freemium one."""
    accounts = plain_accounts()
    every, chosen = accounts[:3], accounts[3:]

    for generous, middle, tight in (every, chosen):
        premium = [account.missed["meta/llama-3.1-70b"] for account in (generous, middle, tight)]
        assert generous.cost > middle.cost > tight.cost
        assert premium == sorted(premium)
    assert min(account.missed["meta/llama-3.1-70b"] for account in every) > 0.1
    assert every[0].reversals.keys() >= CHOSEN
