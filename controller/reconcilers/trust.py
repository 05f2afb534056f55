"""Where the API server reads which CA to trust, as JSON patches that write it there.

Definitions and the APIService may belong to another project, and then stay as they are. Webhook
configurations have a name of our own.
"""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.structural import CONVERSION_SERVICE
from controller.observe.external_metrics import TARGET, is_ours

CONVERSION: Final = str(CONVERSION_SERVICE["name"])
"""The Service of the conversion webhook."""


def webhook_patch(configuration: Json, trusted: str) -> list[Json]:
    """Return the patch of a webhook configuration of ours."""
    operations: list[Json] = []
    for position, webhook in enumerate(configuration.get("webhooks") or []):
        if webhook["clientConfig"].get("caBundle") != trusted:
            here = f"/webhooks/{position}"
            operations += [
                {"op": "test", "path": f"{here}/name", "value": webhook["name"]},
                {"op": "add", "path": f"{here}/clientConfig/caBundle", "value": trusted},
            ]
    return operations


def conversion_patch(definition: Json, trusted: str, *, namespace: str) -> list[Json]:
    """Return the patch of a definition, if our Service in a namespace converts its objects."""
    conversion = definition["spec"].get("conversion") or {}
    client = (conversion.get("webhook") or {}).get("clientConfig") or {}
    service = client.get("service") or {}
    is_converted_here = (service.get("name"), service.get("namespace")) == (CONVERSION, namespace)
    if not is_converted_here or client.get("caBundle") == trusted:
        return []  # converted by another project, by nothing, or up to date
    here = "/spec/conversion/webhook/clientConfig"
    return [
        {"op": "test", "path": f"{here}/service", "value": service},
        {"op": "add", "path": f"{here}/caBundle", "value": trusted},
    ]


def api_service_patch(service: Json, trusted: str) -> list[Json]:
    """Return the patch of the APIService, if it is ours."""
    if not is_ours(service) or service["spec"].get("caBundle") == trusted:
        return []  # owned by another project, or up to date
    return [
        {"op": "test", "path": "/spec/service/name", "value": TARGET},
        # An earlier owner may have set this to true, and applying our APIService over it keeps the field.
        {"op": "add", "path": "/spec/insecureSkipTLSVerify", "value": False},
        {"op": "add", "path": "/spec/caBundle", "value": trusted},
    ]
