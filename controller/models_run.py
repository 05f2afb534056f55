"""`stowplan models`: wiring."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from apiserver.cluster.backoff import Backoff
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.lease import LeaderElector, LeaseOptions
from apiserver.cluster.namespaces import installation_namespace
from apiserver.serving.process import run_server
from apiserver.serving.process_metrics import ProcessMetrics
from apiserver.serving.readiness import Readiness
from apiserver.serving.startup import run_verb, server_options, version
from controller.models_caches import ModelCaches
from controller.models_config import ModelsConfig, expansion_settings
from controller.reconcilers.model import Key, LostLeaseError, ModelReconciler, ModelTools
from controller.reconcilers.work_queue import WorkQueue
from controller.replica import exit_at_once, new_identity

LEASE_NAME: Final = "stowplan-models"
_REPORTER: Final = "stowplan.dev/models"
_FIRST_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 300.0

_log = structlog.get_logger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run the verb; returns the exit code."""
    return run_verb(
        ModelsConfig,
        arguments,
        verb="models",
        description="Make what Models become, keep it so, and write how they stand to status.",
        serving=lambda config: config.serving,
        start=_start,
    )


def _start(config: ModelsConfig) -> int:
    controller = ModelController(config)
    return run_server(
        None,
        server_options(config.serving, has_application=False),
        readiness=controller.readiness,
        metrics=controller.metrics,
        background=[controller.run],
    )


class ModelController:
    """The jobs of the process and what they share."""

    def __init__(self, config: ModelsConfig) -> None:
        self._config = config
        self._namespace = config.namespace or installation_namespace(
            config.cluster.kubeconfig, config.cluster.context, os.environ
        )
        self._identity = new_identity()
        self._queue: WorkQueue[Key] = WorkQueue()
        self._retries: dict[Key, Backoff] = {}
        self._caches: ModelCaches | None = None
        self.readiness = Readiness()
        self.readiness.add("caches", self._why_not_current)
        self.metrics = ProcessMetrics("models", version())

    async def run(self) -> None:
        """Watch always; act while this replica leads."""
        config = self._config
        kubeconfig = Path(config.cluster.kubeconfig) if config.cluster.kubeconfig else None
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(
                await Cluster.connect(kubeconfig, config.cluster.context or None)
            )
            caches = self._caches = ModelCaches(cluster, self._queue.add)
            events = EventRecorder(cluster, controller=_REPORTER, instance=self._identity)
            options = LeaseOptions(namespace=self._namespace, name=LEASE_NAME, identity=self._identity)
            elector = LeaderElector(cluster, options, on_lost=exit_at_once)
            reconciler = ModelReconciler(
                ModelTools(
                    cluster=cluster,
                    events=events,
                    world=caches,
                    settings=expansion_settings(config),
                    now=lambda: datetime.now(UTC),
                    is_leading=elector.is_leading,
                )
            )

            async def lead() -> None:
                await caches.synced()
                async with asyncio.TaskGroup() as group:
                    for _ in range(config.workers):
                        group.create_task(self._work(reconciler))

            async with asyncio.TaskGroup() as group:
                group.create_task(caches.run())
                group.create_task(events.run())
                group.create_task(elector.run(lead))

    def _why_not_current(self) -> str | None:
        return self._caches.why_not_current() if self._caches else "not connected yet"

    async def _work(self, reconciler: ModelReconciler) -> None:
        while True:
            key = await self._queue.take()
            try:
                is_done = await reconciler.reconcile(key)
            except LostLeaseError:
                exit_at_once()
            except ClusterError as error:
                _log.warning("not finished", model="/".join(key), error=error.message)
                self._retry(key)
            except Exception:  # noqa: BLE001 (the boundary: what one Model provokes must not end it for all)
                _log.exception("failed", model="/".join(key))
                self._retry(key)
            else:
                if is_done:
                    self._retries.pop(key, None)
                else:
                    self._retry(key)
            finally:
                self._queue.done(key)

    def _retry(self, key: Key) -> None:
        """Try again later. Attempts that events bring about before neither delay that nor add to it."""
        if self._queue.is_timed(key):
            return
        backoff = self._retries.setdefault(
            key,
            Backoff(
                random=random.random,
                first_seconds=_FIRST_RETRY_SECONDS,
                limit_seconds=_LONGEST_RETRY_SECONDS,
            ),
        )
        self._queue.add_later(key, backoff.next_seconds())
