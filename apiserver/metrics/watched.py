"""What the API answers from, kept current from the cluster: the variants, and who the front proxy is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import structlog

from apiserver.cluster.cache import Cache, Change
from apiserver.cluster.client import Cluster
from apiserver.cluster.heartbeat import LEASE_NAME, heartbeat_of
from apiserver.cluster.optional_cache import OptionalCache
from apiserver.cluster.resource import (
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    LEASES,
    VARIANT_AUTOSCALINGS,
)
from apiserver.metrics.authentication import (
    CONFIG_MAP_NAME,
    CONFIG_MAP_NAMESPACE,
    FrontProxy,
    FrontProxyUnknownError,
    Gate,
)
from apiserver.metrics.from_binding import bound_essentials, bound_metrics_of
from apiserver.metrics.from_status import essentials, metrics_of
from apiserver.metrics.provider import MetricIndex
from apiserver.metrics.series import METRIC_NAMES, TARGET_ID
from apiserver.serving.config import ClusterConfig
from apiserver.serving.tls import ServerTls

_LOG: Final = structlog.get_logger(__name__)


class Watched:
    """Feeds the index from our objects and the controller's Lease, gate and TLS from a ConfigMap."""

    def __init__(self, index: MetricIndex, tls: ServerTls) -> None:
        self._index = index
        self._tls = tls
        self._variants: Cache | None = None
        self.gate: Gate | None = None
        """None until the front proxy is known; from then on the last one that could be read."""

    async def follow(self, config: ClusterConfig, *, namespace: str) -> None:
        """Keep all of it current until cancelled; raises NotConfigured without a cluster."""
        kubeconfig = Path(config.kubeconfig) if config.kubeconfig else None
        async with await Cluster.connect(kubeconfig, config.context or None) as cluster:
            self._variants = Cache(cluster, VARIANT_AUTOSCALINGS, reduce=essentials)
            self._variants.subscribe(self.take_variant)
            # The field selector is what lets a role that names this one object cover list and watch.
            front_proxy = Cache(
                cluster,
                CONFIG_MAPS,
                namespace=CONFIG_MAP_NAMESPACE,
                field_selector=f"metadata.name={CONFIG_MAP_NAME}",
            )
            front_proxy.subscribe(self.take_front_proxy)
            lease = Cache(cluster, LEASES, namespace=namespace, field_selector=f"metadata.name={LEASE_NAME}")
            lease.subscribe(self.take_lease)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._variants.run())
                group.create_task(self._bindings(cluster).run())
                group.create_task(front_proxy.run())
                group.create_task(lease.run())

    def take_variant(self, change: Change) -> None:
        """Take a VariantAutoscaling that is new, changed or gone."""
        if change.new is None:
            namespace, name = change.key
            self._index.remove(namespace=namespace, entry_name=name, metric_names=METRIC_NAMES)
        else:
            self._index.put(metrics_of(change.new))

    def take_binding(self, change: Change) -> None:
        """Take an AutoscalingPolicyBinding that is new, changed or gone, with all of its targets."""
        for entry in bound_metrics_of(change.old) if change.old else ():
            self._index.remove(
                namespace=entry.namespace,
                entry_name=entry.labels[TARGET_ID],
                metric_names=(entry.metric_name,),
            )
        self._index.put(bound_metrics_of(change.new) if change.new else ())

    def _bindings(self, cluster: Cluster) -> OptionalCache:
        """Return the copy of the bindings; a cluster need not have the kind."""
        cache = OptionalCache(
            cluster,
            AUTOSCALING_POLICY_BINDINGS,
            without="AutoscalingPolicyBindings",
            reduce=bound_essentials,
        )
        cache.subscribe(self.take_binding)
        return cache

    def take_lease(self, change: Change) -> None:
        """Take what the controller's Lease says; when it is gone, statuses are as old as they say."""
        self._index.beat(heartbeat_of(change.new) if change.new else None)

    def take_front_proxy(self, change: Change) -> None:
        """Take a new front proxy; one that cannot be read changes nothing, as kube-apiserver will mend it."""
        try:
            front_proxy = FrontProxy.from_config_map(change.new)
        except FrontProxyUnknownError as error:
            _LOG.error("front proxy not usable", error=str(error), keeping_old=self.gate is not None)
            return
        self._tls.trust_clients(front_proxy.authorities_pem.encode())
        self.gate = Gate(front_proxy)
        _LOG.info("front proxy known", allowed_names=sorted(front_proxy.allowed_names))

    def why_variants_unknown(self) -> str | None:
        """Return why the index is not complete yet: a readiness check."""
        if self._variants is not None and self._variants.synced.is_set():
            return None
        return "the VariantAutoscalings of the cluster have not been read yet"

    def why_front_proxy_unknown(self) -> str | None:
        """Return why nobody can be let in yet: a readiness check."""
        if self.gate is not None:
            return None
        return f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP_NAME} has not been read yet"
