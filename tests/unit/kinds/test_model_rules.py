"""Validation of new and updated Models, and their defaults."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.kthena.models import MODEL
from apiserver.schema.defaulting import complete
from apiserver.schema.json import Json

VERSION = MODEL.storage_version
WORKER = {"image": "vllm:1", "replicas": 1, "pods": 1}
BACKEND = {
    "name": "l4",
    "type": "vLLM",
    "modelURI": "hf://meta/llama",
    "minReplicas": 2,
    "maxReplicas": 2,
    "workers": [WORKER],
}
POLICY = {"metrics": [{"metricName": "waiting", "targetValue": 4}]}
SCALED = BACKEND | {"maxReplicas": 4, "scalingCost": 5}
"""A backend that is valid with a policy of the model."""


def model(*backends: Json, **spec: Any) -> Json:
    """Return a model of some backends, or of one that runs two replicas."""
    value = {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "llama"},
        "spec": {"backends": list(backends or (BACKEND,)), **spec},
    }
    return copy.deepcopy(value)


def workers(*types: str, of: str) -> Json:
    """Return a model of one backend of a type with some types of workers."""
    return model(BACKEND | {"type": of, "workers": [WORKER | {"type": type_} for type_ in types]})


def adapters(*names: str, **spec: Any) -> Json:
    """Return a model of one backend with some adapters."""
    found = [{"name": name, "artifactURL": f"hf://example/{name}"} for name in names]
    return model(BACKEND | {"loraAdapters": found}, **spec)


def errors_of(value: Json, old: Json | None = None) -> list[str]:
    """Return every error of an object with its defaults filled in."""
    return [str(error) for error in complete_and_judge(MODEL, VERSION, copy.deepcopy(value), old).errors]


ACCEPTED = {
    "a fixed number of replicas": model(),
    "two backends of a fixed number": model(BACKEND, BACKEND | {"name": "h100"}),
    "a cost of 0 without a policy, as clients in Go write it": model(BACKEND | {"scalingCost": 0}),
    "a policy of the backend": model(BACKEND | {"maxReplicas": 4, "autoscalingPolicy": POLICY}),
    "a policy of the model": model(SCALED, autoscalingPolicy=POLICY),
    "a policy of the model for a backend with a cost of 0": model(
        SCALED | {"scalingCost": 0}, autoscalingPolicy=POLICY
    ),
    "a minimum of 0 beside a backend with a higher one": model(
        SCALED | {"minReplicas": 0}, SCALED | {"name": "h100"}, autoscalingPolicy=POLICY
    ),
    "a grace period of half an hour": model(
        SCALED | {"scaleToZeroGracePeriod": "30m"}, autoscalingPolicy=POLICY
    ),
    "the maximum number of replicas in total": model(
        SCALED | {"maxReplicas": 999_999},
        SCALED | {"name": "h100", "minReplicas": 1, "maxReplicas": 1},
        autoscalingPolicy=POLICY,
    ),
    "one server of SGLang": workers("server", of="SGLang"),
    "one server of MindIE": workers("server", of="MindIE"),
    "prefill and decode of vLLM": workers("prefill", "decode", of="vLLMDisaggregated"),
    "all worker types of MindIE": workers(
        "prefill", "decode", "controller", "coordinator", of="MindIEDisaggregated"
    ),
    "no image": model(BACKEND | {"workers": [{}]}),
    "an empty image": model(BACKEND | {"workers": [{"image": ""}]}),
    "a path with dots in its names": model(BACKEND | {"modelURI": "pvc://claim/..llama/a..b"}),
    "two dots in a bucket, where names are free": model(BACKEND | {"modelURI": "s3://bucket/../llama"}),
    "adapters of different names": adapters("a", "b"),
    "any config": model(BACKEND | {"workers": [WORKER | {"config": ["free", {"JSON": None}]}]}),
    "a worker with zero replicas and pods": model(
        BACKEND | {"workers": [WORKER | {"replicas": 0, "pods": 0}]}
    ),
}

WHOLE = "when the backend's `type` is 'vLLM' or 'SGLang' or 'MindIE'"
PARTED = "when the backend's `type` is 'vLLMDisaggregated' or 'MindIEDisaggregated'"
FIRST = "spec.backends[0]"
NO_POLICY = "Forbidden: may not be set when `spec.autoscalingPolicy` is not set"

REFUSED = {
    "no backends": ({"spec": {}}, ["spec.backends: Required value"]),
    "an empty backend": (
        model({}),
        [
            f"{FIRST}.{name}: Required value"
            for name in ("name", "type", "modelURI", "minReplicas", "maxReplicas", "workers")
        ],
    ),
    "a minimum above the maximum": (
        model(BACKEND | {"minReplicas": 3}),
        [f"{FIRST}.minReplicas: Invalid value: 3: must be less than or equal to `maxReplicas`"],
    ),
    "different bounds without a policy": (
        model(BACKEND | {"minReplicas": 0}),
        [
            f"{FIRST}.minReplicas: Invalid value: 0: must be equal to `maxReplicas` when neither"
            " `autoscalingPolicy` nor `spec.autoscalingPolicy` is set"
        ],
    ),
    "different bounds of a backend without a policy beside one with a policy": (
        model(
            BACKEND | {"maxReplicas": 3, "autoscalingPolicy": POLICY},
            BACKEND | {"name": "h100", "maxReplicas": 3},
        ),
        [
            "spec.backends[1].minReplicas: Invalid value: 2: must be equal to `maxReplicas` when neither"
            " `autoscalingPolicy` nor `spec.autoscalingPolicy` is set"
        ],
    ),
    "a policy of a backend with a minimum of 0": (
        model(BACKEND | {"minReplicas": 0, "autoscalingPolicy": POLICY}),
        [
            f"{FIRST}.minReplicas: Invalid value: 0: must be greater than or equal to 1 when"
            " `autoscalingPolicy` is set"
        ],
    ),
    "a cost without a policy": (model(BACKEND | {"scalingCost": 5}), [f"{FIRST}.scalingCost: {NO_POLICY}"]),
    "a grace period without a policy": (
        model(BACKEND | {"scaleToZeroGracePeriod": "1m"}),
        [f"{FIRST}.scaleToZeroGracePeriod: {NO_POLICY}"],
    ),
    "two policies": (
        model(SCALED | {"autoscalingPolicy": POLICY}, autoscalingPolicy=POLICY),
        [f"{FIRST}.autoscalingPolicy: Forbidden: may not be set when `spec.autoscalingPolicy` is set"],
    ),
    "a policy of the model without a cost": (
        model(BACKEND, autoscalingPolicy=POLICY),
        [f"{FIRST}.scalingCost: Required value: must be set when `spec.autoscalingPolicy` is set"],
    ),
    "more replicas in total than allowed": (
        model(
            SCALED | {"maxReplicas": 999_999},
            SCALED | {"name": "h100", "maxReplicas": 2},
            autoscalingPolicy=POLICY,
        ),
        [
            "spec.backends: Invalid value: 1000001: the sum of `maxReplicas` must be less than or equal to"
            " 1000000"
        ],
    ),
    "a grace period beyond half an hour": (
        model(SCALED | {"scaleToZeroGracePeriod": "30m1s"}, autoscalingPolicy=POLICY),
        [f'{FIRST}.scaleToZeroGracePeriod: Invalid value: "30m1s": must be between 0s and 30m'],
    ),
    "a negative grace period": (
        model(SCALED | {"scaleToZeroGracePeriod": "-1s"}, autoscalingPolicy=POLICY),
        [
            f'{FIRST}.scaleToZeroGracePeriod: Invalid value: "-1s": must be a length of time such as 15s,'
            " 1m30s or 100ms"
        ],
    ),
    "an embedded policy with one metric twice": (
        model(SCALED, autoscalingPolicy={"metrics": POLICY["metrics"] * 2}),
        ['spec.autoscalingPolicy.metrics[1]: Duplicate value: {"metricName":"waiting"}'],
    ),
    "a window of an embedded policy beyond half an hour": (
        model(
            BACKEND
            | {"autoscalingPolicy": POLICY | {"behavior": {"scaleDown": {"stabilizationWindow": "31m"}}}}
        ),
        [
            f"{FIRST}.autoscalingPolicy.behavior.scaleDown.stabilizationWindow: Invalid value:"
            ' "31m": must be between 0s and 30m'
        ],
    ),
    "two workers of one engine": (
        workers("server", "server", of="vLLM"),
        [f"{FIRST}.workers: Invalid value: 2: must have exactly one item {WHOLE}"],
    ),
    "a prefill worker of an aggregated engine": (
        workers("prefill", of="SGLang"),
        [f"{FIRST}.workers[0].type: Invalid value: \"prefill\": must be 'server' {WHOLE}"],
    ),
    "a server worker of a disaggregated engine": (
        workers("server", of="vLLMDisaggregated"),
        [
            f"{FIRST}.workers: Required value: must have an item with `type` 'prefill' {PARTED}",
            f"{FIRST}.workers: Required value: must have an item with `type` 'decode' {PARTED}",
            f"{FIRST}.workers[0].type: Invalid value: \"server\": must be 'prefill' or 'decode' when the"
            " backend's `type` is 'vLLMDisaggregated'",
        ],
    ),
    "a controller of vLLM": (
        workers("prefill", "decode", "controller", of="vLLMDisaggregated"),
        [
            f"{FIRST}.workers[2].type: Invalid value: \"controller\": must be 'prefill' or 'decode' when the"
            " backend's `type` is 'vLLMDisaggregated'"
        ],
    ),
    "MindIE without decode": (
        workers("prefill", "server", of="MindIEDisaggregated"),
        [
            f"{FIRST}.workers: Required value: must have an item with `type` 'decode' {PARTED}",
            f"{FIRST}.workers[1].type: Invalid value: \"server\": must be 'prefill' or 'decode' or"
            " 'controller' or 'coordinator' when the backend's `type` is 'MindIEDisaggregated'",
        ],
    ),
    "a tab in an image": (
        model(BACKEND | {"workers": [{"image": "vllm\t:1"}]}),
        [f'{FIRST}.workers[0].image: Invalid value: "vllm\\t:1": must not contain whitespace'],
    ),
    "an adapter with the name of the object": (
        adapters("other", "llama"),
        [f'{FIRST}.loraAdapters[1].name: Invalid value: "llama": must differ from the name of the model'],
    ),
    "an adapter with the name of the model": (
        adapters("llama-3", name="llama-3"),
        [f'{FIRST}.loraAdapters[0].name: Invalid value: "llama-3": must differ from the name of the model'],
    ),
    "one adapter twice": (adapters("a", "a"), [f'{FIRST}.loraAdapters[1]: Duplicate value: {{"name":"a"}}']),
    "a thousand adapters": (
        adapters(*(f"a{number}" for number in range(1000))),
        [f"{FIRST}.loraAdapters: Too many: 1000: must have at most 128 items"],
    ),
    "a path out of a volume": (
        model(BACKEND | {"modelURI": "pvc://claim/.."}),
        [f"{FIRST}.modelURI: Invalid value: \"pvc://claim/..\": must not contain '..' as a part of the path"],
    ),
    "a path out of a folder": (
        model(BACKEND | {"cacheURI": "hostpath:///a/../b"}),
        [
            f"{FIRST}.cacheURI: Invalid value: \"hostpath:///a/../b\": must not contain '..' as a part of"
            " the path"
        ],
    ),
}


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_model_is_accepted(value: Json) -> None:
    """There are no errors."""
    assert errors_of(value) == []


@pytest.mark.parametrize(("value", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(value: Json, want: list[str]) -> None:
    """The list of errors is complete, in the order of the fields."""
    assert errors_of(value) == want


VARIABLE = {"name": "A", "value": "1"}
OTHER = {"name": "B", "value": "2"}
SOURCE = {"secretRef": {"name": "s"}}
STAYS = "field is immutable: to change it, delete the object and create it anew"

KEPT: dict[str, tuple[Json, Json]] = {
    "nothing": ({}, {}),
    "an empty list instead of none": ({"env": []}, {}),
    "variables in another order": ({"env": [VARIABLE, OTHER]}, {"env": [OTHER, VARIABLE]}),
    "another field": ({"env": [VARIABLE], "routeWeight": 1}, {"env": [VARIABLE], "routeWeight": 2}),
}

CHANGED: dict[str, tuple[Json, Json, str]] = {
    "a variable is added": (
        {},
        {"env": [VARIABLE]},
        f'env: Invalid value: [{{"name":"A","value":"1"}}]: {STAYS}',
    ),
    "a variable is changed": (
        {"env": [VARIABLE]},
        {"env": [VARIABLE | {"value": "2"}]},
        f'env: Invalid value: [{{"name":"A","value":"2"}}]: {STAYS}',
    ),
    "a source is removed": ({"envFrom": [SOURCE]}, {"envFrom": []}, f"envFrom: Invalid value: []: {STAYS}"),
}


@pytest.mark.parametrize(("before", "after"), KEPT.values(), ids=KEPT.keys())
def test_an_update_that_leaves_the_variables_unchanged_is_accepted(before: Json, after: Json) -> None:
    """Their order does not matter."""
    assert errors_of(model(BACKEND | after), model(BACKEND | before)) == []


@pytest.mark.parametrize(("before", "after", "want"), CHANGED.values(), ids=CHANGED.keys())
def test_an_update_that_changes_the_variables_is_rejected(before: Json, after: Json, want: str) -> None:
    """The reference page says that they cannot be updated."""
    assert errors_of(model(BACKEND | after), model(BACKEND | before)) == [f"{FIRST}.{want}"]


def test_changed_variables_are_an_error_beside_those_of_the_schema() -> None:
    """All errors are listed."""
    (before, after, want) = CHANGED["a variable is changed"]

    found = errors_of(model(BACKEND | after, owner=7), model(BACKEND | before))

    assert found == ["spec.owner: Invalid value: 7: must be a string", f"{FIRST}.{want}"]


def test_a_new_backend_may_have_other_variables() -> None:
    """Old and new backends are matched by name, not by position."""
    old = model(BACKEND | {"env": [VARIABLE]})
    new = model(BACKEND | {"name": "h100", "env": [OTHER]}, BACKEND | {"env": [VARIABLE]})

    assert errors_of(new, old) == []


def test_a_policy_of_the_model_gets_defaults_with_warnings() -> None:
    """Grace period, expansion rate and behavior get defaults, each with a warning."""
    value = model(SCALED, SCALED | {"name": "h100", "scaleToZeroGracePeriod": "1m"}, autoscalingPolicy=POLICY)

    done = complete(VERSION, value)

    first, second = value["spec"]["backends"]
    assert first["scaleToZeroGracePeriod"] == "30s"
    assert second["scaleToZeroGracePeriod"] == "1m"
    assert value["spec"]["costExpansionRatePercent"] == 200
    assert value["spec"]["autoscalingPolicy"]["behavior"]["scaleDown"]["stabilizationWindow"] == "5m"
    assert done.warnings[:2] == [
        "spec.backends[0].scaleToZeroGracePeriod: filled in with 30s",
        "spec.costExpansionRatePercent: filled in with 200",
    ]
    assert len(done.warnings) == 3


def test_without_a_policy_only_defaults_of_the_schema_are_set() -> None:
    """Weights and types get defaults, without a warning."""
    value = model(BACKEND)

    done = complete(VERSION, value)

    backend = value["spec"]["backends"][0]
    assert (backend["routeWeight"], backend["workers"][0]["type"]) == (100, "server")
    assert "costExpansionRatePercent" not in value["spec"]
    assert done.warnings == []


def test_a_policy_of_a_backend_gets_a_default_behavior() -> None:
    """The windows are those of a separate policy; the warning has the path of the backend's policy."""
    value = model(BACKEND | {"autoscalingPolicy": POLICY})

    done = complete(VERSION, value)

    behavior = value["spec"]["backends"][0]["autoscalingPolicy"]["behavior"]
    assert behavior["scaleUp"]["stablePolicy"]["stabilizationWindow"] == "0s"
    assert [warning.partition(":")[0] for warning in done.warnings] == [
        "spec.backends[0].autoscalingPolicy.behavior"
    ]


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_defaulting_twice_changes_nothing(value: Json) -> None:
    """Fields that are set are unchanged."""
    once = copy.deepcopy(value)
    complete(VERSION, once)

    assert complete(VERSION, copy.deepcopy(once)).additions == []
