"""Plays the demo's scenario without a cluster, in virtual time, with the same manifests and controller.

It uses `stowplan simulate` with the shipped manifests. It shows within seconds whether the scenario still
works, and what another policy would achieve.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from apiserver.kinds.settings_names import NamesConfig
from controller.commands.check.documents import Source, read_sources
from controller.commands.plan.reading import FileContents, of_kind, read
from controller.commands.simulate.engines import ScenarioData
from controller.commands.simulate.export import read_export
from controller.config_planning import settings_of, sizing_of
from controller.simulation.batch import CompletedRequest
from controller.simulation.cluster import VirtualCluster
from controller.simulation.manifests import Manifests
from controller.simulation.outcome import PolicyOutcome
from controller.simulation.reconciler import ReconciledPolicy
from controller.simulation.run import play
from controller.simulation.scenario import Scenario
from controller.simulation.workload import TraceEntry, TraceReplay
from controller.sizing.records import StepParameters
from controller.variants.variantautoscaling import CycleSettings
from hack.demo import scenario
from hack.demo.engines import profile_of, start_up_seconds_of
from hack.demo.observation import DemoHistory, ServedRequests, observe
from hack.installation.installation import NAMESPACE as INSTALLATION_NAMESPACE


class WatchedPolicy(ReconciledPolicy):
    """The real controller, with an observation recorded in `history` after each cycle, without clients."""

    def __init__(self, played: Scenario, manifests: Manifests) -> None:
        super().__init__(
            played,
            manifests=manifests,
            # Reliefs are only text, and take a third of the time.
            settings=replace(settings_of(scenario.PLANNING), relief_solves=0),
            cycle_settings=CycleSettings(scale_to_zero=False, sizing=sizing_of(scenario.PLANNING)),
        )
        self.history = DemoHistory()
        self.finished: Mapping[str, Sequence[CompletedRequest]] = {}
        """The completed requests of each model."""

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Run a cycle and record an observation."""
        self.finished = cluster.fleet.finished
        published = await super().publish(cluster)
        self.history.observations.append(
            observe(
                self.world(),
                policies=self.policies(),
                clients={},
                seconds=cluster.now_seconds,
            )
        )
        return published


async def rehearse() -> tuple[DemoHistory, PolicyOutcome]:
    """Play the whole scenario; return the observations and the outcome."""
    played, manifests = demo_scenario()
    policy = WatchedPolicy(played, manifests)
    outcome = await play(played, policy, manifests=manifests)
    policy.history.served += served_requests(policy.finished)
    return policy.history, outcome


def served_requests(finished: Mapping[str, Sequence[CompletedRequest]]) -> list[ServedRequests]:
    """Return the results of the demo's requests, by the priority of their models."""
    models, requests = demo_scenario()[0].models, scenario.requests_until_the_end()
    end_us = round(scenario.END_SECONDS * 1e6)
    return [
        ServedRequests(
            model=model,
            requests=requests[model.model_id],
            finished=[done for done in finished[model.model_id] if done.request.arrival_us < end_us],
        )
        for model in sorted(models, key=lambda model: model.priority)
    ]


@cache
def demo_scenario() -> tuple[Scenario, Manifests]:
    """Return the demo as a scenario of the closed loop, from the shipped manifests and the nodes.

    Raises ValueError if they are invalid.
    """
    contents = read(
        [*read_sources([str(path) for path in (scenario.SETTINGS, *scenario.MODELS)]), _nodes()], namespace=""
    )
    given = read_export(
        contents,
        _supplied_inputs(contents),
        settings_namespace=INSTALLATION_NAMESPACE,
        scenario=Scenario(
            name="demo",
            models=(),
            variants=(),
            nodes=(),
            duration_seconds=scenario.END_SECONDS,
            warm_up_seconds=0,
            grace_seconds=0,
            behaviour=scenario.DEFAULT_BEHAVIOUR,
            sync_seconds=scenario.SYNC_SECONDS,
        ),
        names=NamesConfig(),
    )
    if given.scenario is None or given.manifests is None:
        raise ValueError("; ".join(given.problems))
    return given.scenario, given.manifests


def _nodes() -> Source:
    items = [node.manifest() for node in scenario.nodes()]
    return Source(
        name="nodes", data=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    )


def _supplied_inputs(contents: FileContents) -> ScenarioData:
    """Return the inputs that no object contains: the load, and the profiles of simulated engines."""
    templates = {
        name: item.value["spec"]["template"]
        for (_, name), item in of_kind(contents.manifests, "Deployment").items()
    }
    profiles = {name: profile_of(template) for name, template in templates.items()}
    return ScenarioData(
        workloads={
            model_id: TraceReplay(
                trace=tuple(
                    TraceEntry(
                        offset_ms=round(request.arrival_us / 1000),
                        prompt_tokens=request.prompt_tokens,
                        output_tokens=request.output_tokens,
                    )
                    for request in requests
                )
            )
            for model_id, requests in scenario.requests_until_the_end().items()
        },
        start_up_seconds={name: start_up_seconds_of(template) for name, template in templates.items()},
        profiles={
            name: StepParameters(
                alpha_ms=item.alpha_ms, beta_ms=item.beta_ms, delta_ms=item.delta_ms, gamma_ms=item.gamma_ms
            )
            for name, item in profiles.items()
        },
    )
