"""Expansion of Models to workloads, Services, routes, policies and autoscalers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.models import GPU, POLICY, backend, engine_of, errors_of, model, one, split, worker
from support.samples import SAMPLES

from apiserver.schema.json import Json
from controller.expansion.expansion import ExpansionSettings, expand
from controller.models.run import ModelsConfig, expansion_settings

SCALED = {"minReplicas": 1, "maxReplicas": 4}


@pytest.mark.parametrize("path", sorted((SAMPLES / "model").glob("*.yaml")), ids=lambda path: str(path.stem))
def test_a_sample_is_expanded_to_valid_objects(path: Path) -> None:
    """No object is omitted, and objects of our kinds are valid."""
    for value in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        assert errors_of(value) == []
        expansion = expand(value)

        assert expansion.is_whole
        assert [error for item in expansion.objects for error in errors_of(item)] == []


def test_an_engine_worker_is_expanded_to_a_deployment_with_a_service() -> None:
    """The Service and the ModelServer select exactly its pods."""
    objects = expand(model(backend("a"), backend("b"))).objects
    deployment = one(objects, "Deployment", "qwen-a")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selected = [
        deployment["spec"]["selector"]["matchLabels"],
        one(objects, "Service", "qwen-a")["spec"]["selector"],
        one(objects, "ModelServer", "qwen-a")["spec"]["workloadSelector"]["matchLabels"],
    ]
    other = one(objects, "Deployment", "qwen-b")["spec"]["template"]["metadata"]["labels"]

    assert all(selector.items() <= labels.items() for selector in selected)
    assert not any(selector.items() <= other.items() for selector in selected)
    assert deployment["spec"]["replicas"] == 2
    assert engine_of(deployment)["command"] == [
        *("python3", "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", "/weights/Qwen-Qwen2.5-0.5B-Instruct-3e9c25eb14"),
        *("--port", "8000", "--served-model-name", "qwen"),
    ]


def test_the_download_of_weights_has_the_resources_of_the_engine_without_accelerators() -> None:
    """A ResourceQuota rejects pods with a container without limits; only the engine needs accelerators."""
    limits = {GPU: 1, "memory": "8Gi"}
    objects = expand(model(backend(workers=[worker(resources={"limits": limits})]))).objects
    spec = one(objects, "Deployment")["spec"]["template"]["spec"]

    assert spec["initContainers"][0]["resources"] == {"limits": {"memory": "8Gi"}}


def test_a_replica_of_several_pods_is_expanded_to_a_leaderworkerset() -> None:
    """Only leaders respond; by default the parallelism follows from the numbers of pods and accelerators."""
    spread = worker(pods=4, resources={"limits": {GPU: 8}})
    objects = expand(model(backend(workers=[spread]))).objects
    groups = one(objects, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    leader, follower = groups["leaderTemplate"]["spec"], groups["workerTemplate"]["spec"]

    assert groups["size"] == 4
    assert "readinessProbe" in leader["containers"][0]
    assert "readinessProbe" not in follower["containers"][0]
    command = " ".join(leader["containers"][0]["command"])
    assert "--pipeline-parallel-size 4" in command
    assert "--tensor-parallel-size 8" in command
    assert "ray start --block" in " ".join(follower["containers"][0]["command"])
    assert one(objects, "Service")["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"] == "0"


def test_the_pods_of_a_group_find_their_leader_by_another_service_than_that_for_requests() -> None:
    """That of a LeaderWorkerSet with a shared subdomain would have the same name, and is not created then."""
    objects = expand(model(backend(workers=[worker(pods=2)]))).objects
    groups = one(objects, "LeaderWorkerSet")

    assert groups["spec"]["networkConfig"] == {"subdomainPolicy": "UniquePerReplica"}
    assert one(objects, "Service")["metadata"]["name"] == groups["metadata"]["name"]


def test_parallelism_in_the_config_is_not_changed() -> None:
    """No argument for it is added."""
    spread = worker(pods=2, config={"tensor_parallel_size": 16})
    objects = expand(model(backend(workers=[spread]))).objects
    leader = one(objects, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    words = leader["containers"][0]["command"]

    assert "--pipeline-parallel-size" not in words
    assert words[words.index("--tensor-parallel-size") + 1] == "16"


def test_all_nodes_of_sglang_run_the_same_command() -> None:
    """The rank comes from the environment variables of the LeaderWorkerSet."""
    spread = worker(pods=2, image="lmsysorg/sglang:v0.5.3")
    objects = expand(model(backend(type="SGLang", workers=[spread]))).objects
    groups = one(objects, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    commands = [
        groups[name]["spec"]["containers"][0]["command"] for name in ("leaderTemplate", "workerTemplate")
    ]

    assert commands[0] == commands[1]
    assert commands[0][commands[0].index("--host") + 1] == "0.0.0.0"  # noqa: S104 (an argument, not a listener)
    assert "--enable-metrics" in commands[0]
    assert commands[0][-6:] == [
        *("--dist-init-addr", "$(LWS_LEADER_ADDRESS):5000"),
        *("--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)"),
    ]


def test_prefill_and_decode_workers_are_paired() -> None:
    """One ModelServer selects both, distinguishes them by role and pairs them by a group label."""
    config = {"kv-transfer-config": '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'}
    workers = [
        worker(type="prefill", replicas=3, config=config),
        worker(type="decode", replicas=2, config=config),
    ]
    objects = expand(model(split(workers=workers))).objects
    replicas = {
        item["metadata"]["name"]: item["spec"]["replicas"] for item in objects if item["kind"] == "Deployment"
    }

    assert replicas == {"qwen-split-prefill": 6, "qwen-split-decode": 4}
    spec = one(objects, "ModelServer")["spec"]
    assert spec["kvConnector"] == {"type": "nixl"}
    assert spec["workloadSelector"] == {
        "matchLabels": {
            "stowplan.dev/backend": "split",
            "stowplan.dev/group": "qwen-split",
            "stowplan.dev/model": "qwen",
        },
        "pdGroup": {
            "groupKey": "stowplan.dev/group",
            "prefillLabels": {"stowplan.dev/role": "prefill"},
            "decodeLabels": {"stowplan.dev/role": "decode"},
        },
    }


def test_adapters_are_routed_to_the_backends_that_list_them() -> None:
    """Each adapter has a rule, after the rule for the model's own name."""
    law, tax = ({"name": name, "artifactURL": f"hf://example/{name}"} for name in ("law", "tax"))
    objects = expand(model(backend("a", loraAdapters=[law, tax]), backend("b", loraAdapters=[law]))).objects
    spec = one(objects, "ModelRoute")["spec"]

    assert spec["modelName"] == "qwen"
    assert spec["loraAdapters"] == ["law", "tax"]
    assert [
        (rule["modelMatch"]["body"]["model"], [target["modelServerName"] for target in rule["targetModels"]])
        for rule in spec["rules"]
    ] == [("qwen", ["qwen-a", "qwen-b"]), ("law", ["qwen-a", "qwen-b"]), ("tax", ["qwen-a"])]


