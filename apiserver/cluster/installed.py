"""In which namespace of a cluster Stowplan runs, for verbs that run outside of it."""

from __future__ import annotations

from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Forbidden, NotFound
from apiserver.cluster.namespaces import INSTALLATION
from apiserver.cluster.resource import VALIDATING_WEBHOOK_CONFIGURATIONS
from apiserver.kinds.families import FAMILIES

_CONFIGURATION: Final = FAMILIES[0].configuration_name


async def installed_namespace(cluster: Cluster) -> str:
    """Return where our webhooks are called; the usual namespace where nobody says. Raises ClusterError."""
    try:
        configuration = await cluster.get(VALIDATING_WEBHOOK_CONFIGURATIONS, _CONFIGURATION)
    except (Forbidden, NotFound):
        return INSTALLATION
    clients = [item["clientConfig"] for item in configuration.get("webhooks") or []]
    named = [client["service"]["namespace"] for client in clients if client.get("service")]
    return str(next(iter(named), INSTALLATION))
