"""The namespace to use if none is given, by the rules of kubectl, and that of the installation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from apiserver.cluster.errors import Forbidden, NotFound
from apiserver.cluster.resource import VALIDATING_WEBHOOK_CONFIGURATIONS
from apiserver.kinds.registry import FAMILIES
from apiserver.kinds.settings_names import INSTALLATION
from apiserver.schema.json import Json, JsonValue, as_list, as_object

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster

DEFAULT: Final = "default"

_OF_THE_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def installation_namespace(kubeconfig: str, context: str) -> str:
    """Return the namespace of Stowplan's processes: that of the pod or the context, else the default."""
    return _configured_namespace(kubeconfig, context, os.environ) or INSTALLATION


def current_namespace(kubeconfig: Path | None, context: str | None, environ: Mapping[str, str]) -> str:
    """Return the namespace of the current context, else that of the pod, else `default`."""
    return _configured_namespace(kubeconfig, context, environ) or DEFAULT


def _configured_namespace(
    kubeconfig: Path | str | None, context: str | None, environ: Mapping[str, str]
) -> str:
    """Return the configured namespace; empty if a file is unreadable, which connecting will report."""
    configured = str(kubeconfig or environ.get("KUBECONFIG", ""))
    if not configured and not context and environ.get("KUBERNETES_SERVICE_HOST"):
        return _text(_OF_THE_POD).strip()
    files = [part for part in (configured or "~/.kube/config").split(os.pathsep) if part]
    documents = [_document(Path(file).expanduser()) for file in files]
    context_name = context or next((d["current-context"] for d in documents if d.get("current-context")), "")
    for document in documents:
        for entry in _contexts(document):
            if entry.get("name") == context_name:
                return str(as_object(entry.get("context")).get("namespace") or "")
    return ""


def _contexts(document: Json) -> Iterator[Json]:
    yield from (entry for entry in as_list(document.get("contexts") or []) if isinstance(entry, dict))


def _document(path: Path) -> Json:
    try:
        document: JsonValue = yaml.safe_load(_text(path))
    except yaml.YAMLError:
        return {}
    return document if isinstance(document, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


_CONFIGURATION: Final = FAMILIES[0].configuration_name


async def installed_namespace(cluster: Cluster) -> str:
    """Return the namespace of our webhook Service, or the default if unknown. Raises ClusterError."""
    try:
        configuration = await cluster.get(VALIDATING_WEBHOOK_CONFIGURATIONS, _CONFIGURATION)
    except (Forbidden, NotFound):
        return INSTALLATION
    clients = [item["clientConfig"] for item in configuration.get("webhooks") or []]
    services = [client["service"]["namespace"] for client in clients if client.get("service")]
    return str(next(iter(services), INSTALLATION))