def test_many_adapters_are_divided_among_several_routes() -> None:
    """A ModelRoute accepts only ten adapters."""
    adapters = [{"name": f"a{place:03}", "artifactURL": f"hf://example/{place}"} for place in range(25)]
    objects = expand(model(backend(loraAdapters=adapters))).objects
    routes = [item for item in objects if item["kind"] == "ModelRoute"]

    assert [item["metadata"]["name"] for item in routes] == ["qwen", "qwen-adapters-2", "qwen-adapters-3"]
    assert [len(item["spec"]["loraAdapters"]) for item in routes] == [10, 10, 5]
    assert [item["spec"].get("modelName") for item in routes] == ["qwen", None, None]


def test_the_modelserver_has_the_served_name_of_the_engine() -> None:
    """The router rewrites requests to the name in the worker's `served-model-name`."""
    served = backend(workers=[worker(config={"served_model_name": "own"})])
    objects = expand(model(served)).objects

    assert one(objects, "ModelServer")["spec"]["model"] == "own"
    words = engine_of(one(objects, "Deployment"))["command"]
    assert words.count("--served-model-name") == 1
    assert words[words.index("--served-model-name") + 1] == "own"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"max_model_len": 8192}, ["--max-model-len", "8192"]),
        ({"enable-prefix-caching": ""}, ["--enable-prefix-caching"]),
        ({"enforce-eager": True}, ["--enforce-eager"]),
        ({"enable-prefix-caching": False}, ["--no-enable-prefix-caching"]),
        ({"gpu-memory-utilization": 0.9}, ["--gpu-memory-utilization", "0.9"]),
        ({"middleware": ["a", "b"]}, ["--middleware", "a", "b"]),
        ({"rope-scaling": {"type": "yarn", "factor": 4}}, ["--rope-scaling", '{"factor":4,"type":"yarn"}']),
        ({"quantization": None}, []),
    ],
)
def test_a_config_entry_becomes_an_argument_of_the_engine(config: Json, words: list[str]) -> None:
    """It has the form that the engine's command line expects."""
    plain, set_ = (
        engine_of(one(expand(model(backend(workers=[worker(config=item)]))).objects, "Deployment"))["command"]
        for item in ({}, config)
    )

    assert Counter(set_) - Counter(plain) == Counter(words)


