"""Policies by name: `stowplan`, `concurrency:40@h100`, `lower-bound`, or a file."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controller.closedloop.bound import BoundPolicy, PolicyFile, unbound_problem
from controller.closedloop.lower_bound import ATTAINMENT, lower_bound
from controller.closedloop.reconciled import ReconciledPolicy
from controller.closedloop.rivals import ConstantPolicy, LoadPolicy, chosen_variants
from controller.closedloop.run import play
from controller.closedloop.saturation_v1 import SaturationV1Policy
from controller.closedloop.saturation_v2 import SaturationV2Policy
from controller.sizing.records import DEFAULT_SIZING
from controller.uncollected import without_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from controller.closedloop.manifests import Manifests
    from controller.closedloop.outcome import PolicyOutcome
    from controller.closedloop.policy import Policy
    from controller.closedloop.scenario import Scenario
    from controller.planning.inputs import Settings
    from controller.simulation.request import Request
    from controller.variants.variantautoscaling import CycleSettings

PLAIN = ("stowplan", "wva-v1", "wva-v2", "lower-bound")
FIGURED = ("concurrency", "queue", "constant")
SAYING = (
    f"{', '.join(PLAIN)}, lower-bound:N, or one of {', '.join(FIGURED)} with :N or :N@VARIANT, such as"
    " concurrency:40"
)

_PERCENT = re.compile(r"lower-bound:(?P<number>[0-9]{1,3}(\.[0-9]{1,3})?)\Z")
_FIGURE = re.compile(r"(?P<kind>[a-z]+):(?P<number>[0-9]{1,6}(\.[0-9]{1,3})?)(@(?P<variant>.+))?\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyName:
    """The parts of a policy's name; `number`, `variant` and `file` are empty where it has none."""

    text: str
    kind: str
    number: float = 0.0
    variant: str = ""
    file: PolicyFile | None = None
    """The content of the file, for a policy in a file."""


def policy_name(text: str) -> PolicyName:
    """Return the parts of a name. Raises ValueError with the valid forms."""
    if text in PLAIN:
        return PolicyName(text=text, kind=text)
    kind, colon, _ = text.partition(":")
    if kind == "lower-bound":
        share = _PERCENT.match(text)
        percent = float(share["number"]) if share else 0.0
        if not 0 < percent <= 100:  # noqa: PLR2004 (percent)
            raise ValueError(f"{text!r}: must be lower-bound:N, where N is a percentage of requests")
        return PolicyName(text=text, kind=kind, number=percent)
    if kind not in FIGURED or not colon:
        raise ValueError(f"there is no policy {text!r}: must be {SAYING}")
    found = _FIGURE.match(text)
    number = float(found["number"]) if found else 0.0
    is_allowed = number == int(number) if kind == "constant" else number > 0
    if found is None or not is_allowed:
        allowed = "a whole number from 0 to 999999" if kind == "constant" else "from 0.001 to 999999.999"
        raise ValueError(f"{text!r}: must be {kind}:N or {kind}:N@VARIANT, where N is {allowed}")
    return PolicyName(text=text, kind=kind, number=number, variant=found["variant"] or "")


def policy_problem(name: PolicyName, scenario: Scenario) -> str:
    """Return why a scenario cannot be simulated with a policy; empty if it can."""
    if name.file is not None:
        problem = unbound_problem(name.file, scenario)
        return f"policy {name.text}: {problem}" if problem else ""
    variants = [variant.name for variant in scenario.variants]
    if name.variant and name.variant not in variants:
        return (
            f"policy {name.text}: there is no variant {name.variant!r}; the variants are"
            f" {', '.join(variants)}"
        )
    return ""


async def simulate_policy(
    scenario: Scenario,
    name: PolicyName,
    *,
    manifests: Manifests | None = None,
    requests: Mapping[str, list[Request]] | None = None,
    progress: Callable[[float], None] | None = None,
    settings: Settings | None = None,
    cycle_settings: CycleSettings | None = None,
) -> PolicyOutcome:
    """Simulate a scenario with a policy. The controller's logs are suppressed.

    The settings are those of the controller, for `stowplan` and policies in files.
    """
    with silent():
        if name.kind == "lower-bound":
            attainment = name.number / 100 or ATTAINMENT
            return lower_bound(scenario, attainment=attainment, requests=requests, name=name.text)
        if name.kind == "stowplan":
            policy: Policy = ReconciledPolicy(
                scenario, manifests=manifests, settings=settings, cycle_settings=cycle_settings
            )
        elif name.file is not None:
            sizing = cycle_settings.sizing if cycle_settings else DEFAULT_SIZING
            policy = BoundPolicy(scenario=scenario, file=name.file, name=name.text, settings=sizing)
        else:
            policy = _rival(scenario, name)
        scenario = _with_fleet(scenario, policy)
        outcome = await play(scenario, policy, manifests=manifests, requests=requests, progress=progress)
        return replace(outcome, decided=policy.decided) if isinstance(policy, BoundPolicy) else outcome


def simulate(
    scenario: Scenario,
    policy: str,
    *,
    requests: Mapping[str, list[Request]] | None = None,
    cycle_settings: CycleSettings | None = None,
) -> PolicyOutcome:
    """Simulate a scenario with a policy by name, for callers without an event loop.

    Raises ValueError for an unknown policy, or a variant that the scenario does not have.
    """
    name = policy_name(policy)
    if problem := policy_problem(name, scenario):
        raise ValueError(problem)
    with without_collection():
        return asyncio.run(simulate_policy(scenario, name, requests=requests, cycle_settings=cycle_settings))


def _rival(scenario: Scenario, name: PolicyName) -> Policy:
    scaled = chosen_variants(scenario, name.variant)
    match name.kind:
        case "concurrency" | "queue":
            return LoadPolicy(
                scenario=scenario,
                load="queue" if name.kind == "queue" else "concurrency",
                per_replica=name.number,
                scaled=scaled,
                name=name.text,
            )
        case "constant":
            return ConstantPolicy(replicas=int(name.number), scaled=scaled, name=name.text)
        case "wva-v1":
            return SaturationV1Policy(scenario=scenario)
        case _:
            return SaturationV2Policy(scenario=scenario)


def _with_fleet(scenario: Scenario, policy: Policy) -> Scenario:
    """Return the scenario in which a constant fleet runs from the beginning, without start-up."""
    if not isinstance(policy, ConstantPolicy):
        return scenario
    variants = tuple(
        replace(variant, initial_replicas=policy.replicas * (variant.name in policy.scaled))
        for variant in scenario.variants
    )
    return replace(scenario, variants=variants)


@contextmanager
def silent() -> Iterator[None]:
    """Suppress the controller's logs within the block."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
