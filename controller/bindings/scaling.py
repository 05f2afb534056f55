"""Direct scaling: writes scale subresources, if the writer of the binding may scale the target.

A decision is in the status before its scale is written. Immediately before the write, these are checked
again: the binding is unchanged since the decision, its writer may still scale the target, the target still
has the replicas that the decision was based on, and this process still leads. The write carries the resource
version that was read. If no change is due, a dry run is made until one succeeds, so that a missing permission
is reported before the load arrives.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from apiserver.cluster.access import access_review, is_allowed
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, Forbidden, NotFound
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import AUTOSCALING_POLICY_BINDINGS, SUBJECT_ACCESS_REVIEWS, Resource
from apiserver.kinds import authorship
from apiserver.kinds.authorship import WRITTEN_BY, writer_of, writer_record
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import TargetObject
from apiserver.log import EventLogger
from apiserver.schema.json import Json
from controller.bindings.status import BindingResult
from controller.observe.binding_conditions import BindingCondition, BindingFinding, BindingReason
from controller.planning.wording import count

Version = tuple[str, int, str | None]
"""UID, generation and recorded writer of a binding."""

_TRIED: Final = frozenset(
    {
        BindingReason.SCALES_WRITTEN,
        BindingReason.WRITER_MAY_NOT_SCALE,
        BindingReason.CONTROLLER_MAY_NOT_SCALE,
        BindingReason.WRITE_FAILED,
    }
)
"""Reasons that result from an attempt to write."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """The replicas to set on one target, and those that the decision was based on."""

    target: TargetObject
    was: int
    replicas: int

    @property
    def is_change(self) -> bool:
        """Whether the replicas differ from the current ones."""
        return self.was != self.replicas

    @property
    def target_text(self) -> str:
        """The target's name in messages."""
        return f"{self.target.kind} {self.target.name!r}"


def orders_of(result: BindingResult) -> tuple[Order, ...]:
    """Return the scales that the controller should write; none if it should leave all targets alone."""
    if _idle_finding(result) is not None or result.replicas is None or not result.case.is_direct:
        return ()
    return tuple(
        Order(target=state.bound.target, was=state.current_replicas, replicas=replicas)
        for state, replicas in zip(result.case.targets, result.replicas, strict=True)
    )


def scaling_finding(result: BindingResult, attempt: BindingFinding | None) -> BindingFinding | None:
    """Return whether the controller writes the scales of a binding; None if it should not, or not yet.

    `attempt` is the result of the last one.
    """
    return (_idle_finding(result) or attempt) if result.case.is_direct else None


def _idle_finding(result: BindingResult) -> BindingFinding | None:
    """Return why no attempt is made, or None."""
    case = result.case
    if result.decision is None or case.stands_back:
        return False, BindingReason.NOTHING_DECIDED, "there is no decision: see the other conditions"
    if result.advice:
        reason, text = result.advice
        return False, reason, f"{text}: nothing is written"
    if case.orders.is_paused:
        return False, BindingReason.PAUSED, "paused: nothing is written"
    if case.second_writer:
        return False, BindingReason.TARGET_SCALED_BY_OTHER, case.second_writer
    if writer_of(case.value) is None:
        text = (
            f"the annotation {WRITTEN_BY} names no user whose permissions could be used, which is normal"
            f" for an object older than the webhooks: {taking_over(case.value)}"
        )
        return False, BindingReason.WRITER_UNKNOWN, text
    return None


def published_attempt(value: Json) -> BindingFinding | None:
    """Return the result of the last attempt on this version of a binding, according to its status."""
    for item in (value.get("status") or {}).get("conditions") or []:
        is_current = item.get("observedGeneration") == value["metadata"].get("generation")
        if (
            item.get("type") == BindingCondition.SCALING_ACTIVE
            and item.get("reason") in _TRIED
            and is_current
        ):
            return item.get("status") == "True", BindingReason(item["reason"]), str(item.get("message"))
    return None


def version_of(value: Json) -> Version:
    """Return the version of a binding, which includes its writer, as other writers have other permissions."""
    metadata = value["metadata"]
    return str(metadata.get("uid", "")), int(metadata.get("generation", 0)), writer_record(value)


def taking_over(value: Json) -> str:
    """Return how a user becomes the writer of a binding without changing it."""
    metadata = value["metadata"]
    command = authorship.taking_over(f"aspb {metadata['name']}", namespace=metadata["namespace"])
    return f"a user who is allowed to scale the targets must run {command}"


CALL_SECONDS: Final = 5.0
"""Timeout of each API call in seconds. A leader stops 5 s before another can lead, so its calls end by
then."""

