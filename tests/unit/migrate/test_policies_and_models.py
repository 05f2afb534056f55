"""Policies, Models, routes and objectives between the seeds' shapes and the released ones."""

from __future__ import annotations

import pytest
from support.migrate_verb import (
    OUR_GROUP,
    RELEASED_GROUP,
    backend,
    binding,
    manifest,
    migrated,
    policy,
    target,
)

from apiserver.schema.json import Json

OURS, THEIRS = "networking.volcano.sh", "networking.serving.volcano.sh"
WAITING = "vllm:num_requests_waiting"
SCALING = "is not migrated: Kthena scales no Deployment, only ModelServings: leave it to Stowplan"
DEPLOYMENT = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}}
POLICY = {"metrics": [{"metricName": WAITING, "targetValue": 5}]}
SERVER = {
    "inferenceEngine": "vLLM",
    "workloadSelector": {"matchLabels": {"app": "llama"}},
    "workloadPort": {"port": 8000},
}
TO_POLICY = f"AutoscalingPolicy of {RELEASED_GROUP}"
TO_BINDING = f"AutoscalingPolicyBinding of {OUR_GROUP}"
TO_BOOSTER = f"ModelBooster of {RELEASED_GROUP}"
TO_MODEL = f"Model of {OUR_GROUP}"


def route(group: str, *targets: Json, **spec: object) -> Json:
    """Return a ModelRoute with one rule."""
    rules = [{"targetModels": list(targets) or [{"modelServerName": "llama"}]}]
    return manifest(group, "ModelRoute", {"modelName": "llama", "rules": rules, **spec})


def model(*backends: Json, **spec: object) -> Json:
    """Return a Model."""
    return manifest(OUR_GROUP, "Model", {"backends": list(backends), **spec})


def booster(**fields: object) -> Json:
    """Return a ModelBooster with fields of its backend."""
    plain = {"name": "l4", "type": "vLLM", "modelURI": "hf://a/b", "replicas": 2, "workers": [{}]}
    return manifest(RELEASED_GROUP, "ModelBooster", {"backend": plain | fields})


def released(pod: Json | None = None, **source: object) -> Json:
    """Return a released policy with one target, whose metric has one source."""
    whole = {"target": target(metricSources={WAITING: source or {"pod": pod or {}}})}
    bounds = {"minReplicas": 1, "maxReplicas": 4}
    return policy(group=RELEASED_GROUP, homogeneousTarget=whole | bounds)


def objective(group: str, version: str, **spec: object) -> Json:
    """Return an InferenceObjective."""
    return manifest(group, "InferenceObjective", spec) | {"apiVersion": f"{group}/{version}"}


BOTH_WAYS = {
    "a policy and its binding": (
        [policy(tolerancePercent=5), binding()],
        [released() | {"spec": {"tolerancePercent": 5} | released()["spec"]}],
    ),
    "an endpoint and labels": (
        [
            policy(),
            binding(of=target(metricEndpoint={"uri": "/m", "port": 1}, additionalMatchLabels={"a": "b"})),
        ],
        [released({"uri": "/m", "port": 1, "labelSelector": {"matchLabels": {"a": "b"}}})],
    ),
    "a capacity of targets": (
        [policy(), binding(annotations={"stowplan.dev/capacity": "llama=2"})],
        [released() | {"metadata": {"name": "llama", "annotations": {"stowplan.dev/capacity": "llama=2"}}}],
    ),
    "a model": ([model(backend())], [booster(workers=[{"image": "vllm"}])]),
    "a route": ([route(OURS)], [route(THEIRS)]),
    "a server": ([manifest(OURS, "ModelServer", SERVER)], [manifest(THEIRS, "ModelServer", SERVER)]),
    "an objective": (
        [objective("inference.networking.x-k8s.io", "v1alpha2", priority=1, poolRef={"name": "a"})],
        [objective("llm-d.ai", "v1alpha2", priority=1, poolRef={"name": "a"})],
    ),
}