def test_a_policy_of_a_backend_scales_each_role() -> None:
    """There is one policy, and for each role a binding and an autoscaler with bounds in engines."""
    objects = expand(model(split(**SCALED, autoscalingPolicy=POLICY))).objects
    bounds = {
        item["metadata"]["name"]: (
            item["spec"]["scalingConfiguration"]["minReplicas"],
            item["spec"]["scalingConfiguration"]["maxReplicas"],
        )
        for item in objects
        if item["kind"] == "AutoscalingPolicyBinding"
    }

    assert bounds == {"qwen-split-prefill": (3, 12), "qwen-split-decode": (2, 8)}
    assert one(objects, "AutoscalingPolicy")["metadata"]["name"] == "qwen-split"
    scaler = one(objects, "HorizontalPodAutoscaler", "qwen-split-decode")["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 8)


def test_a_policy_of_the_model_uses_the_cost_per_engine() -> None:
    """A backend's cost is for all engines of a replica; only the ratio between backends matters."""
    twice = backend("a", **SCALED, scalingCost=10, workers=[worker(replicas=2)])
    once = backend("b", **SCALED, scalingCost=10)
    objects = expand(model(twice, once, autoscalingPolicy=POLICY)).objects
    params = one(objects, "AutoscalingPolicyBinding")["spec"]["optimizerConfiguration"]["params"]

    assert [(item["cost"], item["minReplicas"], item["maxReplicas"]) for item in params] == [
        (10, 2, 8),
        (20, 1, 4),
    ]


def test_metrics_are_scraped_from_the_engine_s_port_and_path() -> None:
    """The documented environment variables define both."""
    env = [
        {"name": "RUNTIME_URL", "value": "http://localhost:9000"},
        {"name": "RUNTIME_METRICS_PATH", "value": "/prometheus"},
    ]
    objects = expand(model(backend(**SCALED, env=env, autoscalingPolicy=POLICY))).objects
    target = one(objects, "AutoscalingPolicyBinding")["spec"]["scalingConfiguration"]["target"]

    assert target["metricEndpoint"] == {"uri": "/prometheus", "port": 9000}
    assert one(objects, "ModelServer")["spec"]["workloadPort"]["port"] == 9000
    assert engine_of(one(objects, "Deployment"))["ports"] == [{"name": "http", "containerPort": 9000}]


def test_annotations_of_the_model_are_copied_to_its_bindings() -> None:
    """The record of the writer is not; annotations about Gateways are copied to the routes instead."""
    gateways = {"stowplan.dev/parent-refs": "infra/inference", "stowplan.dev/request-priority": "5"}
    annotations = {"stowplan.dev/paused": "true", "stowplan.dev/written-by": "{}", "other": "x", **gateways}
    value = model(backend(**SCALED, autoscalingPolicy=POLICY), metadata={"annotations": annotations})

    objects = expand(value).objects
    binding, route = one(objects, "AutoscalingPolicyBinding"), one(objects, "ModelRoute")
    assert binding["metadata"]["annotations"] == {"stowplan.dev/paused": "true"}
    assert route["metadata"]["annotations"] == gateways


def test_autoscalers_are_optional() -> None:
    """They are not needed if the controller scales by itself, or KEDA does."""
    value = model(backend(**SCALED, autoscalingPolicy=POLICY))
    kinds = {item["kind"] for item in expand(value, ExpansionSettings(has_autoscalers=False)).objects}

    assert "AutoscalingPolicyBinding" in kinds
    assert "HorizontalPodAutoscaler" not in kinds


def test_objects_of_a_stored_model_have_an_owner_reference() -> None:
    """They are deleted with the Model."""
    value = model(metadata={"uid": "u", "namespace": "chat"})

    for item in expand(value).objects:
        assert item["metadata"]["namespace"] == "chat"
        assert [owner["uid"] for owner in item["metadata"]["ownerReferences"]] == ["u"]


_URIS = st.sampled_from(["hf://a/b", "s3://bucket/x", "pvc://claim", "pvc://claim/deep/path", "hf://a b/c:d"])
_CONFIGS = st.dictionaries(
    st.sampled_from(["port", "model", "served-model-name", "tp", "x_y", "kv-transfer-config"]),
    st.sampled_from(["", "x", 7, 0.5, True, False, None, [], [1, "a"], {"a": [1]}, '{"kv_connector": 3}']),
)


@st.composite
def _models(draw: st.DrawFn) -> Json:
    """Return a valid Model."""
    is_whole = draw(st.booleans())
    backends = []
    for place in range(draw(st.integers(1, 3))):
        low = draw(st.integers(1, 4))
        members: Json = {
            "modelURI": draw(_URIS),
            "minReplicas": low,
            "maxReplicas": low,
            "loraAdapters": [
                {"name": f"adapter-{rank}", "artifactURL": draw(_URIS)}
                for rank in range(draw(st.integers(0, 12)))
            ],
        }
        if is_whole:
            members |= {"scalingCost": draw(st.integers(0, 2**31 - 1)), "maxReplicas": 1000}
        elif draw(st.booleans()):
            members["autoscalingPolicy"] = POLICY
        if uri := draw(st.sampled_from(["", "pvc://cache", "pvc://claim/sub", "hostpath:///mnt/models"])):
            members["cacheURI"] = uri
        make = draw(st.sampled_from([backend, split]))
        value = make(f"b{place}", **members)
        for item in value["workers"]:
            item |= {
                "pods": draw(st.integers(0, 3)),
                "replicas": draw(st.integers(0, 3)),
                "config": draw(_CONFIGS),
            }
        backends.append(value)
    spec: Json = {"autoscalingPolicy": POLICY} if is_whole else {}
    return model(*backends, **spec)


@settings(max_examples=often(60))
@given(value=_models())
def test_any_model_is_expanded_to_valid_objects(value: Json) -> None:
    """Names are unique within a kind, the result is reproducible, and all targets of routes exist."""
    expansion = expand(value)
    names = Counter((item["kind"], item["metadata"]["name"]) for item in expansion.objects)
    servers = {name for kind, name in names if kind == "ModelServer"}
    routed = {
        target["modelServerName"]
        for item in expansion.objects
        if item["kind"] == "ModelRoute"
        for rule in item["spec"]["rules"]
        for target in rule["targetModels"]
    }

    assert expand(value) == expansion
    assert max(names.values(), default=1) == 1
    assert routed == servers
    assert [error for item in expansion.objects for error in errors_of(item)] == []


@pytest.mark.parametrize(
    ("minor", "has_tolerance"), [("30", False), ("32+", False), ("33", True), ("36+", True)]
)
def test_an_autoscaler_has_a_tolerance_if_the_server_supports_it(minor: str, has_tolerance: bool) -> None:
    """An older server would reject the whole object."""
    value = model(backend(**SCALED, autoscalingPolicy=POLICY))
    objects = expand(value, expansion_settings(ModelsConfig(), {"major": "1", "minor": minor})).objects
    behavior = one(objects, "HorizontalPodAutoscaler")["spec"]["behavior"]

    assert all(("tolerance" in rules) is has_tolerance for rules in behavior.values())
    assert all(rules["stabilizationWindowSeconds"] == 0 for rules in behavior.values())