_PATIENCE_SECONDS: Final = 30.0
_AT_ONCE: Final = 8
_GRANT: Final = (
    "kubectl create rolebinding stowplan-controller-scaling -n {} --clusterrole=stowplan-controller-scaling"
    " --serviceaccount={}:stowplan-controller"
)
_log = EventLogger(__name__)


class Ending(StrEnum):
    """The outcome of a write. Dry runs count only if they fail."""

    WRITTEN = "written"
    CONFLICT = "conflict"
    """The binding or the scale was changed meanwhile; the next cycle decides again."""

    REFUSED = "refused"
    """The writer of the binding may not scale the target."""

    FORBIDDEN = "forbidden"
    """The controller may not scale the target."""

    FAILED = "failed"
    LATE = "late"
    """Other writes used up the time of the cycle."""

    NOT_LEADING = "not_leading"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingTools:
    """Dependencies of direct scaling."""

    cluster: Cluster
    events: EventRecorder
    scalable: Callable[[str, str], Awaitable[Resource | None]]
    """Returns the resource of a kind in an API version, if it has a scale subresource."""

    is_leading: Callable[[], bool]
    namespace: str
    """Namespace of this installation, with the controller's service account."""


class _EarlyEnd(Exception):  # noqa: N818 (the name describes the event)
    """A write that ended early, with the outcome and the finding to report, if any."""

    def __init__(self, ending: Ending, finding: BindingFinding | None = None) -> None:
        super().__init__(ending)
        self.ending = ending
        self.finding = finding