@pytest.mark.parametrize(("ours", "theirs"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_both_shapes_are_written(ours: list[Json], theirs: list[Json]) -> None:
    """Nothing is named, since nothing is lost."""
    assert migrated(*ours) == (theirs, [])
    assert migrated(*theirs, to="stowplan") == (ours, [])


LOST = {
    "the name of a binding": (
        [policy(), binding("other")],
        f"- metadata.name: has no place in {TO_POLICY}: the target is a part of policy 'llama' now",
    ),
    "a field of a binding that is not known": (
        [policy(), binding() | {"spec": binding()["spec"] | {"colour": "red"}}],
        f"- spec.colour: has no place in {TO_POLICY}: Kthena does not know it",
    ),
    "one policy of two bindings": (
        [policy(), binding("a"), binding("b", of=target("b"))],
        f"- metadata.name: has no place in {TO_POLICY}: a policy has one target, so there is one for each"
        " binding: a, b",
    ),
    "a binding of a Deployment": (
        [policy(), binding(of=DEPLOYMENT)],
        f"- spec.scalingConfiguration.target.targetRef.kind: {SCALING}",
    ),
    "a policy whose binding stays": (
        [policy(), binding(of=DEPLOYMENT)],
        "- metadata.name: is not migrated: its bindings are not migrated",
    ),
    "a policy alone": (
        [policy()],
        "- metadata.name: is not migrated: no AutoscalingPolicyBinding in the input applies it, and Kthena"
        " refuses one without target: add it",
    ),
    "a binding alone": (
        [binding()],
        "- spec.policyRef: is not migrated: its policy 'llama' is not in the input: add it",
    ),
    "a kind that was renamed": (
        [policy(), binding(of={"targetRef": {"name": "llama"}})],
        "spec.scalingConfiguration.target.targetRef: is a ModelServing now: migrate the ModelInfer itself,"
        " too",
    ),
    "a second backend": (
        [model(backend(), backend("h100"))],
        f"- spec.backends[1]: has no place in {TO_BOOSTER}: write a ModelBooster of its own for 'h100'",
    ),
    "a policy of a backend": (
        [model(backend(autoscalingPolicy=POLICY, maxReplicas=4))],
        f"- spec.backends[0].autoscalingPolicy: has no place in {TO_BOOSTER}: write an AutoscalingPolicy of"
        " that group for the ModelServing that it becomes, 'llama-l4'",
    ),
    "bounds of replicas": (
        [model(backend(autoscalingPolicy=POLICY, maxReplicas=4))],
        f"- spec.backends[0].maxReplicas: has no place in {TO_BOOSTER}: it always has as many replicas as"
        " written, 2",
    ),
    "adapters": (
        [model(backend(loraAdapters=[{"name": "a", "artifactURL": "hf://a/c"}]))],
        f"- spec.backends[0].loraAdapters: has no place in {TO_BOOSTER}: let the engine load them by its"
        " config",
    ),
    "a weight": (
        [model(backend(routeWeight=0))],
        f"- spec.backends[0].routeWeight: has no place in {TO_BOOSTER}: there is only one backend",
    ),
    "another engine": (
        [model(backend(type="SGLang"))],
        "- spec.backends[0].type: is not migrated: ModelBooster supports the types vLLM and vLLMDisaggregated"
        " only",
    ),
    "a server without port": (
        [manifest(OURS, "ModelServer", {name: SERVER[name] for name in SERVER if name != "workloadPort"})],
        "spec: workloadPort is required after Kthena 1.0: set it",
    ),
    "a limit above 32 bits": (
        [route(OURS, rateLimit={"inputTokensPerUnit": 2**31})],
        "- spec.rateLimit.inputTokensPerUnit: is not migrated: the definition of Kthena allows 2147483647 at"
        " most",
    ),
    "a priority above 32 bits": (
        [objective("inference.networking.x-k8s.io", "v1alpha2", priority=2**31, poolRef={"name": "a"})],
        "- spec.priority: is not migrated: a priority has 32 bits there",
    ),
}


@pytest.mark.parametrize(("objects", "note"), LOST.values(), ids=LOST.keys())
def test_what_has_no_place_in_the_released_shape_is_named(objects: list[Json], note: str) -> None:
    """Each line has the field, what became of it, and what to do."""
    assert note in migrated(*objects)[1]


LOST_BACK = {
    "a query of Prometheus": (
        [released(prometheus={"serverURL": "http://p", "query": "q"})],
        f"- spec.homogeneousTarget.target.metricSources[{WAITING}].prometheus: has no place in {TO_BINDING}:"
        " a binding reads its metrics from pods: let them expose it",
    ),
    "expressions of labels": (
        [released({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}})],
        f"- spec.homogeneousTarget.target.metricSources[{WAITING}].pod.labelSelector.matchExpressions: has no"
        f" place in {TO_BINDING}: only matchLabels are supported",
    ),
    "roles": (
        [policy(group=RELEASED_GROUP, disaggregatedTarget={})],
        "- spec.disaggregatedTarget: is not migrated: a binding of Stowplan has no roles: write a target for"
        " each of them",
    ),
    "a policy of an earlier release": (
        [policy(group=RELEASED_GROUP)],
        "- spec: is not migrated: it has no target: only policies of Kthena 1.0 are supported",
    ),
    "a scheduler": (
        [booster(schedulerName="volcano")],
        f"- spec.backend.schedulerName: has no place in {TO_MODEL}: set it by a mutating admission policy",
    ),
    "tolerations": (
        [booster(workers=[{"tolerations": [{"operator": "Exists"}]}])],
        f"- spec.backend.workers[0].tolerations: has no place in {TO_MODEL}: let the node's admission, such"
        " as ExtendedResourceToleration, add them",
    ),
    "no replicas": (
        [booster(replicas=0)],
        f"- spec.backend.replicas: has no place in {TO_MODEL}: it has 1 replica: a Model without a policy is"
        " not off",
    ),
    "a source that is not supported": (
        [booster(modelURI="ms://a/b")],
        "- metadata.name: is not migrated: the Model would be refused: spec.backends[0].modelURI: Invalid"
        ' value: "ms://a/b": must be hf://, s3:// or pvc:// and a path behind it, such as'
        " hf://meta-llama/Llama-3.1-8B",
    ),
    "parents of a route": (
        [route(THEIRS, parentRefs=[{"name": "a"}])],
        f"- spec.parentRefs: has no place in ModelRoute of {OURS}: the annotation stowplan.dev/parent-refs"
        " names Gateways",
    ),
    "a provider": (
        [route(THEIRS, {"externalModelProviderName": "a"})],
        "- spec.rules[0].targetModels[0].externalModelProviderName: is not migrated: no ModelRoute of"
        f" {OURS} has such targets: leave it to Kthena's router",
    ),
    "several pools": (
        [objective("llm-d.ai", "v1", poolRefs=[{"name": "a"}, {"name": "b"}])],
        "- spec.poolRefs: has no place in InferenceObjective of inference.networking.x-k8s.io: an objective"
        " has one pool: deploy one for each",
    ),
    "a selector of pools": (
        [objective("llm-d.ai", "v1", poolSelector={"matchLabels": {"a": "b"}})],
        "- spec: is not migrated: InferenceObjective of inference.networking.x-k8s.io names one pool by its"
        " poolRef: name it",
    ),
}


@pytest.mark.parametrize(("objects", "note"), LOST_BACK.values(), ids=LOST_BACK.keys())
def test_what_has_no_place_in_stowplans_shape_is_named(objects: list[Json], note: str) -> None:
    """An object whose result would be refused is left as it is."""
    assert note in migrated(*objects, to="stowplan")[1]


def test_a_metric_gets_the_name_that_pods_expose() -> None:
    """In releases of Kthena, it may differ from the name of the metric in the policy."""
    value = released({"name": "other:waiting", "port": 8000})
    [ours, bound], notes = migrated(value, to="stowplan")

    assert notes == []
    assert ours["spec"]["metrics"][0]["metricName"] == "other:waiting"
    assert bound["spec"]["scalingConfiguration"]["target"]["metricEndpoint"] == {"port": 8000}
