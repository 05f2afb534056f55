"""Which conversion webhooks get the bundle of trusted authorities."""

from __future__ import annotations

from typing import Final

import pytest

from apiserver.schema.json import Json
from controller.certificates.certificates import CONVERSION, conversion_patch

NAMESPACE: Final = "gpu-system"
OURS: Final[Json] = {"name": CONVERSION, "namespace": NAMESPACE, "path": "/convert", "port": 9443}


def converted(client: Json | None) -> Json:
    """Return a definition with a conversion webhook, or without any."""
    if client is None:
        return {"spec": {"conversion": {"strategy": "None"}}}
    return {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}}


def test_our_conversion_webhook_gets_the_bundle() -> None:
    """The patch tests for concurrent changes, and is empty if the bundle is already there."""
    test, add = conversion_patch(converted({"service": OURS}), "QQ==", namespace=NAMESPACE)

    assert (test["op"], test["value"]) == ("test", OURS)
    assert add == {"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": "QQ=="}
    assert not conversion_patch(converted({"service": OURS, "caBundle": "QQ=="}), "QQ==", namespace=NAMESPACE)


OTHERS: Final[dict[str, Json | None]] = {
    "another Service": {"service": OURS | {"name": "converter"}},
    "our Service in another namespace": {"service": OURS | {"namespace": "other"}},
    "an address outside the cluster": {"url": "https://converter.example.com/convert"},
    "nothing": None,
}


@pytest.mark.parametrize("client", OTHERS.values(), ids=OTHERS.keys())
def test_conversion_webhooks_of_others_get_no_bundle(client: Json | None) -> None:
    """They trust their own authority."""
    assert not conversion_patch(converted(client), "QQ==", namespace=NAMESPACE)
