"""Assembly of admission: decision functions, permission checks, and caches of referenced objects."""

from __future__ import annotations

import asyncio
import gc

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotConfigured
from apiserver.cluster.namespaces import installation_namespace
from apiserver.kinds.registry import KINDS
from apiserver.kinds.scalable import Scalable
from apiserver.kinds.settings_names import NamesConfig
from apiserver.log import EventLogger
from apiserver.schema.validation import judge
from webhooks.app import Judges
from webhooks.authorizer import ClusterAuthorizer
from webhooks.config import ScalingConfig, WebhooksConfig
from webhooks.decision import mutate, validate
from webhooks.permissions import Authorizer
from webhooks.references import Referents
from webhooks.referents import CachedReferents
from webhooks.scaling import Scaling
from webhooks.settings import SettingsAdmission
from webhooks.tenancy import OPEN, Tenancy

_log = EventLogger(__name__)


def judges_of(
    scaling: Scaling, referents: Referents, tenancy: Tenancy = OPEN, settings: SettingsAdmission | None = None
) -> Judges:
    """Return the decision functions for admission requests."""
    return {
        "validate-settings": (settings or SettingsAdmission(namespace="", names=NamesConfig())).validate,
        "mutate": lambda request: mutate(request, scaling, tenancy),
        "validate": lambda request: validate(request, scaling, referents, tenancy),
    }


def scaling_of(config: ScalingConfig, authorizer: Authorizer) -> Scaling:
    """Return the configured rules for scale targets."""
    resources = {
        (item.group, item.kind): Scalable(resource=item.resource, has_scale=item.has_scale)
        for item in config.resources
    }
    return Scaling(resources=resources, authorizer=authorizer if config.authorize else None)


class Judging:
    """Admission with its caches; `follow` connects to the cluster and fills them."""

    def __init__(self, config: WebhooksConfig) -> None:
        self._config = config
        namespace = config.namespace or installation_namespace(
            config.cluster.kubeconfig, config.cluster.context
        )
        self._referents, self._authorizer = CachedReferents(namespace), ClusterAuthorizer()
        tenancy = Tenancy(authorizer=self._authorizer, namespace=namespace) if config.tenants else OPEN
        settings = SettingsAdmission(namespace=namespace, names=config.names)
        scaling = scaling_of(config.scaling, self._authorizer)
        self.judges = judges_of(scaling, self._referents, tenancy, settings)
        """The decision functions for admission requests."""

    async def follow(self) -> None:
        """Compile the validators ahead of the first review, then keep the caches current until cancelled."""
        cluster = self._config.cluster
        try:
            connection = await Cluster.connect(cluster.kubeconfig, cluster.context)
        except NotConfigured as error:
            _log.warning(
                "no cluster: no warnings about other objects, and permissions to scale cannot be checked",
                why=error.message,
            )
            await _compile_judges()
            await asyncio.Event().wait()
            return
        async with connection as connected:
            self._authorizer.use(connected)
            await _compile_judges()
            await self._referents.follow(connected)


async def _compile_judges() -> None:
    for declared in (served.declaration for kind in KINDS for served in kind.versions):
        await asyncio.to_thread(judge, declared)
    gc.freeze()  # loaded and compiled objects live forever, so collections can skip them
