"""Watches that keep the index, the front proxy and the heartbeat up to date.

The metrics of a variant are read from the status of its VariantAutoscaling, or from the record about its
annotated autoscaler; those of bound targets from the status of their AutoscalingPolicyBinding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from apiserver.cluster.cache import Cache, Change
from apiserver.cluster.client import Cluster
from apiserver.cluster.heartbeat import (
    LEASE_NAME,
    NotServedError,
    bound_replicas,
    decision_time,
    desired_replicas,
    heartbeat_of,
    replicas_in,
)
from apiserver.cluster.optional_cache import OptionalCache
from apiserver.cluster.resource import AUTOSCALING_POLICY_BINDINGS, CONFIG_MAPS, LEASES, VARIANT_AUTOSCALINGS
from apiserver.cluster.timing import moment_of, utc_now
from apiserver.kinds.autoscalers import (
    BOUND_METRIC,
    VARIANT_CURRENT,
    VARIANT_METRIC,
    VARIANT_METRIC_LEGACY,
    VARIANT_RATIO,
)
from apiserver.kinds.decision_record import CONFIG_MAP as DECISIONS
from apiserver.kinds.decision_record import read_record
from apiserver.kinds.identity import Key
from apiserver.kinds.metric_labels import TARGET_ID, place_labels, target_labels, variant_labels
from apiserver.log import EventLogger
from apiserver.metrics.authentication import (
    CONFIG_MAP_NAME,
    CONFIG_MAP_NAMESPACE,
    FrontProxy,
    FrontProxyUnknownError,
    Gate,
)
from apiserver.metrics.index import METRIC_NAMES, MetricIndex, MetricValue, Unknown
from apiserver.metrics.tokens import TokenReviewer
from apiserver.schema.json import Json, as_object
from apiserver.serving.config import ClusterConfig
from apiserver.serving.tls import ServerTls

_SPEC_FIELDS: Final = ("modelID", "accelerator", "acceleratorCount")
_STATUS_FIELDS: Final = ("desiredOptimizedAlloc", "currentAlloc", "actuation")


def metrics_of(value: Json) -> tuple[MetricValue | Unknown, ...]:
    """Return one entry per metric name for a raw `v1alpha2` VariantAutoscaling.

    Never raises, whatever its content: an unreadable value becomes an `Unknown` with the reason.
    """
    labels, status = variant_labels(value), as_object(value.get("status"))
    return tuple(_entry(name, status, labels=labels) for name in _VALUES)


def essentials(value: Json) -> Json:
    """Return only the parts of an object that `metrics_of` reads, to keep a cache of many objects small."""
    metadata, spec, status = (as_object(value.get(name)) for name in ("metadata", "spec", "status"))
    fields: Json = {name: status[name] for name in _STATUS_FIELDS if name in status}
    if "decision" in status:  # only whether there is one is read
        fields["decision"] = {}
    return {
        "metadata": {name: metadata[name] for name in ("namespace", "name", "labels") if name in metadata},
        "spec": {name: spec[name] for name in _SPEC_FIELDS if name in spec},
        "status": fields,
    }


def record_metrics_of(config_map: Json) -> Mapping[str, tuple[MetricValue | Unknown, ...]]:
    """Return one entry per metric name for each variant with a record in a raw ConfigMap, by its name.

    Never raises, whatever its content: what is no record is omitted.
    """
    namespace, data = config_map["metadata"]["namespace"], as_object(config_map.get("data"))
    entries: dict[str, tuple[MetricValue | Unknown, ...]] = {}
    for record in map(read_record, data.values()):
        if labels := record.get("labels"):
            name = record["name"]
            labels |= place_labels(namespace, name)
            entries[name] = tuple(_entry(metric, record["status"], labels=labels) for metric in _VALUES)
    return entries


def _entry(metric_name: str, status: Json, *, labels: Mapping[str, str]) -> MetricValue | Unknown:
    namespace = labels["namespace"]
    try:
        return MetricValue(
            metric_name=metric_name,
            namespace=namespace,
            labels=labels,
            value_milli=_VALUES[metric_name](status),
            time=decision_time(status),
        )
    except NotServedError as error:
        return Unknown(metric_name=metric_name, namespace=namespace, labels=labels, why=str(error))


def _desired_milli(status: Json) -> int:
    return 1000 * desired_replicas(status)


def _current_milli(status: Json) -> int:
    desired_replicas(status)  # raises an error: a number without a valid decision may be of any time
    return 1000 * replicas_in(status, "currentAlloc", absent="its current number of replicas is unknown")


def _ratio_milli(status: Json) -> int:
    desired_milli, current = _desired_milli(status), _current_milli(status) // 1000
    # Rounded down: HPA multiplies by the current replicas and rounds up, which results in the decision.
    return desired_milli // current if current else desired_milli


_VALUES: Final[Mapping[str, Callable[[Json], int]]] = {
    VARIANT_METRIC: _desired_milli,
    VARIANT_METRIC_LEGACY: _desired_milli,
    VARIANT_RATIO: _ratio_milli,
    VARIANT_CURRENT: _current_milli,
}


_BINDING_FIELDS: Final = ("lastDecisionTime", "targets")
_UNDECIDED: Final = "it has no decision yet, or its decision is only advice"


def bound_metrics_of(value: Json) -> tuple[MetricValue | Unknown, ...]:
    """Return one entry for each target of a raw binding.

    Never raises, whatever its content: an unreadable value becomes an `Unknown` with the reason.
    """
    status = as_object(value.get("status"))
    targets = status.get("targets")
    objects = [item for item in targets if isinstance(item, dict)] if isinstance(targets, list) else []
    return tuple(_of_target(value, status, target) for target in objects)


def bound_essentials(value: Json) -> Json:
    """Return only the parts of a binding that `bound_metrics_of` reads."""
    metadata, spec, status = (as_object(value.get(name)) for name in ("metadata", "spec", "status"))
    return {
        "metadata": {name: metadata[name] for name in ("namespace", "name") if name in metadata},
        "spec": {"policyRef": spec.get("policyRef")},
        "status": {name: status[name] for name in _BINDING_FIELDS if name in status},
    }


def _of_target(value: Json, status: Json, target: Json) -> MetricValue | Unknown:
    metadata = value["metadata"]
    namespace = str(metadata.get("namespace", ""))
    labels = target_labels(value, str(target.get("kind", "")), str(target.get("name", "")))
    replicas, time = bound_replicas(target), moment_of(status.get("lastDecisionTime"))
    if replicas is None or time is None:
        return Unknown(metric_name=BOUND_METRIC, namespace=namespace, labels=labels, why=_UNDECIDED)
    return MetricValue(
        metric_name=BOUND_METRIC, namespace=namespace, labels=labels, value_milli=1000 * replicas, time=time
    )


_LOG: Final = EventLogger(__name__)


class Watches:
    """Updates the index from our objects and the controller's Lease, and gate and TLS from a ConfigMap."""

    def __init__(self, index: MetricIndex, tls: ServerTls) -> None:
        self._index = index
        self._tls = tls
        self._variants: Cache | None = None
        self._bindings: OptionalCache | None = None
        self._records: OptionalCache | None = None
        self._names: set[Key] = set()
        self._annotated: dict[str, Mapping[str, tuple[MetricValue | Unknown, ...]]] = {}
        """Entries of annotated autoscalers by namespace and name; in the index, a VariantAutoscaling with the
        same name takes precedence."""

        self.gate: Gate | None = None
        """None until the front proxy is known; afterwards, the last valid one."""

        self.tokens: TokenReviewer | None = None
        """None until there is a connection to the API server."""

    async def follow(self, config: ClusterConfig, *, namespace: str, annotated: bool = False) -> None:
        """Watch until cancelled, with or without `annotated` autoscalers.

        Raises NotConfigured without a cluster.
        """
        async with await Cluster.connect(config.kubeconfig, config.context) as cluster:
            self.tokens = TokenReviewer(cluster)
            self._variants = Cache(cluster, VARIANT_AUTOSCALINGS, reduce=essentials)
            self._variants.subscribe(self.take_variant)
            # A role limited to this one object covers list and watch only with the field selector.
            front_proxy = Cache(
                cluster,
                CONFIG_MAPS,
                namespace=CONFIG_MAP_NAMESPACE,
                field_selector=f"metadata.name={CONFIG_MAP_NAME}",
            )
            front_proxy.subscribe(self.take_front_proxy)
            lease = Cache(cluster, LEASES, namespace=namespace, field_selector=f"metadata.name={LEASE_NAME}")
            lease.subscribe(self.take_lease)
            self._bindings = OptionalCache(
                cluster,
                AUTOSCALING_POLICY_BINDINGS,
                without="AutoscalingPolicyBindings",
                reduce=bound_essentials,
            )
            self._bindings.subscribe(self.take_binding)
            if annotated:
                self._records = OptionalCache(
                    cluster,
                    CONFIG_MAPS,
                    without="decisions on annotated autoscalers",
                    field_selector=f"metadata.name={DECISIONS}",
                )
                self._records.subscribe(self.take_records)
            async with asyncio.TaskGroup() as group:
                if self._records is not None:
                    group.create_task(self._records.run())
                group.create_task(self._variants.run())
                group.create_task(self._bindings.run())
                group.create_task(front_proxy.run())
                group.create_task(lease.run())

    def take_variant(self, change: Change) -> None:
        """Handle an added, changed or deleted VariantAutoscaling."""
        namespace, name = change.key
        if change.new is None:
            self._names.discard(change.key)
            self._index.remove(namespace=namespace, entry_name=name, metric_names=METRIC_NAMES)
            self._index.put(self._annotated.get(namespace, {}).get(name, ()), now=utc_now())
        else:
            self._names.add(change.key)
            self._index.put(metrics_of(change.new), now=utc_now())

    def take_records(self, change: Change) -> None:
        """Handle added, changed or deleted records of annotated autoscalers in a namespace."""
        namespace, _ = change.key
        old, new = self._annotated.pop(namespace, {}), record_metrics_of(change.new) if change.new else {}
        if new:
            self._annotated[namespace] = new
        for name in sorted(old.keys() | new.keys()):
            if (namespace, name) not in self._names:
                self._index.remove(namespace=namespace, entry_name=name, metric_names=METRIC_NAMES)
                self._index.put(new.get(name, ()), now=utc_now())

    def take_binding(self, change: Change) -> None:
        """Handle an added, changed or deleted AutoscalingPolicyBinding and its targets."""
        for entry in bound_metrics_of(change.old) if change.old else ():
            self._index.remove(
                namespace=entry.namespace,
                entry_name=entry.labels[TARGET_ID],
                metric_names=(entry.metric_name,),
            )
        self._index.put(bound_metrics_of(change.new) if change.new else (), now=utc_now())

    def take_lease(self, change: Change) -> None:
        """Handle a change of the controller's Lease; without it, decisions count from their own time."""
        self._index.beat(heartbeat_of(change.new) if change.new else None)

    def take_front_proxy(self, change: Change) -> None:
        """Handle a change of the front proxy; ignore an invalid one, which kube-apiserver will repair."""
        try:
            front_proxy = FrontProxy.from_config_map(change.new)
        except FrontProxyUnknownError as error:
            _LOG.error("front proxy not usable", error=str(error), keeping_old=self.gate is not None)
            return
        self._tls.trust_clients(front_proxy.authorities_pem.encode())
        self.gate = Gate(front_proxy)
        _LOG.info("front proxy known", allowed_names=sorted(front_proxy.allowed_names))

    def why_incomplete(self, metric_name: str) -> str | None:
        """Return why the index must not be used yet for a metric, or None."""
        if metric_name != BOUND_METRIC:
            return self.why_variants_unknown() or self._why_records_unknown()
        if self._bindings is not None and self._bindings.settled.is_set():
            return None
        return "the AutoscalingPolicyBindings of the cluster have not been read yet"

    def why_variants_unknown(self) -> str | None:
        """Return why variants are unknown, or None: a readiness check."""
        if self._variants is not None and self._variants.synced.is_set():
            return None
        return "the VariantAutoscalings of the cluster have not been read yet"

    def _why_records_unknown(self) -> str | None:
        if self._records is None or self._records.settled.is_set():
            return None
        return "the decisions on annotated autoscalers have not been read yet"

    def why_front_proxy_unknown(self) -> str | None:
        """Return why no caller can be authenticated yet, or None: a readiness check."""
        if self.gate is not None:
            return None
        return f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP_NAME} has not been read yet"
