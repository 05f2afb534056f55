"""Entry point, configuration and wiring of `stowplan models`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.lease import LeaderElector, LeaseOptions
from apiserver.cluster.namespaces import installation_namespace
from apiserver.cluster.status_writer import StatusWriter
from apiserver.kinds.identity import Key
from apiserver.kinds.kthena.groups import NETWORKING
from apiserver.schema.declaration import declaration
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, Range
from apiserver.serving.config import (
    ClusterConfig,
    ConfigurationError,
    ServingConfig,
    run_verb,
)
from apiserver.serving.process import Readiness, run_server
from apiserver.serving.process_metrics import ProcessMetrics
from controller.config import network_problems
from controller.engines.scraping import ScrapeLimits, Scraper, parse_networks
from controller.expansion.expansion import S3_IMAGE, ExpansionSettings
from controller.expansion.routing import AUTO
from controller.models.caches import ModelCaches
from controller.models.gateways import GatewayCaches, GatewayTranslator
from controller.models.model import FIELD_MANAGER, PODS_AT_A_TIME, AdapterReader, ModelReconciler
from controller.models.traffic import TrafficReconciler
from controller.models.traffic_caches import TrafficCaches, TrafficKey
from controller.models.workers import Workers
from controller.replica import exit_at_once, new_identity

_ASK_SECONDS: Final = 3.0
_LONGEST_PAGE_BYTES: Final = 256 << 10
"""Size in bytes for the 128 adapters of a backend, with a sentence about each."""

_DIGITS: Final = re.compile("[0-9]+")
_FIRST_WITH_TOLERANCE: Final = 33
"""Minor version of Kubernetes; earlier ones reject objects with that field."""


@declaration()
class ModelsConfig:
    """Configuration of the controller of Models."""

    serving: ServingConfig = ServingConfig()
    """Health, metrics and logs; there is no HTTPS listener."""

    cluster: ClusterConfig = ClusterConfig()
    """Connection to the API server."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """Namespace of Stowplan itself, which contains the lease. Empty: the namespace of the pod."""

    scaling: Literal["autoscalers", "none"] = "autoscalers"
    """What scales the workloads. `autoscalers`: HorizontalPodAutoscalers apply the policies. `none`: the
    controller of bindings scales directly (its `scaling.mode` is `direct`), or something else does."""

    routing_group: Literal["auto", "networking.volcano.sh", "networking.serving.volcano.sh"] = "auto"
    """API group of the ModelServers and ModelRoutes that Models expand to. `auto`: that of Kthena's releases,
    `networking.serving.volcano.sh`, where the cluster serves it and `gateways` is false; otherwise
    `networking.volcano.sh`."""

    gateways: bool = False
    """Whether ModelRoutes that opt in are translated for Gateways with the Inference Extension. Needs the
    permissions of `manifests/models-gateways`."""

    s3_image: Annotated[str, Length(1, 512)] = S3_IMAGE
    """Image with the AWS command line, which downloads weights from `s3://`."""

    pod_networks: Annotated[tuple[Annotated[str, Length(1, 64)], ...], Items(maximum=64)] = ()
    """Networks in which pods may be queried for the adapters of their engines, in CIDR notation. Empty: all
    but loopback and link-local."""

    workers: Annotated[int, Range(1, 64)] = 4
    """The number of Models that are reconciled concurrently."""


def expansion_settings(config: ModelsConfig, version: Json) -> ExpansionSettings:
    """Return the settings for expanding Models, under a configuration and a cluster's `/version`."""
    minor = _DIGITS.match(str(version["minor"]))  # some distributions append "+"
    return ExpansionSettings(
        s3_image=config.s3_image,
        has_autoscalers=config.scaling == "autoscalers",
        has_tolerance=minor is None or int(minor[0]) >= _FIRST_WITH_TOLERANCE,
    )


def routing_setting(config: ModelsConfig) -> str:
    """Return the API group of routing under a configuration, or AUTO.

    Gateways route by either group, and a change would interrupt their requests.
    """
    return NETWORKING if config.routing_group == AUTO and config.gateways else config.routing_group


