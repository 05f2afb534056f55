"""A cache of the Deployments that VariantAutoscalings may point at; filled in the background, if at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from apiserver.cluster.cache import Cache
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotConfigured
from apiserver.cluster.resource import DEPLOYMENTS
from apiserver.schema.json import Json
from apiserver.serving.config import ClusterConfig

_log = structlog.get_logger(__name__)


class CachedTargets:
    """Knows names of Deployments once `follow` has listed them; see `webhooks.references.Targets`."""

    def __init__(self) -> None:
        self._cache: Cache | None = None

    def is_filled(self) -> bool:
        """Tell whether an absence means anything."""
        return self._cache is not None and self._cache.synced.is_set()

    def has(self, namespace: str, name: str) -> bool:
        """Tell whether a Deployment of that name is there."""
        return self._cache is not None and self._cache.get(namespace, name) is not None

    async def follow(self, config: ClusterConfig) -> None:
        """Keep the cache current until cancelled; without a cluster there is simply no advice."""
        kubeconfig = Path(config.kubeconfig) if config.kubeconfig else None
        try:
            connection = await Cluster.connect(kubeconfig, config.context or None)
        except NotConfigured as error:
            _log.warning("no advice about scale targets", why=error.message)
            await asyncio.Event().wait()
            return
        async with connection as cluster:
            self._cache = Cache(cluster, DEPLOYMENTS, metadata_only=True, reduce=_bare)
            await self._cache.run()


def _bare(deployment: Json) -> Json:
    """Keep nothing but the fact that it is there."""
    del deployment
    return {}
