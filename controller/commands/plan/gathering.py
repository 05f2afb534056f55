"""Conversion of objects into a snapshot by the controller's own rules, with warnings for the user."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from apiserver.kinds.conversion import convert
from apiserver.kinds.decision_record import CONFIG_MAP as DECISIONS
from apiserver.kinds.identity import key_of
from apiserver.kinds.judgement import complete_and_judge, kept_errors
from apiserver.kinds.llmd.conversion import HUB
from apiserver.kinds.registry import find_kind, find_version
from apiserver.kinds.settings_names import LAST_VALID, NamesConfig
from apiserver.schema.json import Json
from apiserver.schema.model import node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.shape import DEEPEST, is_deeper_than
from controller.commands.check.matching import strict_errors
from controller.commands.plan.configuring import ConfigurationResult
from controller.commands.plan.reading import FileContents, InputProblem, Manifest, of_kind
from controller.commands.plan.statuses import with_statuses
from controller.observe.accelerators import accelerators_in
from controller.observe.claim import Claims
from controller.observe.devices import DeviceTranslator, FurtherAccelerators
from controller.observe.gather import GatherResult, World, claims_in, gather
from controller.observe.policies import Policies
from controller.observe.prices import CostSource
from controller.observe.settings_reading import LastValid, read_last_valid, read_policies
from controller.observe.targets import TargetKey, TargetKind, scaled_by, target_key
from controller.planning.cluster import MOST_ACCELERATORS
from controller.planning.inputs import PlanningInputs
from controller.planning.snapshot import Snapshot
from controller.sizing.records import VariantFacts

Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class InputsResult:
    """Inputs of a plan with warnings, or the problems that prevent it."""

    inputs: PlanningInputs
    seen: GatherResult | None = None
    """What was found about each variant; None for a saved decision."""

    warnings: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    """Namespace and name of each variant that is not planned."""

    left_out: tuple[str, ...] = ()
    """Kind and name of each invalid object that is left out."""

    problems: tuple[InputProblem, ...] = ()

    @property
    def facts(self) -> Mapping[Key, VariantFacts] | None:
        """Performance facts of each variant; None for a saved decision, which contains capacities."""
        return None if self.seen is None else {key: item.facts for key, item in self.seen.observed.items()}

    @property
    def cost_sources(self) -> Mapping[Key, CostSource]:
        """Source of the cost of each variant; none for a saved decision."""
        return {} if self.seen is None else {key: item.cost[1] for key, item in self.seen.observed.items()}


def gather_objects(
    objects: FileContents,
    *,
    configuring: ConfigurationResult,
    settings_namespace: str,
    now_seconds: float = 0.0,
    may_be_empty: bool = False,
    are_assumed: bool = False,
) -> InputsResult:
    """Return the snapshot of some objects; it is empty if there are problems.

    It is a problem if no variant can be planned, or a node is unlikely, unless it `may_be_empty`. No
    autoscaler is expected to follow decisions on variants that `are_assumed`.
    """
    nothing = PlanningInputs(snapshot=Snapshot(nodes=(), variants=()), settings=configuring.settings)
    problems, targets = list(objects.problems), targets_in(objects)
    variants, broken, missing = _variants(objects, targets)
    further = configuring.terms.further
    problems += () if may_be_empty else _oversized_nodes(objects, further)
    whole = [key for key, value in variants.items() if scaled_by(value) in targets]
    is_useless = not may_be_empty and objects.manifests and not whole and (broken or missing)
    if problems or is_useless:
        found_wrong = (*problems, *chain.from_iterable(broken.values()), *missing.values())
        return InputsResult(inputs=nothing, problems=found_wrong)
    policies, doubts = policies_in(objects, configuring.names, settings_namespace)
    world = _world(objects, [*variants.values()], further)
    claims = claims_in(world)
    # Not by kind, namespace and name: both API groups may have a pool of the same name.
    objectives, pools = (
        [item.value for item in objects.manifests if item.kind[1] == kind]
        for kind in ("InferenceObjective", "InferencePool")
    )
    try:
        seen = gather(
            world,
            claims,
            policies=policies,
            now_seconds=now_seconds,
            may_scale_to_zero=configuring.scales_to_zero,
            terms=configuring.terms,
            objectives=configuring.objectives.applicable(objectives, pools),
        )
    except ValueError as error:
        return InputsResult(inputs=nothing, problems=(InputProblem(file="", line=0, text=str(error)),))
    warnings = (
        *doubts,
        *_claimless(objects),
        *_warnings(seen, objects, claims, missing, are_assumed=are_assumed),
        *(f"{problem}: it is left out" for problem in chain.from_iterable(broken.values())),
    )
    snapshot = with_statuses(seen)
    return InputsResult(
        inputs=replace(nothing, snapshot=snapshot),
        seen=seen,
        warnings=warnings,
        omitted=tuple("/".join(key) for key in sorted(seen.unplanned)),
        left_out=tuple(sorted(broken)),
    )


def _variants(
    objects: FileContents, targets: Container[TargetKey]
) -> tuple[Mapping[Key, Json], Mapping[str, list[InputProblem]], Mapping[Key, InputProblem]]:
    """Return valid variants, the problems of invalid objects by label, and those of missing targets."""
    variants: dict[Key, Json] = {}
    missing: dict[Key, InputProblem] = {}
    broken = dict(objects.broken)
    for key, manifest in of_kind(objects.manifests, "VariantAutoscaling").items():
        value, wrong = stored_variant(manifest)
        if wrong:
            broken[manifest.label] = wrong
            continue
        variants[key] = value
        for problem in targetless(manifest, value, targets, objects.refused):
            missing[key] = problem
    return variants, broken, missing


def _warnings(
    seen: GatherResult,
    objects: FileContents,
    claims: Claims,
    missing: Mapping[Key, InputProblem],
    *,
    are_assumed: bool,
) -> Iterator[str]:
    """Yield what is wrong with single variants."""
    titles = {item.key: f"{item.value['kind']} {'/'.join(key_of(item.value))}" for item in claims.claimants}
    for claim in claims.readable:
        yield from (f"{titles[claim.key]}: {problem}" for problem in claim.orders.problems)
    for key, observed in seen.observed.items():
        is_resolved, _, text = observed.service_class
        if not is_resolved:
            yield f"VariantAutoscaling {'/'.join(key)}: spec.sloClassRef: {text}"
    yield from seen.problems
    yield from (text for item in seen.observed.values() for text in item.claim.problems)
    items = [(titles[key], item) for key, item in sorted(seen.observed.items())]
    if not are_assumed:
        yield from (f"{name}: {problem.message}" for name, item in items for problem in item.misread)
    yield from (f"{name}: {item.mistyped}" for name, item in items if item.mistyped)
    yield from (f"{name}: {item.target.difference}" for name, item in items if item.target.difference)
    targets = {claim.key: claim.target for claim in claims.readable}
    for key, why in sorted(seen.unplanned.items()):
        name, target = titles[key], targets.get(key)
        if key in missing:
            text = missing[key].text.removeprefix(f"{name}: ")
        elif target and (target.kind, target.namespace, target.name) in objects.refused:
            text = f"its {target.kind} {target.name!r} is left out"
        else:
            text = why.message
        yield f"{name} is omitted: {text}"


def _claimless(objects: FileContents) -> Iterator[str]:
    """Yield a warning if the pods' ResourceClaims were not exported: their devices count as free."""
    pods = of_kind(objects.manifests, "Pod").values()
    holders = [pod for pod in pods if pod.value["spec"].get("resourceClaims")]
    if holders and not of_kind(objects.manifests, "ResourceClaim"):
        yield (
            f"the input contains no ResourceClaim, but {holders[0].label} holds devices by one: also"
            " export them with kubectl get"
            " resourceslices,resourceclaims,resourceclaimtemplates,deviceclasses -A -o yaml"
        )


