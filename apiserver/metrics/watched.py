"""What the API answers from, kept current from the cluster: the variants, and who the front proxy is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import structlog

from apiserver.cluster.cache import Cache, Change
from apiserver.cluster.client import Cluster
from apiserver.cluster.resource import CONFIG_MAPS, VARIANT_AUTOSCALINGS
from apiserver.metrics.authentication import (
    CONFIG_MAP_NAME,
    CONFIG_MAP_NAMESPACE,
    FrontProxy,
    FrontProxyUnknownError,
    Gate,
)
from apiserver.metrics.from_status import essentials, metrics_of
from apiserver.metrics.provider import MetricIndex
from apiserver.serving.config import ClusterConfig
from apiserver.serving.tls import ServerTls

_LOG: Final = structlog.get_logger(__name__)


class Watched:
    """Feeds the index from VariantAutoscalings, gate and TLS from the ConfigMap about the front proxy."""

    def __init__(self, index: MetricIndex, tls: ServerTls) -> None:
        self._index = index
        self._tls = tls
        self._variants: Cache | None = None
        self.gate: Gate | None = None
        """None until the front proxy is known; from then on the last one that could be read."""

    async def follow(self, config: ClusterConfig) -> None:
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
            async with asyncio.TaskGroup() as group:
                group.create_task(self._variants.run())
                group.create_task(front_proxy.run())

    def take_variant(self, change: Change) -> None:
        """Take a VariantAutoscaling that is new, changed or gone."""
        if change.new is None:
            namespace, name = change.key
            self._index.remove(namespace=namespace, variant_name=name)
        else:
            self._index.put(metrics_of(change.new))

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
