"""What is said while certificates cannot be kept."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from support.logs import capture_logs

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, NotFound, Unavailable
from controller.certificates.certificates import CertificateReconciler, CertificateSettings

SETTINGS = CertificateSettings(
    namespace="stowplan-system", leaf_lifetime=timedelta(hours=720), authority_lifetime=timedelta(hours=87600)
)
MISSING = (
    "Secret 'stowplan-authority' does not exist: apply the manifests again, which contain it without data"
)


class Server:
    """Refuses every read, with one error after the other."""

    def __init__(self, *errors: ClusterError) -> None:
        self._errors = iter(errors)

    async def get(self, *_: object, **__: object) -> None:
        """Refuse a read; the test ends after the last error."""
        error = next(self._errors, None)
        if error is None:
            raise asyncio.CancelledError
        raise error


async def test_a_failure_is_logged_once_until_it_changes_and_says_what_to_do() -> None:
    """A Secret that somebody deleted stays away until somebody applies the manifests."""
    gone = NotFound('secrets "stowplan-authority" not found', code=404)
    server = Server(gone, gone, gone, Unavailable("no answer"), gone)
    reconciler = CertificateReconciler(cast("Cluster", server), SETTINGS, now=lambda: datetime.now(UTC))
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    with capture_logs() as lines, pytest.raises(asyncio.CancelledError):
        await reconciler.keep(sleep=sleep)

    assert [line["error"] for line in lines] == [MISSING, "no answer", MISSING]
    assert {line["event"] for line in lines} == {"certificates not renewed"}
    assert pauses == [2.0] * 5
