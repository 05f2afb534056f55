"""The namespace in which Stowplan is installed, for subcommands that run outside of the cluster."""

from __future__ import annotations

from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Forbidden, NotFound
from apiserver.cluster.namespaces import INSTALLATION
from apiserver.cluster.resource import VALIDATING_WEBHOOK_CONFIGURATIONS
from apiserver.kinds.families import FAMILIES

_CONFIGURATION: Final = FAMILIES[0].configuration_name


async def installed_namespace(cluster: Cluster) -> str:
    """Return the namespace of our webhook Service, or the default if unknown. Raises ClusterError."""
    try:
        configuration = await cluster.get(VALIDATING_WEBHOOK_CONFIGURATIONS, _CONFIGURATION)
    except (Forbidden, NotFound):
        return INSTALLATION
    clients = [item["clientConfig"] for item in configuration.get("webhooks") or []]
    named = [client["service"]["namespace"] for client in clients if client.get("service")]
    return str(next(iter(named), INSTALLATION))
