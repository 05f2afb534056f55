"""Resolve what bindings scale: policies, the state of targets, and competing autoscalers. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from apiserver.kinds.activity import ANNOTATION as ACTIVITY
from apiserver.kinds.activity import activity_source
from apiserver.kinds.autoscalers import Autoscaler
from apiserver.kinds.following import FollowingProblem, Problem, following_problems, target_subject
from apiserver.kinds.identity import Key, key_of, seniority
from apiserver.kinds.kthena.autoscalingpolicybinding_targets import (
    CAPACITY,
    TargetObject,
    target_object,
    targets_of,
)
from apiserver.schema.json import Json
from controller.observe.activity import pods_in_front
from controller.observe.binding_conditions import (
    BindingCondition,
    BindingFinding,
    BindingReason,
    annotations_finding,
)
from controller.observe.claim import Orders, orders_of
from controller.observe.pods import by_target, has_engine, is_ready
from controller.observe.scalers import RESTING, autoscalers_by_target, is_resting
from controller.observe.scales import ScaleReference, is_reference, scale_references
from controller.observe.targets import TargetKey, target_key
from controller.policies.policy import (
    Binding,
    PolicyTarget,
    ScalingPolicy,
    UnreadablePolicyError,
    read_binding,
    read_policy,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundWorld:
    """The current objects on which decisions about bindings depend."""

    policies: Sequence[Json] = ()
    bindings: Sequence[Json] = ()
    autoscalings: Sequence[Json] = ()
    """VariantAutoscalings."""

    autoscalers: Sequence[Json] = ()
    """HorizontalPodAutoscalers."""

    scaled_objects: Sequence[Json] = ()
    """ScaledObjects of KEDA; empty if they cannot be read."""

    replicas: Mapping[TargetKey, int] = field(default_factory=dict)
    """Requested replicas of targets."""

    unread: Mapping[TargetKey, str] = field(default_factory=dict)
    """Why targets that are known only by their scale subresource could not be read."""

    pods: Sequence[Json] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetState:
    """One target, with its engine pods."""

    bound: PolicyTarget
    current_replicas: int
    autoscalers: tuple[Autoscaler, ...] = ()
    """Those that scale it, the oldest first."""

    ready_replicas: int = 0
    pods: tuple[Json, ...] = ()
    """The ready engine pods from which metrics are scraped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingCase:
    """One binding. It has no decision without policy or targets, and must not act if `stands_back`."""

    value: Json
    findings: Mapping[BindingCondition, BindingFinding]
    policy: ScalingPolicy | None = None
    binding: Binding | None = None
    targets: tuple[TargetState, ...] = ()
    before: tuple[Json, ...] = ()
    """The ready pods whose activity is read."""

    stands_back: bool = False
    orders: Orders = field(default_factory=Orders)
    is_direct: bool = False
    """Whether the controller itself writes the scales of its targets."""

    second_writer: str = ""
    """If so: who else would write them, in one sentence."""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return key_of(self.value)

    @property
    def is_decidable(self) -> bool:
        """Whether policy, binding and targets are available for a decision."""
        return self.policy is not None and self.binding is not None and bool(self.targets)


def keys_of(binding: Json) -> Iterator[TargetKey]:
    """Yield the keys of a binding's targets; incomplete references are omitted."""
    namespace = binding["metadata"]["namespace"]
    for _, target in targets_of(binding.get("spec") or {}):
        meant = target_object(target.get("targetRef") or {})
        if meant.kind and meant.api_version and meant.name:
            yield target_key(namespace, _reference(meant))


def bound_references(bindings: Sequence[Json]) -> Iterator[ScaleReference]:
    """Yield the references of bindings to their targets; incomplete ones are omitted."""
    for item in bindings:
        for _, target in targets_of(item.get("spec") or {}):
            reference = _reference(target_object(target.get("targetRef") or {}))
            if is_reference(reference) and reference["kind"]:
                yield item["metadata"]["namespace"], reference


def bound_targets(bindings: Sequence[Json]) -> Mapping[TargetKey, tuple[str, Key]]:
    """Return the oldest binding that claims each target, with its creation timestamp, by target."""
    claimants: dict[TargetKey, tuple[str, Key]] = {}
    for item in sorted(bindings, key=seniority):
        for key in keys_of(item):
            claimants.setdefault(key, seniority(item))
    return claimants


Owner = tuple[str, str, Key]
"""Creation timestamp, kind, and (namespace, name)."""

_Read = ScalingPolicy | Binding | UnreadablePolicyError


@dataclass(frozen=True, kw_only=True, slots=True)
class _BindingContext:
    """The objects that all bindings are compared with."""

    world: BoundWorld
    policies: Mapping[Key, Json]
    groups: Mapping[TargetKey, tuple[Json, ...]]
    owners: Mapping[TargetKey, Sequence[Owner]]
    autoscalers: Mapping[TargetKey, tuple[Autoscaler, ...]]
    by_namespace: Mapping[str, Sequence[Json]]
    """Pods of the namespaces with an activity source."""