def stored_variant(manifest: Manifest) -> tuple[Json, list[InputProblem]]:
    """Return a VariantAutoscaling with its defaults, in the version that planning uses."""
    api_version, value = str(manifest.value["apiVersion"]), manifest.value
    known = find_version(api_version, "VariantAutoscaling")
    if known is None:
        kind = find_kind("llmd.ai", "VariantAutoscaling")
        there_are = ", ".join(version.name for version in kind.versions) if kind else ""
        path = FieldPath().child("apiVersion")
        return value, [manifest.problem(f"no version {api_version}: its versions are {there_are}", path)]
    if is_deeper_than(value, DEEPEST):
        return value, [manifest.problem("must not be nested as deeply as this")]
    value = copy.deepcopy(value)
    problems = [
        InputProblem(file=manifest.file, line=error.line, text=f"{manifest.label}: {error.message}")
        for error in strict_errors(manifest.tree, node_of(known[1].declaration))
        # A status is written by controllers, also by newer ones.
        if error.reason != "UnknownField" or error.field.partition(".")[0] != "status"
    ]
    errors = complete_and_judge(*known, value).errors or kept_errors(*known, value, only_stored=True)
    problems += [manifest.problem(str(error.body), error.path) for error in errors]
    return (value, problems) if problems else (convert(value, HUB), [])


