"""Where the bundle of trusted authorities is written, and where not."""

from __future__ import annotations

from typing import Final

import pytest

from apiserver.schema.json import Json
from controller.reconcilers.trust import CONVERSION, conversion_patch

NAMESPACE: Final = "gpu-system"
OURS: Final[Json] = {"name": CONVERSION, "namespace": NAMESPACE, "path": "/convert", "port": 9443}


def converted(client: Json | None) -> Json:
    """Return a definition whose objects a webhook converts, or none."""
    if client is None:
        return {"spec": {"conversion": {"strategy": "None"}}}
    return {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}}


def test_our_conversion_gets_the_bundle() -> None:
    """Unless another one is named meanwhile, or it has it already."""
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
def test_what_others_convert_is_theirs(client: Json | None) -> None:
    """They trust an authority of their own."""
    assert not conversion_patch(converted(client), "QQ==", namespace=NAMESPACE)
