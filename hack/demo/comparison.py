"""Comparison of the demo's results with those of a plain HorizontalPodAutoscaler.

A plain autoscaler scales a Deployment by the number of waiting and running requests per replica in its own
pods, down to one replica, with the default rules at the demo's pace. This is what users set up without
Stowplan. There is one for each Deployment, or one for each model on the variant with the fewest misses.
`stowplan simulate` simulates it with the same requests, nodes and start-up times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from controller.simulation.policies import LoadPolicy
from controller.simulation.run import play
from hack.demo.observation import DemoHistory
from hack.demo.rehearsal import demo_scenario

REQUESTS_PER_REPLICA = (12, 24, 48)
"""Targets of the plain autoscaler. The best one is not known in advance."""

CHOSEN = frozenset({"llama-70b-h100", "llama-8b-l40s", "qwen-coder-32b-a100"})
"""One variant of each model, chosen in hindsight: the other eleven combinations miss more, or cost more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """The results of a policy; shares are from 0 to 1, cost is in the unit of the prices."""

    policy: str
    missed: Mapping[str, float]
    """Share of each model's requests that missed a target, TTFT or ITL, by priority."""

    cost: float
    reversals: Mapping[str, int]
    """The number of direction changes of the requested replicas, by variant."""


def account_of(history: DemoHistory, *, policy: str) -> Account:
    """Return the observed results."""
    return Account(
        policy=policy,
        missed={served.model.model_id: served.outcome.missed for served in history.served},
        cost=sum(
            float(before.cost_per_hour) * (after.seconds - before.seconds) / 3600
            for before, after in pairwise(history.observations)
        ),
        reversals=history.reversals(),
    )


def plain_accounts(targets: Sequence[int] = REQUESTS_PER_REPLICA) -> list[Account]:
    """Simulate the plain autoscaler with each target; must be called where no event loop runs."""
    every = frozenset(variant.name for variant in demo_scenario()[0].variants)
    return [
        _plain(f"plain HPA on {name}: {target}", scaled, target)
        for name, scaled in (("every variant", every), ("one each", CHOSEN))
        for target in targets
    ]


def _plain(name: str, scaled: frozenset[str], target: int) -> Account:
    played, manifests = demo_scenario()
    policy = LoadPolicy(scenario=played, per_replica=target, scaled=scaled, name=name)
    outcome = asyncio.run(play(played, policy, manifests=manifests))
    hours = played.duration_seconds / 3600
    return Account(
        policy=policy.name,
        missed={model.model_id: model.missed for model in outcome.models},
        cost=outcome.cost,
        reversals={one.name: round(one.reversals_per_hour * hours) for one in outcome.variants},
    )