class DirectScaler:
    """Writes the scales of decisions; keeps the result of the last attempt for each binding."""

    def __init__(self, tools: ScalingTools) -> None:
        self._tools = tools
        self._tried: dict[Version, BindingFinding] = {}
        self._tries = 0
        self._last_try: dict[Version, int] = {}
        self._endings: Counter[str] = Counter()

    def last_attempt(self, value: Json) -> BindingFinding | None:
        """Return the result of the last attempt for a binding, by this process or by the previous leader."""
        return self._tried.get(version_of(value)) or published_attempt(value)

    async def act(self, results: Sequence[BindingResult]) -> Mapping[str, int]:
        """Write the scales that are due; return the number by outcome. Never raises ClusterError."""
        versions = {version_of(item.case.value) for item in results}
        self._tried = {key: item for key, item in self._tried.items() if key in versions}
        self._last_try = {key: item for key, item in self._last_try.items() if key in versions}
        self._endings = Counter()
        due = sorted((item for item in results if self._due(item)), key=self._turn)
        gate, done = asyncio.Semaphore(_AT_ONCE), 0

        async def one(result: BindingResult) -> None:
            nonlocal done
            async with gate:
                await self._process(result)
            done += 1

        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS), asyncio.TaskGroup() as group:
                for result in due:
                    group.create_task(one(result))
        if late := len(due) - done:
            self._endings[Ending.LATE] += late
            _log.warning("not all scales were written in time", bindings=late)
        return self._endings

    def _due(self, result: BindingResult) -> tuple[Order, ...]:
        """Return the scales to write, including those for dry runs unless an attempt has succeeded."""
        known = self._tried.get(version_of(result.case.value))
        orders = orders_of(result)
        return tuple(item for item in orders if item.is_change) if known and known[0] else orders

    def _turn(self, result: BindingResult) -> tuple[bool, int]:
        """Return the sort key: writes before dry runs, then those with the longest wait."""
        is_try = not any(order.is_change for order in self._due(result))
        return is_try, self._last_try.get(version_of(result.case.value), 0)

    async def _process(self, result: BindingResult) -> None:
        """Process one binding; an error affects only this binding."""
        version = version_of(result.case.value)
        self._tries += 1
        self._last_try[version] = self._tries
        try:
            finding: BindingFinding | None = await self._try(result)
        except _EarlyEnd as stopped:
            self._endings[stopped.ending] += 1
            finding = stopped.finding
        except Conflict:
            self._endings[Ending.CONFLICT] += 1
            finding = None
        except ClusterError as error:
            self._endings[Ending.FAILED] += 1
            finding = False, BindingReason.WRITE_FAILED, f"{error.message}; it is retried in the next cycle"
        except Exception:  # noqa: BLE001 (an error of one binding must not affect others)
            self._endings[Ending.FAILED] += 1
            _log.exception("scale not written", binding="/".join(result.case.key))
            finding = False, BindingReason.WRITE_FAILED, "internal error in the controller: see its log"
        if finding is not None:
            self._tried[version] = finding

    async def _try(self, result: BindingResult) -> BindingFinding:
        """Write all scales of one binding. Raises _Stopped, or ClusterError if a call is rejected."""
        user, orders = await self._writer(result), self._due(result)
        resources = [await self._permitted_resource(result.case.value, order, user) for order in orders]
        for order, resource in zip(orders, resources, strict=True):
            await self._write(result, order, resource, user)
        text = f"the controller writes the scales, with the permissions of {_user_text(user)}"
        return True, BindingReason.SCALES_WRITTEN, text

    async def _writer(self, result: BindingResult) -> Json:
        """Return the writer of the binding. Raises _Stopped unless the binding is as decided on."""
        value, (namespace, name) = result.case.value, result.case.key
        try:
            now = await self._tools.cluster.get(
                AUTOSCALING_POLICY_BINDINGS, name, namespace=namespace, timeout_seconds=CALL_SECONDS
            )
        except NotFound:
            raise _EarlyEnd(Ending.CONFLICT) from None
        user = writer_of(now)
        if user is None or _essentials(now) != _essentials(value):
            raise _EarlyEnd(Ending.CONFLICT)
        return user

    async def _permitted_resource(self, value: Json, order: Order, user: Json) -> Resource:
        """Return a target's resource. Raises _Stopped unless the binding's writer may scale the target."""
        target, namespace = order.target, value["metadata"]["namespace"]
        resource = await self._tools.scalable(target.api_version, target.kind)
        if resource is None:
            text = f"the cluster has no {target.kind} with a scale subresource in {target.api_version}"
            raise _EarlyEnd(Ending.FAILED, (False, BindingReason.WRITE_FAILED, text))
        review = access_review(
            user,
            verb="update",
            namespace=namespace,
            group=resource.group,
            resource=resource.plural,
            subresource="scale",
            name=target.name,
        )
        try:
            answer = await self._tools.cluster.create(
                SUBJECT_ACCESS_REVIEWS, review, timeout_seconds=CALL_SECONDS
            )
        except Forbidden as error:
            text = (
                f"{error.message}: kubectl apply --server-side --field-manager=stowplan -k manifests/scaling"
                " grants the permission to check access"
            )
            raise _forbidden(text) from error
        if not is_allowed(answer):
            text = (
                f"{_user_text(user)}, who wrote the binding, cannot update {resource.plural}/scale of"
                f" {target.name!r}: grant this permission, or {taking_over(value)}"
            )
            raise _EarlyEnd(Ending.REFUSED, (False, BindingReason.WRITER_MAY_NOT_SCALE, text))
        return resource

    async def _write(self, result: BindingResult, order: Order, resource: Resource, user: Json) -> None:
        """Set the replicas of one target, or make a dry run."""
        namespace, cluster = result.case.key[0], self._tools.cluster
        try:
            scale = await cluster.get(
                resource,
                order.target.name,
                namespace=namespace,
                subresource="scale",
                timeout_seconds=CALL_SECONDS,
            )
            spec = scale.get("spec") or {}
            if spec.get("replicas", 0) != order.was or not scale["metadata"].get("resourceVersion"):
                raise _EarlyEnd(Ending.CONFLICT)
            if not self._tools.is_leading():
                raise _EarlyEnd(Ending.NOT_LEADING)
            await cluster.replace(
                resource,
                scale | {"spec": spec | {"replicas": order.replicas}},
                subresource="scale",
                dry_run=not order.is_change,
                timeout_seconds=CALL_SECONDS,
            )
        except Forbidden as error:
            command = _GRANT.format(namespace, self._tools.namespace)
            raise _forbidden(f"{error.message}; if a permission is missing: {command}") from error
        if order.is_change:
            self._endings[Ending.WRITTEN] += 1
            self._tell(result, order, user)

    def _tell(self, result: BindingResult, order: Order, user: Json) -> None:
        note = (
            f"{order.target_text} scaled from {order.was} to {count(order.replicas, 'replica')}, with the"
            " permissions of"
            f" {_user_text(user)}: {result.message}"
        )
        _log.info("scaled", binding="/".join(result.case.key), note=note)
        self._tools.events.record(
            result.case.value,
            type="Normal",
            reason="Scaled",
            action="Scale",
            note=note,
            meaning=f"{order.target_text} {order.was} {order.replicas}",
        )


def _forbidden(text: str) -> _EarlyEnd:
    return _EarlyEnd(Ending.FORBIDDEN, (False, BindingReason.CONTROLLER_MAY_NOT_SCALE, text))


def _essentials(value: Json) -> tuple[object, ...]:
    metadata = value["metadata"]
    names = ("uid", "generation", "annotations", "deletionTimestamp")
    return tuple(metadata.get(name) or None for name in names)


def _user_text(user: Json) -> str:
    return f"user {user.get('username')!r}"