class BoundReader:
    """Reads bindings and policies once per version.

    `is_direct` tells in which namespaces the controller writes scales itself.
    """

    def __init__(self, is_direct: Callable[[str], bool] = lambda _: False) -> None:
        self._is_direct = is_direct
        self._before: dict[tuple[object, ...], _Read] = {}
        self._read: dict[tuple[object, ...], _Read] = {}

    def cases(self, world: BoundWorld) -> list[BindingCase]:
        """Return all bindings with what they depend on."""
        self._before, self._read = self._read, {}
        around = _BindingContext(
            world=world,
            policies={key_of(item): item for item in world.policies},
            groups=by_target(world.pods),
            owners=_owners(world),
            by_namespace=_activity_pods(world),
            autoscalers=autoscalers_by_target(world.autoscalers, world.scaled_objects),
        )
        return [self._case(item, around) for item in world.bindings]

    def _case(self, value: Json, around: _BindingContext) -> BindingCase:
        findings = {BindingCondition.ANNOTATIONS_RESOLVED: annotations_finding(value)}
        is_direct = self._is_direct(key_of(value)[0])
        binding = self._once(value, read_binding)
        if not isinstance(binding, Binding):
            findings[BindingCondition.POLICY_RESOLVED] = False, BindingReason.INVALID_BINDING, str(binding)
            return BindingCase(value=value, findings=findings, is_direct=is_direct)
        raw = around.policies.get((key_of(value)[0], binding.policy))
        policy = None if raw is None else self._once(raw, read_policy)
        findings[BindingCondition.POLICY_RESOLVED] = _policy_finding(binding.policy, policy)
        states, finding, stands_back = _targets(value, binding, around, is_direct=is_direct)
        findings[BindingCondition.TARGETS_RESOLVED] = finding
        return BindingCase(
            value=value,
            findings=findings,
            policy=policy if isinstance(policy, ScalingPolicy) else None,
            binding=binding,
            targets=states,
            before=pods_in_front(binding.activity, around.by_namespace.get(key_of(value)[0], ())),
            stands_back=stands_back,
            orders=orders_of(value, _BINDING),
            is_direct=is_direct,
            second_writer=finding[2] if finding[1] is BindingReason.TARGET_SCALED_BY_OTHER else "",
        )

    def _once(self, value: Json, read: Callable[[Json], ScalingPolicy | Binding]) -> _Read:
        metadata = value["metadata"]
        texts = [(metadata.get("annotations") or {}).get(name) for name in (CAPACITY, ACTIVITY)]
        version = (read, key_of(value), metadata.get("uid"), metadata.get("generation"), *texts)
        if version not in self._read:
            self._read[version] = (
                self._before[version] if version in self._before else _read_or_error(value, read)
            )
        return self._read[version]


def _read_or_error(value: Json, read: Callable[[Json], ScalingPolicy | Binding]) -> _Read:
    try:
        return read(value)
    except UnreadablePolicyError as error:
        return error


def _policy_finding(name: str, policy: _Read | None) -> BindingFinding:
    if policy is None:
        text = f"AutoscalingPolicy {name!r} does not exist in the namespace of the binding"
        return False, BindingReason.POLICY_NOT_FOUND, text
    if isinstance(policy, UnreadablePolicyError):
        text = f"AutoscalingPolicy {name!r} is not valid: {'; '.join(policy.problems)}"
        return False, BindingReason.INVALID_POLICY, text
    return True, BindingReason.POLICY_FOUND, f"AutoscalingPolicy {name!r} exists"


def _targets(
    value: Json, binding: Binding, around: _BindingContext, *, is_direct: bool
) -> tuple[tuple[TargetState, ...], BindingFinding, bool]:
    """Return the state of all targets, the condition for them, and whether others take precedence."""
    namespace, world = value["metadata"]["namespace"], around.world
    keys = [target_key(namespace, _reference(bound.target)) for bound in binding.targets]
    for key in keys:
        if key not in world.replicas:
            why = world.unread.get(key, "it does not exist in the namespace of the binding")
            return (), (False, BindingReason.TARGET_NOT_FOUND, f"{key.kind_text} {key.name!r}: {why}"), True
    states = tuple(
        TargetState(
            bound=bound,
            current_replicas=world.replicas[key],
            autoscalers=around.autoscalers.get(key, ()),
            ready_replicas=len(serving),
            pods=tuple(pod for pod in serving if _has_labels(pod, bound.labels)),
        )
        for key, bound in zip(keys, binding.targets, strict=True)
        for serving in [_ready_engines(around.groups.get(key, ()))]
    )
    misread = [_misread(value, state) for state in states]
    if rival := _rival(value, keys, misread, around):
        return states, rival, True
    if is_direct:
        return states, _alone(states), False
    return states, _following_finding(states, misread), False


