"""The rules for when and which pods to evict: in rounds, after a shortage that lasts, so many per hour.

A round begins with evictions. It ends when as many pods of the same owners are bound as before, or as many as
the owners request since then, or after a timeout.

The last hour's evictions are recorded on the controller's Lease, from which the next leader continues. The
Lease exists anyway, only the leader writes it, and it outlives processes, nodes and pods. Evictions are
recorded before they are made, so that a crash in between counts too many and never too few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.lease import annotate, read_lease
from apiserver.kinds.annotations import PREFIX
from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json
from controller.observe.pods import is_present, target_of_pod
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.decision import Move, Plan
from controller.planning.wording import count

Owner = tuple[str, str, str]
"""Namespace, kind and name of the controller that recreates a pod."""

PLANS_IN_A_ROW = 2
"""The number of consecutive plans with the same shortage before anything is moved for it."""

ROUND_SECONDS = 300.0
"""Timeout in seconds of a round whose pods are not scheduled again."""

FRUITLESS_SECONDS = 3600.0
"""Pause in seconds after a round that timed out, since the scheduler has constraints that planning lacks."""

BEING_MOVED = "being moved for it"
"""Part of the message of a variant while a round for it is in progress."""

_HOUR_SECONDS = 3600.0
_NO_TARGETS: Final[Mapping[TargetKey, Json]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class EvictionRules:
    """Limits on the frequency and number of evictions."""

    enabled: bool = False
    interval_seconds: float = 300.0
    per_hour: int = 0


NO_EVICTIONS: Final = EvictionRules()
"""Rules under which nothing is evicted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodToEvict:
    """One pod to evict."""

    pod: Json
    move: Move

    @property
    def owner(self) -> Owner:
        """The controller that recreates the pod."""
        return owner_of(self.pod)


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """An unfinished round: evicted pods that are not all bound again."""

    began_seconds: float
    evicted: frozenset[str]
    """UIDs of the evicted pods."""

    bound: Mapping[Owner, int]
    """The number of bound pods of each owner before the round."""

    asking: Mapping[Owner, TargetKey]
    """The scale target that determines the number of pods of an owner, where known."""

    nodes: frozenset[str]
    """Nodes from which pods were evicted."""

    benefits: frozenset[Key]
    """Variants for which pods were evicted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds:
    """The state of evictions between plans."""

    short: frozenset[Key] = frozenset()
    """Variants for which the last plan would move replicas."""

    plans: int = 0
    """The number of consecutive plans with this set."""

    last_seconds: float | None = None
    """When the last round ended or was abandoned."""

    rest_seconds: float = 0.0
    """Minimum pause after it, in seconds."""

    evictions: tuple[float, ...] = ()
    """Times of the evictions within the last hour, in seconds."""

    current: Round | None = None


def after_plan(
    rounds: Rounds,
    plan: Plan,
    pods: Sequence[Json],
    *,
    now_seconds: float,
    targets: Mapping[TargetKey, Json] = _NO_TARGETS,
) -> Rounds:
    """Return the state after another plan; `targets` has the scale targets as they are now."""
    short = frozenset(key for move in plan.moves for key in move.benefits)
    plans = 0 if not short else rounds.plans + 1 if short == rounds.short else 1
    recent = tuple(moment for moment in rounds.evictions if now_seconds - moment < _HOUR_SECONDS)
    rounds = replace(rounds, short=short, plans=plans, evictions=recent)
    if rounds.current is None:
        return rounds
    if _is_bound_again(rounds.current, pods, targets):
        return replace(rounds, current=None, last_seconds=now_seconds, rest_seconds=0.0)
    if now_seconds - rounds.current.began_seconds >= ROUND_SECONDS:
        return replace(rounds, current=None, last_seconds=now_seconds, rest_seconds=FRUITLESS_SECONDS)
    return rounds


def recall(rounds: Rounds, before: Sequence[float], *, now_seconds: float) -> Rounds:
    """Return the state after adding the eviction times of an earlier process.

    A time in the future, because the clock was set back since, counts as now.
    """
    moments = [min(moment, now_seconds) for moment in before]
    recent = [moment for moment in moments if now_seconds - moment < _HOUR_SECONDS]
    known = [moment for moment in (rounds.last_seconds, *moments) if moment is not None]
    return replace(rounds, evictions=(*recent, *rounds.evictions), last_seconds=max(known) if known else None)


def may_begin(rounds: Rounds, rules: EvictionRules, plan: Plan, *, now_seconds: float) -> bool:
    """Tell whether the moves of a plan may be carried out now."""
    pause_seconds = max(rules.interval_seconds, rounds.rest_seconds)
    rested = rounds.last_seconds is None or now_seconds - rounds.last_seconds >= pause_seconds
    replicas = sum(move.replicas for move in plan.moves)
    within = 0 < replicas <= rules.per_hour - len(rounds.evictions)
    return rules.enabled and rounds.current is None and rested and within and rounds.plans >= PLANS_IN_A_ROW


def pods_to_evict(
    plan: Plan, owned: Mapping[Key, Sequence[Json]], pods: Sequence[Json]
) -> tuple[PodToEvict, ...]:
    """Return the pods of all moves, or none if one of them no longer matches the plan.

    `owned` has the pods of each variant, in the order in which they are to be removed.
    """
    pods_to_evict: list[PodToEvict] = []
    others = {key_of(pod): pod for pod in pods}
    for move in plan.moves:
        key = (move.namespace, move.name)
        listed = [others[key]] if move.is_other and key in others else owned.get(key, ())
        there = [pod for pod in listed if pod["spec"].get("nodeName") == move.node and is_present(pod)]
        if len(there) < move.replicas or any(not _is_owned(pod) for pod in there):
            return ()
        pods_to_evict += [PodToEvict(pod=pod, move=move) for pod in there[: move.replicas]]
    return tuple(pods_to_evict)


def begin(
    rounds: Rounds, evicted: Sequence[PodToEvict], pods: Sequence[Json], *, now_seconds: float
) -> Rounds:
    """Return the state after evictions; if there were none, the round is abandoned."""
    if not evicted:
        return replace(rounds, last_seconds=now_seconds, rest_seconds=0.0)
    owners = {target.owner for target in evicted}
    bound = Counter(owner_of(pod) for pod in pods if _is_bound(pod) and owner_of(pod) in owners)
    current = Round(
        began_seconds=now_seconds,
        evicted=frozenset(target.pod["metadata"]["uid"] for target in evicted),
        bound=bound,
        asking={target.owner: key for target in evicted if (key := target_of_pod(target.pod))},
        nodes=frozenset(target.move.node for target in evicted),
        benefits=frozenset(key for target in evicted for key in target.move.benefits),
    )
    times = (*rounds.evictions, *[now_seconds] * len(evicted))
    return replace(rounds, current=current, evictions=times, plans=0)


def with_round(plan: Plan, current: Round | None) -> Plan:
    """Return the plan with messages that say for which variants replicas are being moved."""
    if current is None:
        return plan
    text = f"{count(len(current.evicted), 'replica')} of others {BEING_MOVED}"
    return plan.with_messages(dict.fromkeys(current.benefits, text))


def owner_of(pod: Json) -> Owner:
    """Return the controller that recreates a pod; kind and name are empty if there is none."""
    metadata = pod["metadata"]
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller"):
            return metadata["namespace"], owner["kind"], owner["name"]
    return metadata["namespace"], "", ""


def _is_bound_again(current: Round, pods: Sequence[Json], targets: Mapping[TargetKey, Json]) -> bool:
    bound = Counter(
        owner_of(pod) for pod in pods if _is_bound(pod) and pod["metadata"].get("uid") not in current.evicted
    )
    return all(
        bound[owner] >= min(before, _asked_for(current.asking.get(owner), targets, before))
        for owner, before in current.bound.items()
    )


def _asked_for(key: TargetKey | None, targets: Mapping[TargetKey, Json], before: int) -> int:
    """Return the number of pods that an owner should have now, or `before` if that is unknown."""
    if key is None or key not in targets or key.kind is TargetKind.LEADER_WORKER_SET:
        return before
    return int((targets[key].get("spec") or {}).get("replicas", 1))


def _is_bound(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName")) and is_present(pod)


def _is_owned(pod: Json) -> bool:
    return bool(owner_of(pod)[1] and pod["metadata"].get("uid"))


ANNOTATION: Final = f"{PREFIX}evictions"
"""Times within the last hour, such as `2026-01-01T12:00:20Z x2, 2026-01-01T12:10:20Z x1`."""

MOST_AT_ONCE: Final = 10_000
"""Maximum count for one time; a larger one cannot be genuine."""

_TIMES: Final = " x"
_MOMENT: Final = "%Y-%m-%dT%H:%M:%SZ"


class EvictionRecord:
    """The record on one Lease."""

    def __init__(self, cluster: Cluster, *, namespace: str, name: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name

    async def read(self) -> tuple[float, ...]:
        """Return one time for each eviction.

        Raises ClusterError if the read is rejected, and ValueError if the annotation is malformed.
        """
        return moments_in(await read_lease(self._cluster, self._namespace, self._name))

    async def write(self, moments: Iterable[float]) -> None:
        """Replace the record. Raises ClusterError if the write is rejected."""
        await annotate(self._cluster, self._namespace, self._name, ANNOTATION, record_of(moments))


def moments_in(lease: Json) -> tuple[float, ...]:
    """Return the times in a Lease's record. Raises ValueError if it is malformed."""
    text = (lease["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    moments: list[float] = []
    for entry in text.split(", ") if text else ():
        moment, _, times = entry.partition(_TIMES)
        if not (times.isdecimal() and 1 <= int(times) <= MOST_AT_ONCE):
            raise ValueError(f"{ANNOTATION}: {entry!r} must end in x1 to x{MOST_AT_ONCE}")
        moments += [datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC).timestamp()] * int(times)
    return tuple(moments)


def record_of(moments: Iterable[float]) -> str:
    """Return the record of some times, rounded up to seconds so that none expires too early."""
    counts = Counter(-int(-moment // 1) for moment in moments)
    return ", ".join(
        f"{datetime.fromtimestamp(moment, UTC).strftime(_MOMENT)}{_TIMES}{times}"
        for moment, times in sorted(counts.items())
    )
