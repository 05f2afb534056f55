"""Build a scenario from the objects of a live cluster and recorded requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from apiserver.kinds.annotated import managed_autoscalers, reference_of
from apiserver.kinds.identity import key_of, seniority
from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema.json import Json, as_object
from controller.commands.plan.assumptions import NOTHING_ASKS
from controller.commands.plan.gathering import (
    completed_node,
    policies_in,
    stored_variant,
    targetless,
    targets_in,
)
from controller.commands.plan.reading import FileContents, Manifest, of_kind
from controller.commands.simulate.engines import EngineOrigins, PastReader, ScenarioData, choose_engine
from controller.commands.simulate.history import past_variant
from controller.commands.simulate.scenario_file import ScenarioInputs
from controller.observe.accelerators import accelerators_in, accelerators_of, product_of
from controller.observe.claim import Claim, Owner, OwnerKind
from controller.observe.classes import class_finding, priority_of
from controller.observe.declarations import claim_of, claim_of_annotated
from controller.observe.performance import targets_of
from controller.observe.pods import by_target, is_present, target_of_pod
from controller.observe.prices import accelerator_of, effective_cost
from controller.observe.targets import TargetKind, target_key, target_of
from controller.simulation.autoscaler import behaviour_of
from controller.simulation.manifests import Manifests, VariantObjects
from controller.simulation.scenario import NodeGroup, Scenario, ScenarioModel, VariantSetup

_ONE_NAMESPACE: Final = (
    "variants and models of {spaces} cannot be simulated together: export deploy, hpa and va with -n for one"
    " namespace at a time, and nodes, pods and cm with -A"
)
_DEPLOYMENTS: Final = "only Deployments are simulated"


def read_export(
    objects: FileContents,
    supplied: ScenarioData,
    *,
    settings_namespace: str,
    scenario: Scenario,
    names: NamesConfig,
) -> ScenarioInputs:
    """Return a scenario from objects; what these do not contain, such as the duration, is from `scenario`."""
    reader = _ScenarioBuilder(objects, supplied, settings_namespace, names)
    made = reader.scenario(scenario)
    if reader.problems:
        return ScenarioInputs(problems=tuple(reader.problems))
    return ScenarioInputs(
        scenario=made,
        manifests=reader.manifests(),
        warnings=tuple(reader.warnings),
        origins=tuple(reader.origins),
    )


class _ScenarioBuilder:
    """Builds the scenario from objects, and collects problems."""

    def __init__(
        self, objects: FileContents, supplied: ScenarioData, namespace: str, names: NamesConfig
    ) -> None:
        broken = (problem for problems in objects.broken.values() for problem in problems)
        self.problems = [str(problem) for problem in (*objects.problems, *broken)]
        self.warnings: list[str] = []
        self._objects = objects
        self._supplied = supplied
        self._targets = targets_in(objects)
        self._namespace = namespace
        self._names = names
        self._policies, doubts = policies_in(objects, names, namespace)
        self.warnings += doubts
        self._claims: dict[str, Claim] = {}
        self._variants: dict[str, VariantObjects] = {}
        self._autoscalers = {
            target_key(item.key[0], item.value["spec"]["scaleTargetRef"]): item.value
            for item in of_kind(objects.manifests, "HorizontalPodAutoscaler").values()
        }
        self._scaled_objects = {
            target_key(item.key[0], reference_of(item.value)): item.value
            for item in of_kind(objects.manifests, "ScaledObject").values()
        }
        self._pods = by_target(objects.values("Pod"))
        self.origins: list[EngineOrigins] = []
        self._has_unread_past = False
        self._nodes: list[Json] = []

    def scenario(self, likeness: Scenario) -> Scenario:
        """Return the scenario, which is to be ignored if there are problems."""
        autoscalers = [self._objects.values(kind) for kind in ("HorizontalPodAutoscaler", "ScaledObject")]
        own = (
            self._variant(item) for item in of_kind(self._objects.manifests, "VariantAutoscaling").values()
        )
        annotated = sorted(managed_autoscalers(*autoscalers), key=seniority)
        others = (self._annotated_variant(value) for value in annotated)
        claimed = [made for made in (*own, *others) if made]
        self.problems += self._shared_models()
        if self._supplied.reads_past and claimed and not self.problems:
            likeness = self._with_past(self._supplied.reads_past, likeness)
        variants = [made for claim, spec in claimed if (made := self._setup(claim, spec))]
        if not variants and not self.problems:
            self.problems.append(f"nothing to simulate: {NOTHING_ASKS}")
        self._nodes += self._free_nodes()
        if not self._nodes and self._claims:
            self.problems.append(
                "the input contains no node with accelerators: export them with kubectl get nodes -o yaml"
            )
        models = tuple(self._models())
        names = {variant.name for variant in variants}
        for option, given in (
            ("--start-up", self._supplied.start_up_seconds),
            ("--profile", self._supplied.profiles),
            ("--kv-tokens", self._supplied.kv_tokens),
        ):
            self.problems += [
                f"{option} {name}: there is no such variant" for name in given if name not in names
            ]
        return replace(likeness, models=models, variants=tuple(variants), nodes=self._groups())

    def manifests(self) -> Manifests:
        """Return the objects without their statuses, which are of another time."""
        maps = of_kind(self._objects.manifests, "ConfigMap").items()
        return Manifests(
            variants=self._variants,
            nodes=self._nodes,
            config_maps={name: item.value for (space, name), item in maps if space == self._namespace},
            unit_costs=self._names.unit_costs,
            service_classes=self._names.service_classes,
        )

    def _with_past(self, reads: PastReader, likeness: Scenario) -> Scenario:
        """Take loads and measurements from Prometheus; loads that were given count more."""
        past = reads([past_variant(claim) for claim in self._claims.values()])
        given = dict(self._supplied.workloads)
        if "" in given and len(past.workloads) == 1:
            given = dict.fromkeys(past.workloads, given[""])
        self._supplied = replace(
            self._supplied, workloads={**past.workloads, **given}, measured=past.measured
        )
        self._has_unread_past = bool(past.problems)
        self.problems += past.problems
        self.warnings += past.warnings
        longest = max(likeness.duration_seconds, past.seconds)
        return replace(likeness, duration_seconds=longest)

    def _variant(self, manifest: Manifest) -> tuple[Claim, Json] | None:
        value, wrong = stored_variant(manifest)
        problems = wrong or list(targetless(manifest, value, self._targets, self._objects.refused))
        self.problems += [str(problem) for problem in problems]
        if problems:
            return None
        claim = claim_of(value)
        owner = _with_uid({k: v for k, v in value.items() if k != "status"})
        return (claim, value["spec"]) if self._adds(claim, owner, manifest.label) else None

    def _annotated_variant(self, value: Json) -> tuple[Claim, Json] | None:
        owner = Owner(OwnerKind(value["kind"]), *key_of(value))
        label = f"{owner.kind} {owner.namespace}/{owner.name}"
        try:
            claim = claim_of_annotated(value, owner)
        except ValueError as error:
            self.problems.append(f"{label}: {error}")
            return None
        self.warnings += [f"{label}: {problem}" for problem in claim.orders.problems]
        target = claim.target
        if target in {other.target for other in self._claims.values()}:
            self.warnings.append(
                f"{label} is omitted: another object decides on {target.kind_text} {target.name!r}"
            )
            return None
        if target.kind is TargetKind.DEPLOYMENT and target not in self._targets:
            self.problems.append(f"{label}: {target.kind_text} {target.name!r} is missing")
            return None
        value = _with_uid(value)
        if owner.kind is OwnerKind.HORIZONTAL_POD_AUTOSCALER:
            self._autoscalers[target] = value
        return (claim, {}) if self._adds(claim, value, label) else None

    def _adds(self, claim: Claim, owner: Json, label: str) -> bool:
        """Add the objects of a variant, unless it cannot be simulated; return whether it can."""
        key, name = claim.target, claim.name
        if (key.kind, key.namespace, key.name) in self._objects.refused:
            return False  # the problems of its manifest are reported
        if key.kind is not TargetKind.DEPLOYMENT:
            self.warnings.append(f"{label} is omitted: {_DEPLOYMENTS}")
            return False
        if name in self._claims:
            spaces = f"{self._claims[name].owner.namespace} and {key.namespace}"
            self.problems.append(
                f"{label}: another variant has the same name; {_ONE_NAMESPACE.format(spaces=spaces)}"
            )
            return False
        self._claims[name] = claim
        self._variants[name] = VariantObjects(
            deployment=self._targets[key],
            owner=owner,
            autoscaler=self._autoscalers.get(key),
            scaled_object=self._scaled_objects.get(key),
        )
        return True

    def _setup(self, claim: Claim, spec: Json) -> VariantSetup | None:
        name, target = claim.name, target_of(claim.target, self._targets[claim.target])
        engine = choose_engine(claim, spec, target, self._pods.get(claim.target, ()), self._supplied)
        self.problems += engine.problems
        if engine.profile is None or engine.origins is None:
            return None
        self.origins.append(engine.origins)
        self.warnings += engine.warnings
        autoscaler = self._autoscalers.get(target.key)
        scaled_object = self._variants[name].scaled_object
        if autoscaler is None and scaled_object is None:
            self.warnings.append(
                f"{name}: no HorizontalPodAutoscaler scales it; one with the defaults is assumed"
            )
        bounds = _keda_bounds(scaled_object) if scaled_object else autoscaler["spec"] if autoscaler else {}
        is_resolved, _, why = class_finding(claim, self._policies)
        if not is_resolved:
            self.warnings.append(f"{name}: spec.sloClassRef: {why}")
        least = bounds.get("minReplicas")
        return VariantSetup(
            name=name,
            profile=engine.profile,
            accelerator=accelerator_of(claim, target.pod_spec),
            accelerators_per_replica=target.accelerators_per_replica,
            price_per_hour=float(effective_cost(claim, target, self._policies)[0]),
            start_up_seconds=engine.start_up_seconds,
            initial_replicas=target.replicas,
            min_replicas=1 if least is None else int(least),
            max_replicas=int(bounds.get("maxReplicas", 100)),
            behaviour=behaviour_of(bounds) if "maxReplicas" in bounds else None,
        )

    def _shared_models(self) -> Iterator[str]:
        """Yield the model IDs of several namespaces: these are different models with a load each."""
        namespaces: dict[str, set[str]] = defaultdict(set)
        for claim in self._claims.values():
            namespaces[claim.model_id].add(claim.owner.namespace)
        for model_id, namespaces_of_model in namespaces.items():
            if len(namespaces_of_model) > 1:
                spaces = " and ".join(sorted(namespaces_of_model))
                yield f"model {model_id} is in several namespaces; {_ONE_NAMESPACE.format(spaces=spaces)}"

    def _models(self) -> Iterator[ScenarioModel]:
        used: dict[str, Claim] = {}
        for claim in self._claims.values():
            used.setdefault(claim.model_id, claim)
        workloads = dict(self._supplied.workloads)
        if "" in workloads and len(used) == 1:
            workloads.setdefault(next(iter(used)), workloads.pop(""))
        elif "" in workloads and used:
            self.problems.append(
                f"--trace: specify the model, FILE=MODEL; the models are {', '.join(sorted(used))}"
            )
        self.problems += [
            f"--trace: there is no model {name!r}; the models are {', '.join(sorted(used))}"
            for name in workloads
            if name and name not in used
        ]
        for model_id, claim in used.items():
            if model_id in workloads:
                yield ScenarioModel(
                    model_id=model_id,
                    workload=workloads[model_id],
                    targets=targets_of(claim, self._policies),
                    priority=priority_of(claim, self._policies),
                )
            elif "" not in workloads and not self._has_unread_past:
                self.problems.append(
                    f"model {model_id}: its load is unknown: use --prometheus URL, or --trace FILE={model_id}"
                )

    def _free_nodes(self) -> Iterator[Json]:
        """Yield nodes with free accelerators, less those that pods not scaled here hold."""
        scaled = {claim.target for claim in self._claims.values()}
        held: dict[str, int] = {}
        for pod in self._objects.values("Pod"):
            owner, node = target_of_pod(pod), pod["spec"].get("nodeName")
            if node and is_present(pod) and (owner is None or owner not in scaled):
                held[node] = held.get(node, 0) + accelerators_of(pod["spec"])
        for node in map(completed_node, self._objects.values("Node")):
            count = accelerators_in(node["status"]["allocatable"]) - held.get(node["metadata"]["name"], 0)
            if count > 0:
                status = node["status"] | {"allocatable": {"nvidia.com/gpu": str(count)}}
                yield node | {"status": status}

    def _groups(self) -> tuple[NodeGroup, ...]:
        return tuple(
            NodeGroup(
                accelerator=product_of(node["metadata"].get("labels") or {}),
                accelerators=accelerators_in(node["status"]["allocatable"]),
                count=1,
            )
            for node in self._nodes
        )


def _keda_bounds(scaled_object: Json) -> Json:
    """Return the bounds and the behavior of a ScaledObject as those of the autoscaler that KEDA creates."""
    spec = scaled_object["spec"]
    advanced = as_object(as_object(spec.get("advanced")).get("horizontalPodAutoscalerConfig"))
    return {
        "minReplicas": spec.get("minReplicaCount", 0),
        "maxReplicas": spec.get("maxReplicaCount", 100),
        "behavior": as_object(advanced.get("behavior")),
    }


def _with_uid(value: Json) -> Json:
    metadata = value["metadata"]
    kept = {name: item for name, item in metadata.items() if name != "managedFields"}
    return value | {"metadata": {"uid": metadata["name"]} | kept}