def _misread(value: Json, state: TargetState) -> tuple[Problem, ...]:
    """Return why the autoscalers of a target do not follow the decision of a binding."""
    meant = state.bound.target
    problems = following_problems(state.autoscalers, target_subject(value, meant.kind, meant.name))
    return tuple(replace(problem, message=f"{_state_text(state)}: {problem.message}") for problem in problems)


def _rival(
    value: Json, keys: Sequence[TargetKey], misread: Sequence[Sequence[Problem]], around: _BindingContext
) -> BindingFinding | None:
    """Return the condition if an older object already scales one of the targets, or None."""
    stamp, own = seniority(value)
    for key, problems in zip(keys, misread, strict=True):
        _, kind, owner = around.owners[key][0]
        if (kind, owner) != (_BINDING, own):
            text = f"{kind} {'/'.join(owner)} is older and already decides on {key.kind_text} {key.name!r}"
            return False, BindingReason.TARGET_CLAIMED, text
        autoscalers = around.autoscalers.get(key, ())
        is_older = any((item.created, (key.namespace, item.name)) < (stamp, own) for item in autoscalers)
        others = [item for item in problems if item.reason is FollowingProblem.SCALED_BY_OTHER]
        if others and is_older:
            text = f"nothing is decided, as an older autoscaler scales a target: {others[0].message}"
            return False, BindingReason.TARGET_SCALED_BY_OTHER, text
    return None


def _following_finding(states: Sequence[TargetState], misread: Sequence[Sequence[Problem]]) -> BindingFinding:
    """Return the condition on whether the autoscalers of every target follow the decision."""
    problems = [problem for own_problems in misread for problem in own_problems]
    if problems:
        text = "; ".join(problem.message for problem in problems)
        return False, BindingReason(str(problems[0].reason)), text
    resting = [
        f"{_state_text(state)}: {state.autoscalers[0].display_name} {RESTING}"
        for state in states
        if is_resting(state.autoscalers, state.current_replicas)
    ]
    if resting:
        return False, BindingReason.TARGET_NOT_SCALED, "; ".join(resting)
    unscaled = [
        f"no HorizontalPodAutoscaler targets {_state_text(state)}, so nothing scales it unless another client"
        " reads the metric"
        for state in states
        if not state.autoscalers
    ]
    if unscaled:
        return True, BindingReason.TARGET_NOT_SCALED, "; ".join(unscaled)
    text = "all targets exist, and HorizontalPodAutoscalers read the decision"
    return True, BindingReason.TARGETS_FOUND, text


def _state_text(state: TargetState) -> str:
    return f"{state.bound.target.kind} {state.bound.target.name!r}"


def _alone(states: Sequence[TargetState]) -> BindingFinding:
    """Return the condition on whether no one else scales the targets that the controller scales itself."""
    others = [
        f"{state.autoscalers[0].display_name} scales {_state_text(state)}, so the controller writes no scale"
        " of this binding; delete it, or set scaling.mode to published and let it follow the decision"
        for state in states
        if state.autoscalers
    ]
    if others:
        return False, BindingReason.TARGET_SCALED_BY_OTHER, "; ".join(others)
    return True, BindingReason.TARGETS_FOUND, "all targets exist, and the controller writes their scales"


_BINDING: Final = "AutoscalingPolicyBinding"


def _owners(world: BoundWorld) -> Mapping[TargetKey, Sequence[Owner]]:
    """Return the objects that claim each target, the oldest first."""
    owners: dict[TargetKey, list[Owner]] = {}
    for item in world.bindings:
        for key in keys_of(item):
            owners.setdefault(key, []).append((seniority(item)[0], _BINDING, key_of(item)))
    for item in world.autoscalings:
        for reference in scale_references([item]):
            owners.setdefault(target_key(*reference), []).append(
                (seniority(item)[0], "VariantAutoscaling", key_of(item))
            )
    return {key: sorted(items) for key, items in owners.items()}


def _has_labels(pod: Json, required: Iterable[tuple[str, str]]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(name) == text for name, text in required)


def _ready_engines(pods: Iterable[Json]) -> list[Json]:
    return [pod for pod in pods if is_ready(pod) and has_engine(pod)]


def _activity_pods(world: BoundWorld) -> Mapping[str, Sequence[Json]]:
    """Return the pods of the namespaces whose bindings name an activity source."""
    by_namespace: dict[str, list[Json]] = {
        key_of(item)[0]: [] for item in world.bindings if activity_source(item)
    }
    for pod in world.pods if by_namespace else ():
        if (pods := by_namespace.get(pod["metadata"]["namespace"])) is not None:
            pods.append(pod)
    return by_namespace


def _reference(meant: TargetObject) -> Json:
    return {"apiVersion": meant.api_version, "kind": meant.kind, "name": meant.name}
