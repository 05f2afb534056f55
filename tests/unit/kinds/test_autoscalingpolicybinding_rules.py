"""Validation of an AutoscalingPolicyBinding: targets, bounds and metric endpoints."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st
from support.bindings import (
    DEPLOYMENT,
    POLICY,
    SCALING_REF,
    of_kind,
    optimizer,
    param,
    reference,
    scaling,
    target,
)

from apiserver.kinds.core.names import SUBDOMAIN_SAYS
from apiserver.kinds.kthena.autoscalingpolicybinding import AutoscalingPolicyBinding
from apiserver.schema.json import Json
from apiserver.schema.model import node_of
from apiserver.schema.validation import validate

ENDPOINT = "spec.scalingConfiguration.target.metricEndpoint"
ACCEPTED = {
    "a ModelInfer by its name": scaling(),
    "a ModelInfer by its kind": reference(kind="ModelInfer", name="llama"),
    "a kind with its apiVersion": reference(**DEPLOYMENT),
    "equal bounds": scaling(minReplicas=4),
    "scale to zero": scaling(minReplicas=0),
    "several targets": optimizer(param("llama-h100"), param("llama-a100", cost=0, minReplicas=0)),
    "one name in two kinds": optimizer(param("llama"), of_kind(**DEPLOYMENT)),
    "an endpoint": target(metricEndpoint={"uri": "/v1/metrics.txt", "port": 8000}),
    "an endpoint at the root": target(metricEndpoint={"uri": "/"}),
    "an endpoint that ends with a slash": target(metricEndpoint={"uri": "/metrics/"}),
    "labels": target(additionalMatchLabels={"modelinfer.volcano.sh/role": "leader", "empty": ""}),
    "an expansion rate of 0": optimizer(param("llama"), costExpansionRatePercent=0),
}

NOT_A_PATH = "must be an absolute path such as /metrics: letters, digits and -._~ between single slashes"
BOTH = "may not be set together with `scalingConfiguration`"
REFUSED = {
    "nothing": (
        {},
        [
            "spec.policyRef: Required value",
            "spec.scalingConfiguration: Required value: exactly one of `scalingConfiguration` and"
            " `optimizerConfiguration` must be set",
        ],
    ),
    "both configurations": (
        scaling() | optimizer(param("llama-a100")),
        [f"spec.optimizerConfiguration: Forbidden: {BOTH}"],
    ),
    "a policy without a name": (
        scaling() | {"policyRef": {"name": ""}},
        [f'spec.policyRef.name: Invalid value: "": must be {SUBDOMAIN_SAYS}'],
    ),
    "an empty configuration": (
        POLICY | {"scalingConfiguration": {}},
        [
            f"spec.scalingConfiguration.{name}: Required value"
            for name in ("target", "minReplicas", "maxReplicas")
        ],
    ),
    "a minimum above the maximum": (
        scaling(minReplicas=5),
        [
            "spec.scalingConfiguration.minReplicas: Invalid value: 5: must be less than or equal to"
            " `maxReplicas`"
        ],
    ),
    "a minimum above the maximum for one of several targets": (
        optimizer(param("a"), param("b", minReplicas=5)),
        [
            "spec.optimizerConfiguration.params[1].minReplicas: Invalid value: 5: must be less than or equal"
            " to `maxReplicas`"
        ],
    ),
    "a maximum of 0 replicas": (
        scaling(minReplicas=0, maxReplicas=0),
        ["spec.scalingConfiguration.maxReplicas: Invalid value: 0: must be greater than or equal to 1"],
    ),
    "too many replicas": (
        scaling(maxReplicas=1_000_001),
        [
            "spec.scalingConfiguration.maxReplicas: Invalid value: 1000001: must be less than or equal to"
            " 1000000"
        ],
    ),
    "an optimizer without targets": (
        POLICY | {"optimizerConfiguration": {}},
        ["spec.optimizerConfiguration.params: Required value"],
    ),
    "an optimizer with an empty list of targets": (
        optimizer(),
        ["spec.optimizerConfiguration.params: Invalid value: []: must have at least 1 item"],
    ),
    "a cost below zero": (
        optimizer(param("llama", cost=-1)),
        ["spec.optimizerConfiguration.params[0].cost: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "one target twice": (
        optimizer(param("a"), param("b"), param("a", cost=5)),
        ['spec.optimizerConfiguration.params[2].target.targetRef: Duplicate value: {"name":"a"}'],
    ),
    "one target twice, once with its defaults written out": (
        optimizer(param("a"), of_kind(apiVersion="workload.volcano.sh/v1", kind="ModelInfer", name="a")),
        [
            "spec.optimizerConfiguration.params[1].target.targetRef: Duplicate value:"
            ' {"apiVersion":"workload.volcano.sh/v1","kind":"ModelInfer","name":"a"}'
        ],
    ),
    "a target without a name": (
        reference(),
        [f"{SCALING_REF}.name: Required value: must be set and not empty"],
    ),
    "a target with an empty name": (
        reference(name=""),
        [f"{SCALING_REF}.name: Required value: must be set and not empty"],
    ),
    "a kind without its apiVersion": (
        reference(kind="Deployment", name="llama"),
        [f"{SCALING_REF}.apiVersion: Required value: must be apps/v1 for a Deployment"],
    ),
    "a kind of Kthena without its apiVersion": (
        reference(kind="ModelServing", name="llama"),
        [
            f"{SCALING_REF}.apiVersion: Required value: must be workload.serving.volcano.sh/v1alpha1 for a"
            " ModelServing"
        ],
    ),
    "an unknown kind without its apiVersion": (
        reference(kind="Rollout", name="llama"),
        [
            f"{SCALING_REF}.apiVersion: Required value: must be set to the group and version of the kind,"
            " such as apps/v1 for a Deployment or workload.serving.volcano.sh/v1alpha1 for a ModelServing"
        ],
    ),
    "a name that is a path": (
        reference(name="../../other/deployments/x"),
        [f'{SCALING_REF}.name: Invalid value: "../../other/deployments/x": must be {SUBDOMAIN_SAYS}'],
    ),
    "an apiVersion without a kind": (
        reference(apiVersion="apps/v1", name="llama"),
        [f"{SCALING_REF}.kind: Required value: must be set together with `apiVersion`"],
    ),
    "too many labels": (
        target(additionalMatchLabels={f"label-{number}": "" for number in range(11)}),
        ["spec.scalingConfiguration.target.additionalMatchLabels: Too many: 11: must have at most 10 items"],
    ),
    "a port above the maximum": (
        target(metricEndpoint={"port": 65536}),
        [f"{ENDPOINT}.port: Invalid value: 65536: must be less than or equal to 65535"],
    ),
}

NOT_PATHS = {
    "nothing": "",
    "no leading slash": "metrics",
    "another host": "//elsewhere/metrics",
    "a whole URL": "http://elsewhere/metrics",
    "an empty segment": "/a//b",
    "a segment of two dots": "/a/../b",
    "a segment of two dots at the end": "/..",
    "a segment of one dot": "/a/./b",
    "a query": "/metrics?to=elsewhere",
    "a fragment": "/metrics#a",
    "a percent escape": "/%2e%2e/metrics",
    "a space": "/my metrics",
    "a line break": "/metrics\n",
    "a backslash": "/\\elsewhere",
    "credentials": "/@elsewhere",
    "a letter outside ASCII": "/métriques",
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_binding_is_accepted(spec: Json) -> None:
    """Bounds are inclusive."""
    assert validate(AutoscalingPolicyBinding, {"spec": spec}) == []


@pytest.mark.parametrize(("spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(spec: Json, want: list[str]) -> None:
    """The list of errors is complete."""
    assert [str(error) for error in validate(AutoscalingPolicyBinding, {"spec": spec})] == want


@pytest.mark.parametrize("uri", NOT_PATHS.values(), ids=NOT_PATHS.keys())
def test_an_endpoint_that_could_change_the_request_is_rejected(uri: str) -> None:
    """A valid path contains nothing that could change host, path or query of the request."""
    (error,) = validate(AutoscalingPolicyBinding, {"spec": target(metricEndpoint={"uri": uri})})

    assert str(error.path) == f"{ENDPOINT}.uri"
    assert error.body.endswith(NOT_A_PATH)


@given(uri=st.text(alphabet="/.%?#a~", max_size=12))
def test_an_accepted_path_needs_no_normalization(uri: str) -> None:
    """It contains nothing that a client would resolve, unescape or split off."""
    spec = node_of(AutoscalingPolicyBinding).property("spec")
    scaling_node = spec.node.property("scalingConfiguration") if spec else None
    target_node = scaling_node.node.property("target") if scaling_node else None
    endpoint = target_node.node.property("metricEndpoint") if target_node else None
    prop = endpoint.node.property("uri") if endpoint else None
    assert prop is not None
    if re2.search(prop.node.keywords["pattern"], uri):
        segments = uri[1:].removesuffix("/").split("/")
        assert uri.startswith("/")
        assert not set(uri) & set("%?#")
        assert segments == [""] or all(segment.strip(".") for segment in segments)