def targets_in(objects: FileContents) -> Mapping[TargetKey, Json]:
    """Return all scale targets."""
    return {
        TargetKey(kind, *key): item.value
        for kind in TargetKind
        for key, item in of_kind(objects.manifests, kind).items()
    }


def targetless(
    manifest: Manifest,
    value: Json,
    targets: Container[TargetKey],
    refused: Container[tuple[str, str, str]],
) -> Iterator[InputProblem]:
    """Yield a problem if the scale target of a VariantAutoscaling is missing; a refused one is not."""
    target = target_key(manifest.key[0], value["spec"]["scaleTargetRef"])
    if target.kind is TargetKind.SCALED or (target.kind, target.namespace, target.name) in refused:
        return
    if target not in targets:
        text = (
            f"{target.kind} {target.name!r} of namespace {target.namespace!r} is missing: add its manifest"
            f" with -f, or export it with kubectl get {target.kind.lower()} -n {target.namespace}"
            f" {target.name} -o yaml"
        )
        yield manifest.problem(text, FieldPath().child("spec", "scaleTargetRef"))


def _oversized_nodes(objects: FileContents, further: FurtherAccelerators) -> Iterator[InputProblem]:
    """Yield nodes with an implausible number of accelerators: a typing error, and too many to draw."""
    for node in of_kind(objects.manifests, "Node").values():
        count = accelerators_in(further.node(completed_node(node.value))["status"]["allocatable"])
        if count > MOST_ACCELERATORS:
            text = f"{count} accelerators: a node can have at most {MOST_ACCELERATORS}"
            yield node.problem(text, FieldPath().child("status", "allocatable"))


def policies_in(
    objects: FileContents, names: NamesConfig, settings_namespace: str
) -> tuple[Policies, list[str]]:
    """Return prices and service classes, with warnings about invalid or ignored ones."""
    listed = of_kind(objects.manifests, "ConfigMap")
    ours = {name: item.value for (namespace, name), item in listed.items() if namespace == settings_namespace}
    doubts: list[str] = []
    try:
        last_valid = read_last_valid(ours.get(LAST_VALID))
    except ValueError as error:
        last_valid = LastValid()
        doubts.append(str(error))
    policies = read_policies(
        ours, unit_costs=names.unit_costs, default_classes=names.service_classes, last_valid=last_valid
    )
    elsewhere = [
        f"ConfigMap {namespace}/{name} is omitted: prices and service classes are read from namespace"
        f" {settings_namespace} (--settings-namespace)"
        for namespace, name in listed
        if name in {names.unit_costs, names.service_classes} and namespace != settings_namespace
    ]
    return policies, [*doubts, *map(str, policies.problems), *elsewhere]


def _world(objects: FileContents, autoscalings: Sequence[Json], further: FurtherAccelerators) -> World:
    values = objects.values
    dynamic = DeviceTranslator(
        slices=values("ResourceSlice"),
        claims=values("ResourceClaim"),
        templates=values("ResourceClaimTemplate"),
        classes=values("DeviceClass"),
        further=further,
    )
    return World(
        autoscalings=autoscalings,
        targets={key: dynamic.workload(item) for key, item in targets_in(objects).items()},
        pods=[dynamic.pod(item) for item in values("Pod")],
        nodes=[dynamic.node(completed_node(item)) for item in values("Node")],
        autoscalers=values("HorizontalPodAutoscaler"),
        scaled_objects=values("ScaledObject"),
        records={
            key[0]: item.value.get("data") or {}
            for key, item in of_kind(objects.manifests, "ConfigMap").items()
            if key[1] == DECISIONS
        },
        quotas=values("ResourceQuota"),
        node_pools=values("NodePool"),
        disruption_budgets=values("PodDisruptionBudget"),
    )


def completed_node(node: Json) -> Json:
    """Return a node with defaults for what files often omit: it is ready, and its capacity is allocatable."""
    status = node.get("status") or {}
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    conditions = status.get("conditions") or [{"type": "Ready", "status": "True"}]
    return node | {"status": status | {"allocatable": allocatable, "conditions": conditions}}
