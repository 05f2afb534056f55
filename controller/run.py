"""Entry point and wiring of `stowplan controller`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.cluster.lease import LeaderElector, LeaseOptions
from apiserver.cluster.namespaces import installation_namespace
from apiserver.cluster.timing import utc_now
from apiserver.log import EventLogger
from apiserver.serving.config import ConfigurationError, run_verb
from apiserver.serving.process import Readiness, run_server
from apiserver.serving.process_metrics import ProcessMetrics
from controller.bindings.autoscalingpolicybinding import (
    AutoscalingPolicyBindingReconciler,
    BindingSettings,
    BindingTools,
)
from controller.bindings.joint import Exchange
from controller.bindings.scaling import DirectScaler, ScalingTools
from controller.bindings.telemetry import BindingTelemetry
from controller.caches import Caches
from controller.certificates.certificates import CertificateReconciler, CertificateSettings
from controller.config import ControllerConfig, config_problems, further_accelerators
from controller.config_planning import (
    PlanningConfig,
    budgets_of,
    objectives_of,
    pools_of,
    settings_of,
    sizing_of,
)
from controller.engines.endpoints import EndpointSource
from controller.engines.prometheus import PrometheusSource
from controller.engines.scraping import ScrapeLimits, Scraper, parse_networks
from controller.evictions.rounds import EvictionRecord, EvictionRules
from controller.observe.gather import PlanningTerms
from controller.observe.settings_reading import PolicyReader
from controller.replica import exit_at_once, new_identity
from controller.variants.advisory import Scope
from controller.variants.announcing import REPORTER
from controller.variants.privileges import Privileges
from controller.variants.publishing import Pulse, log_unwritten
from controller.variants.settings_keeping import SettingsKeeper
from controller.variants.solver import Solver
from controller.variants.telemetry import Telemetry
from controller.variants.variantautoscaling import CycleSettings, Tools, VariantAutoscalingReconciler
from controller.variants.watching import EngineSource, SteadyClock

_LONGEST_BINDING_CYCLE_SECONDS = 120.0
"""Timeout of a cycle of the bindings in seconds; a cycle that exceeds it confirms no decision."""

_MOST_SAMPLE_SECONDS = 15.0
"""Maximum time between the first two samples of the engines in seconds: published numbers become stale."""

_ALL_JOBS = "*"

_log = EventLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run_verb(
        ControllerConfig,
        arguments,
        verb="controller",
        description="Run the controller, which observes engines and nodes, plans replicas, and publishes"
        " decisions in status.",
        serving=lambda config: config.serving,
        start=_start,
    )


def _start(config: ControllerConfig) -> int:
    problems = config_problems(config)
    if problems:
        raise ConfigurationError(problems)
    controller = Controller(config)
    return run_server(
        None,
        config.serving,
        readiness=controller.readiness,
        metrics=controller.metrics,
        background=[controller.run],
    )


class Controller:
    """The concurrent tasks of the process and their shared state."""

    def __init__(self, config: ControllerConfig) -> None:
        self._config = config
        self._namespace = config.namespace or installation_namespace(
            config.cluster.kubeconfig, config.cluster.context
        )
        self._identity = new_identity()
        self._caches: Caches | None = None
        self._pulse = Pulse()
        self.readiness = Readiness()
        self.readiness.add("caches", self._why_not_current)
        self.metrics = ProcessMetrics("controller")
        self._telemetry = Telemetry(self.metrics.registry)
        self._binding_telemetry = BindingTelemetry(self.metrics.registry)

    async def run(self) -> None:
        """Watch the cluster all the time; decide and issue certificates only while this replica leads."""
        config = self._config
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(
                await Cluster.connect(config.cluster.kubeconfig, config.cluster.context)
            )
            clock = SteadyClock()
            source = await stack.enter_async_context(_source(config, clock))
            planning = settings_of(config.planning)
            # The child enforces its own time limit; this larger one is for a child that hangs.
            planner = await stack.enter_async_context(
                Solver(planning, deadline_seconds=3.0 * planning.wall_seconds)
            )
            caches = self._caches = Caches(
                cluster,
                namespace=self._namespace,
                objectives=objectives_of(config.planning),
                further=further_accelerators(config),
                annotated=config.annotated,
            )
            elector = self._elector(cluster)
            # A process that was suspended during a cycle may have lost the lease when it resumes.
            fenced = cluster.with_fence(elector.is_leading)
            events = EventRecorder(fenced, controller=REPORTER, instance=self._identity)
            settings = self._settings(fenced, events, caches)
            exchange = Exchange(interval_seconds=float(config.planning.interval_seconds))
            tools = Tools(
                cluster=fenced,
                events=events,
                source=source,
                endpoints=source,
                queries=source if isinstance(source, PrometheusSource) else None,
                planner=planner,
                world=caches.world,
                policies=settings.policies,
                objectives=caches.objectives,
                now=utc_now,
                steady=clock.seconds,
                eviction_record=EvictionRecord(fenced, namespace=self._namespace, name=LEASE_NAME),
                pulse=self._pulse,
                exchange=exchange,
                external_metrics=caches.external_metrics,
                privileges=Privileges(cluster, namespace=self._namespace, seconds=clock.seconds)
                if config.tenants
                else None,
                settings=settings,
            )
            binding_tools = _binding_tools(tools, caches, source, clock)
            async with asyncio.TaskGroup() as group:
                group.create_task(caches.run())
                group.create_task(events.run())
                group.create_task(self._lead(elector, caches, tools, binding_tools))

    def _why_not_current(self) -> str | None:
        return self._caches.why_not_current() if self._caches else "not connected yet"

    def _settings(self, cluster: Cluster, events: EventRecorder, caches: Caches) -> SettingsKeeper:
        names = self._config.names
        reader = PolicyReader(unit_costs=names.unit_costs, default_classes=names.service_classes, now=utc_now)
        return SettingsKeeper(
            cluster,
            events,
            namespace=self._namespace,
            reader=reader,
            config_maps=caches.config_maps,
            named=caches.named_config_maps,
            now=utc_now,
        )

    def _elector(self, cluster: Cluster) -> LeaderElector:
        options = LeaseOptions(namespace=self._namespace, name=LEASE_NAME, identity=self._identity)
        return LeaderElector(cluster, options, on_lost=exit_at_once, annotations=self._pulse.annotations)

    async def _lead(
        self, elector: LeaderElector, caches: Caches, tools: Tools, binding_tools: BindingTools
    ) -> None:
        scaler = DirectScaler(
            ScalingTools(
                cluster=tools.cluster,
                events=binding_tools.events,
                scalable=caches.scalable,
                is_leading=elector.is_leading,
                namespace=self._namespace,
            )
        )
        binding_tools = replace(binding_tools, scaler=scaler)

        async def lead() -> None:
            async with asyncio.TaskGroup() as group:
                if self._config.certificates.enabled:
                    group.create_task(self._keep_certificates(tools.cluster))
                group.create_task(self._keep_deciding(caches, tools))
                group.create_task(self._keep_deciding_on_bindings(caches, binding_tools))

        await elector.run(lead)

    async def _keep_deciding(self, caches: Caches, tools: Tools) -> None:
        planning = self._config.planning
        reconciler = VariantAutoscalingReconciler(tools, _cycle_settings(self._config))
        await caches.wait_until_synced()
        if tools.settings is not None:
            tools.settings.restore()
        if await self._has_sampled(reconciler):
            await asyncio.sleep(min(planning.interval_seconds, _MOST_SAMPLE_SECONDS))
        while True:
            began = time.monotonic()
            await self._decide(reconciler, caches)
            left_seconds = max(0.0, planning.interval_seconds - (time.monotonic() - began))
            await tools.exchange.wait_for_request(within_seconds=left_seconds)

    async def _has_sampled(self, reconciler: VariantAutoscalingReconciler) -> bool:
        """Collect first samples of the engines; tell whether rates can follow after some seconds."""
        try:
            return await reconciler.sample()
        except Exception:  # noqa: BLE001 (as below)
            _log.exception("no first samples of the engines")
            return False

    async def _keep_deciding_on_bindings(self, caches: Caches, tools: BindingTools) -> None:
        """Decide on bindings concurrently with variants, so that unresponsive pods of one delay only it."""
        planning = self._config.planning
        settings = _binding_settings(self._config)
        reconciler = AutoscalingPolicyBindingReconciler(tools, settings)
        self._pulse.unbound()
        await caches.wait_until_synced()
        while True:
            began = time.monotonic()
            await self._decide_on_bindings(reconciler, caches)
            await asyncio.sleep(max(0.0, planning.interval_seconds - (time.monotonic() - began)))

    async def _decide_on_bindings(
        self, reconciler: AutoscalingPolicyBindingReconciler, caches: Caches
    ) -> None:
        if caches.why_not_current() is not None:
            self._pulse.unbound()  # the variants' cycle logs the reason
            return
        try:
            async with asyncio.timeout(_LONGEST_BINDING_CYCLE_SECONDS):
                result = await reconciler.cycle()
            self._binding_telemetry.observe(result)
            log_unwritten("AutoscalingPolicyBinding", result.unwritten)
        except Exception:  # noqa: BLE001 (as below)
            self._pulse.unbound()
            self._binding_telemetry.count_failure()
            _log.exception("cycle of the bindings failed: the last decisions stay")

    async def _decide(self, reconciler: VariantAutoscalingReconciler, caches: Caches) -> None:
        """Run one cycle. The next cycle retries whatever the API server rejected or delayed."""
        why_not = caches.why_not_current()
        if why_not is not None:
            _log.warning("not deciding", why=why_not)
            return
        began = time.monotonic()
        try:
            result = await reconciler.cycle()
        except ClusterError as error:
            self._telemetry.count_failure("ClusterError")
            _log.warning("cycle not finished", error=error.message)
            return
        except Exception:  # noqa: BLE001 (an error of one object must not affect others)
            self._telemetry.count_failure("Error")
            _log.exception("cycle failed: the last decisions stay")
            return
        ended = time.monotonic()
        self._telemetry.observe(result, seconds=ended - began, now_seconds=ended)
        log_unwritten("variant", result.unwritten)

    async def _keep_certificates(self, cluster: Cluster) -> None:
        config = self._config.certificates
        settings = CertificateSettings(
            namespace=self._namespace,
            leaf_lifetime=timedelta(hours=config.leaf_hours),
            authority_lifetime=timedelta(hours=config.authority_hours),
        )
        await CertificateReconciler(cluster, settings, now=utc_now).keep()


def _binding_tools(tools: Tools, caches: Caches, source: EndpointSource, clock: SteadyClock) -> BindingTools:
    """Return the dependencies of cycles of bindings, which share those of plans."""
    return BindingTools(
        cluster=tools.cluster,
        events=tools.events,
        source=source,
        queries=tools.queries,
        world=caches.bound_world,
        now=tools.now,
        steady=clock.seconds,
        pulse=tools.pulse,
        exchange=tools.exchange,
        external_metrics=tools.external_metrics,
    )


class _Source(EngineSource, EndpointSource, Protocol):
    """Reads engine metrics, for variants and for bindings."""


def _source(config: ControllerConfig, clock: SteadyClock) -> AbstractAsyncContextManager[_Source]:
    prometheus, engines = config.prometheus, config.engines
    if prometheus.url:
        is_checked = config.tenants and _ALL_JOBS not in prometheus.trusted_jobs
        return PrometheusSource(
            prometheus.url,
            credentials=prometheus.credentials,
            clock=clock.seconds,
            trusted_jobs=frozenset(prometheus.trusted_jobs) if is_checked else None,
        )
    return Scraper(
        ScrapeLimits(
            port_names=engines.port_names,
            pod_networks=parse_networks(engines.pod_networks),
            timeout_seconds=float(engines.timeout_seconds),
            limit_bytes=engines.limit_bytes,
            concurrency=engines.concurrency,
            scheme=engines.scheme,
            credentials=engines.credentials,
        ),
        steady=clock.seconds,
    )


def _cycle_settings(config: ControllerConfig) -> CycleSettings:
    planning = config.planning
    return CycleSettings(
        scale_to_zero=planning.scale_to_zero,
        terms=PlanningTerms(
            grace_seconds=float(planning.scale_to_zero_grace_seconds),
            pools=pools_of(planning),
            budgets=budgets_of(planning),
            further=further_accelerators(config),
            steers_removal=planning.pod_deletion_cost,
        ),
        sizing=sizing_of(planning),
        evictions=EvictionRules(
            enabled=planning.evictions.enabled,
            interval_seconds=float(planning.evictions.interval_seconds),
            per_hour=planning.evictions.per_hour,
        ),
        advisory=_advisory(planning),
        annotates_decisions=planning.decision_annotation,
    )


def _binding_settings(config: ControllerConfig) -> BindingSettings:
    planning, scaling = config.planning, config.scaling
    return BindingSettings(
        grace_seconds=float(planning.scale_to_zero_grace_seconds),
        advisory=_advisory(planning),
        joint=Scope(
            everywhere=planning.joint_bindings, namespaces=frozenset(planning.joint_bindings_namespaces)
        ),
        direct=Scope(everywhere=scaling.mode == "direct", namespaces=frozenset(scaling.direct_namespaces)),
        sizing=sizing_of(planning),
    )


def _advisory(planning: PlanningConfig) -> Scope:
    return Scope(everywhere=planning.advisory, namespaces=frozenset(planning.advisory_namespaces))
