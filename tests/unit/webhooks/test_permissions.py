"""Checks of many permissions at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from apiserver.schema.errors import FieldError, forbidden
from apiserver.schema.paths import FieldPath
from webhooks.permissions import AccessRequest, Asked, UndecidedError, denials

AT_ONCE = 4


class Slow:
    """Answers nothing but the request for `broken`, which is undecided; records running checks."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    async def may(self, request: AccessRequest) -> bool:
        """Wait until cancelled."""
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            if request.name == "broken":
                raise UndecidedError("too many requests")
            await asyncio.Event().wait()
            return True
        finally:
            self.running -= 1


def asked(*names: str) -> list[tuple[AccessRequest, FieldError]]:
    """Return requests to scale Deployments with these names."""
    of = AccessRequest(user={}, verb="update", namespace="ns", group="apps", resource="deployments", name="")
    return [(replace(of, name=name), forbidden(FieldPath().child(name), "no")) for name in names]


async def test_no_check_outlives_a_request_that_is_undecided() -> None:
    """Otherwise the checks of one large request would occupy the places of the process for others."""
    slow = Slow()

    with pytest.raises(UndecidedError, match="too many requests"):
        await denials(Asked(slow, asked("a", "b", "broken", *map(str, range(10)))))
    await asyncio.sleep(0)

    assert (slow.running, slow.most) == (0, AT_ONCE)