LEASE_NAME: Final = "stowplan-models"
_REPORTER: Final = "stowplan.dev/models"


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run_verb(
        ModelsConfig,
        arguments,
        verb="models",
        description="Run the controller that expands Models into workloads and routes, and reports their"
        " state in status.",
        serving=lambda config: config.serving,
        start=_start,
    )


def _start(config: ModelsConfig) -> int:
    if problems := network_problems("podNetworks", config.pod_networks):
        raise ConfigurationError(problems)
    controller = ModelController(config)
    return run_server(
        None,
        config.serving,
        readiness=controller.readiness,
        metrics=controller.metrics,
        background=[controller.run],
    )


class ModelController:
    """The concurrent tasks of the process and their shared state."""

    def __init__(self, config: ModelsConfig) -> None:
        self._config = config
        self._namespace = config.namespace or installation_namespace(
            config.cluster.kubeconfig, config.cluster.context
        )
        self._identity = new_identity()
        self._caches: Sequence[ModelCaches | TrafficCaches | GatewayCaches] = ()
        self.readiness = Readiness()
        self.readiness.add("caches", self._why_not_current)
        self.metrics = ProcessMetrics("models")

    async def run(self) -> None:
        """Watch the cluster all the time; reconcile only while this replica leads."""
        config = self._config
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(
                await Cluster.connect(config.cluster.kubeconfig, config.cluster.context)
            )
            limits = ScrapeLimits(
                port_names=(),
                pod_networks=parse_networks(config.pod_networks),
                timeout_seconds=_ASK_SECONDS,
                limit_bytes=_LONGEST_PAGE_BYTES,
                concurrency=PODS_AT_A_TIME * config.workers,
            )
            scraper = await stack.enter_async_context(Scraper(limits))
            models: Workers[Key] = Workers()
            traffic: Workers[TrafficKey] = Workers()
            caches = ModelCaches(cluster, models.add, routing_setting=routing_setting(config))
            traffic_caches = TrafficCaches(cluster, traffic.add)
            gateways = GatewayCaches(cluster, traffic_caches.tell_routes) if config.gateways else None
            self._caches = [caches, traffic_caches, *([gateways] if gateways else [])]
            options = LeaseOptions(namespace=self._namespace, name=LEASE_NAME, identity=self._identity)
            elector = LeaderElector(cluster, options, on_lost=exit_at_once)
            fenced = cluster.with_fence(elector.is_leading)
            events = EventRecorder(fenced, controller=_REPORTER, instance=self._identity)
            writer = StatusWriter(cluster=fenced, events=events, field_manager=FIELD_MANAGER)
            statuses = TrafficReconciler(
                writer,
                traffic_caches,
                upstream=caches.upstream,
                now=lambda: datetime.now(UTC),
                gateways=GatewayTranslator(writer, gateways, traffic_caches) if gateways else None,
            )

            async def lead() -> None:
                await caches.wait_until_synced()
                await traffic_caches.wait_until_synced()
                if gateways:
                    await gateways.wait_until_synced()
                caches.subscribe_upstream(traffic_caches.all_changed)
                settings = expansion_settings(config, await cluster.get_path("/version"))
                reconciler = ModelReconciler(
                    writer, caches, AdapterReader(scraper), settings, now=lambda: datetime.now(UTC)
                )
                async with asyncio.TaskGroup() as group:
                    group.create_task(models.run(config.workers, reconciler.reconcile))
                    group.create_task(traffic.run(config.workers, statuses.reconcile))

            async with asyncio.TaskGroup() as group:
                group.create_task(caches.run())
                group.create_task(traffic_caches.run())
                if gateways:
                    group.create_task(gateways.run())
                group.create_task(events.run())
                group.create_task(elector.run(lead))

    def _why_not_current(self) -> str | None:
        if not self._caches:
            return "not connected yet"
        return next(filter(None, (caches.why_not_current() for caches in self._caches)), None)
