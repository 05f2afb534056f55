"""Broken clusters and what `stowplan doctor` finds in them: the check, whether it blocks, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.doctor_evidence import (
    SYSTEM,
    api_service,
    certificate,
    cluster,
    gke_node,
    late,
    multiplying,
    old_definition,
    process,
    quota_failure,
    slow,
    tag,
    webhook,
)
from support.live_objects import NOW, decided, live
from support.manifests import Manifest, l4_node, variant

from apiserver.cluster.heartbeat import Heartbeat
from apiserver.cluster.resource import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from controller.commands.doctor.evidence import Evidence, PrometheusState, _proxy_path
from controller.commands.doctor.rights import RIGHTS, permissions_of
from controller.commands.doctor.run import diagnose
from controller.commands.upgrade.report import Verdict
from controller.engines.exposition import SERIES, Meaning

Change = Callable[[Evidence], Evidence]


def with_processes(*items: Manifest) -> Change:
    """Return a change that replaces our Deployments, or adds those of others."""
    names = {item["metadata"]["name"] for item in items}

    def change(seen: Evidence) -> Evidence:
        kept = [item for item in seen.live.of(DEPLOYMENTS) if item["metadata"]["name"] not in names]
        objects = {**seen.live.objects, DEPLOYMENTS: [*kept, *items]}
        return replace(seen, live=replace(seen.live, objects=objects))

    return change


def of_live(**members: Any) -> Change:
    """Return a change of what was read for planning."""
    return lambda seen: replace(seen, live=replace(seen.live, **members))


def with_objects(objects: Mapping[Resource, list[Manifest]]) -> Change:
    """Return a change of objects."""
    return lambda seen: replace(
        seen, live=replace(seen.live, objects={**seen.live.objects, **live(objects).objects})
    )


def without(resource: Resource) -> Change:
    """Return a change without a resource."""
    return lambda seen: replace(
        seen,
        live=replace(
            seen.live, objects={name: items for name, items in seen.live.objects.items() if name != resource}
        ),
    )


def of(**members: Any) -> Change:
    """Return a change of other evidence."""
    return lambda seen: replace(seen, **members)


def both(*changes: Change) -> Change:
    """Return several changes together."""

    def change(seen: Evidence) -> Evidence:
        for each in changes:
            seen = each(seen)
        return seen

    return change


SERIES_NAMES = {named.name: 3 for named in SERIES if named.name.startswith("vllm:")}
WITHOUT_HISTOGRAMS = {
    named.name: 3
    for named in SERIES
    if named.name.startswith("vllm:")
    and named.meaning not in (Meaning.FIRST_TOKEN_TIMES, Meaning.TOKEN_TIMES)
}
URL = "http://prometheus.monitoring.svc:9090"
CLASSES: Manifest = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": SYSTEM, "name": "service-classes-config", "resourceVersion": "1"},
    "data": {
        "p.yaml": "{name: P, priority: 1, data: [{model: meta/llama-3.1-8b, slo-ttft: 2000, slo-tpot: 80}]}"
    },
}
QUOTA = "insufficient quota to match these scopes"
QUOTAS = next(item for item in RIGHTS if item.resources == "resourcequotas")
NOT_INSTALLED = of(configurations=(), definitions={}, admission=("", ""))
PENDING_POD: Manifest = {
    "metadata": {"name": "p", "labels": {"app.kubernetes.io/component": "webhooks"}},
    "status": {
        "containerStatuses": [
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
        ]
    },
}

BROKEN: dict[str, tuple[Change, str, Verdict, str, str]] = {
    "an old API server": (
        of(version={"gitVersion": "v1.28.3"}), "kubernetes", Verdict.PROBLEM, "older than 1.30", "upgrade",
    ),
    "no tolerance in autoscalers": (
        of(version={"gitVersion": "v1.32.1-gke.5"}), "kubernetes", Verdict.NOTE, "tolerance", "feature gate",
    ),
    "a user who may not install": (
        both(NOT_INSTALLED, of(missing=("create clusterroles.rbac.authorization.k8s.io",))),
        "permissions", Verdict.PROBLEM, "not allowed to create clusterroles", "cluster-admin",
    ),
    "KEDA answers for external metrics before an installation": (
        both(NOT_INSTALLED, of_live(api_services=(api_service("keda-operator-metrics-apiserver"),))),
        "external metrics", Verdict.NOTE, "keda/keda-operator-metrics-apiserver", "Clusters with KEDA",
    ),
    "KEDA answers for external metrics afterwards": (
        of_live(api_services=(api_service("keda-operator-metrics-apiserver"),)),
        "external metrics", Verdict.NOTE, "get no decision", "Clusters with KEDA",
    ),
    "no API of external metrics": (
        of_live(api_services=()), "external metrics", Verdict.PROBLEM, "does not exist", "kubectl describe",
    ),
    "an unavailable API of external metrics": (
        of_live(api_services=(api_service(available="False"),)),
        "external metrics", Verdict.PROBLEM, "no endpoints", "kubectl describe apiservice",
    ),
    "the definition of an earlier release": (
        of(definitions={VARIANT_AUTOSCALING.crd_name: old_definition()}),
        "definitions", Verdict.PROBLEM, "serves v1alpha1 only", "stowplan upgrade",
    ),
    "no definition": (
        of(definitions={}), "definitions", Verdict.PROBLEM, "not installed", "docs/installing.md",
    ),
    "a firewall of GKE before the webhooks": (
        both(
            with_objects({NODES: [gke_node()]}),
            of(admission=("unreached", 'failed calling webhook "x": context deadline exceeded')),
        ),
        "webhooks", Verdict.PROBLEM, "does not reach admission", "gcloud compute firewall-rules",
    ),
    "webhooks that refuse connections": (
        of(admission=("unreached", 'failed calling webhook "x": connection refused')),
        "webhooks", Verdict.PROBLEM, "does not reach admission", "kubectl -n stowplan-system get pods",
    ),
    "a user who may not create variants": (
        of(admission=("forbidden", "no")), "webhooks", Verdict.NOTE, "not tried", "as a user who may create",
    ),
    "webhooks without an authority": (
        of(configurations=(webhook(""),)),
        "certificates", Verdict.PROBLEM, "no caBundle", "stowplan-controller",
    ),
    "an expired authority": (
        of(configurations=(webhook(certificate(NOW - timedelta(days=1))),)),
        "certificates", Verdict.PROBLEM, "expired on 2025-12-31", "stowplan-controller",
    ),
    "a certificate that expires soon": (
        of(secrets=({
            "metadata": {"name": "stowplan-webhooks-certificate"},
            "data": {"tls.crt": certificate(NOW + timedelta(days=2))},
        },)),
        "certificates",
        Verdict.NOTE, "Secret stowplan-webhooks-certificate expires on", "stowplan-controller",
    ),
    "an image that cannot be pulled": (
        both(with_processes(process("webhooks", ready=0)), of(pods=(PENDING_POD,))),
        "processes", Verdict.PROBLEM, "ImagePullBackOff no such image", "component=webhooks",
    ),
    "GKE without a quota for critical pods": (
        with_processes(
            process("controller", ready=0, conditions=quota_failure(f"{QUOTA}: []"))
        ),
        "processes", Verdict.PROBLEM, "within a ResourceQuota", "resource-quota.yaml",
    ),
    "OpenShift's constraint on user IDs": (
        with_processes(
            process("controller", ready=0, conditions=quota_failure("any security context constraint"))
        ),
        "processes", Verdict.PROBLEM, "security context constraint", "OpenShift",
    ),
    "a controller that does not decide": (
        of_live(heartbeat=Heartbeat(time=NOW - timedelta(hours=1))),
        "processes", Verdict.PROBLEM, "3600 s ago", "logs deploy/stowplan-controller",
    ),
    "processes of different releases": (
        with_processes(process("webhooks", image="registry/stowplan:0.0.9@sha256:00")),
        "versions", Verdict.PROBLEM, "stowplan-webhooks 0.0.9", "one release",
    ),
    "another release than this command": (
        with_processes(*(process(name, image="s:9.9.9") for name in ("webhooks", "controller", "apiserver"))),
        "versions", Verdict.NOTE, "the cluster runs 9.9.9", "of that release",
    ),
    "llm-d's own autoscaler": (
        with_processes(tag("workload-variant-autoscaler")),
        "rivals", Verdict.PROBLEM, "llm-d's own autoscaler", "--replicas=0",
    ),
    "Kthena's controllers": (
        with_processes(tag("kthena-controller-manager")),
        "rivals", Verdict.NOTE, "is Kthena's", "kthena-serving",
    ),
    "a lease of llm-d's own autoscaler": (
        of(leases=({
            "metadata": {"namespace": "wva", "name": "72dd1cf1.llm-d.ai"},
            "spec": {
                "holderIdentity": "wva-1", "renewTime": "2026-01-01T11:59:58Z", "leaseDurationSeconds": 15,
            },
        },)),
        "rivals", Verdict.PROBLEM, "wva-1 holds the lease", "kubectl -n wva get pods",
    ),
    "OpenShift before an installation": (
        both(NOT_INSTALLED, of(groups=frozenset({"security.openshift.io"}))),
        "platform", Verdict.NOTE, "OpenShift", "docs/platforms.md",
    ),
    "an invalid configuration": (
        of(config=None, config_problems=("planning.intervalSeconds: must be at least 1",)),
        "settings", Verdict.PROBLEM, "planning.intervalSeconds", "ConfigMap",
    ),
    "nodes without a label of their type": (
        with_objects({NODES: [l4_node("n1"), l4_node("bare") | {"metadata": {"name": "bare"}}]}),
        "nodes", Verdict.NOTE, "1 node with accelerators of no known type: bare", "kubectl label node",
    ),
    "no accelerators at all": (
        with_objects({NODES: []}), "nodes", Verdict.NOTE, "no node has", "device plugin",
    ),
    "an autoscaler that multiplies the decision": (
        with_objects({HORIZONTAL_POD_AUTOSCALERS: [multiplying()]}),
        "autoscalers", Verdict.PROBLEM, "ns/chat", "stowplan explain va/chat -n ns",
    ),
    "an autoscaler with the default window and tolerance": (
        with_objects({HORIZONTAL_POD_AUTOSCALERS: [slow()]}),
        "autoscalers", Verdict.NOTE, "scales down 300 s late", "kubectl -n ns edit hpa chat",
    ),
    "an autoscaler that scales up late": (
        with_objects({HORIZONTAL_POD_AUTOSCALERS: [late()]}),
        "autoscalers", Verdict.NOTE, "scales up 120 s late", "kubectl -n ns edit hpa chat",
    ),
    "KEDA whose ScaledObjects may not be read": (
        both(of(groups=frozenset({"keda.sh"})), of_live(forbidden=(SCALED_OBJECTS,))),
        "keda", Verdict.NOTE, "may not be read", "grant list and watch",
    ),
    "an unreachable Prometheus": (
        of(prometheus=PrometheusState(url=URL, problem="no endpoints available")),
        "prometheus", Verdict.PROBLEM, "no endpoints available", "curl",
    ),
    "a Prometheus outside of the cluster": (
        of(prometheus=PrometheusState(url="https://prom.example", is_asked=False)),
        "prometheus", Verdict.NOTE, "not asked", "curl",
    ),
    "a Prometheus without engines": (
        of(prometheus=PrometheusState(url=URL)),
        "prometheus", Verdict.PROBLEM, "no series", "scrape the engines",
    ),
    "engines without histograms": (
        of(prometheus=PrometheusState(url=URL, engines=WITHOUT_HISTOGRAMS)),
        "prometheus", Verdict.NOTE, "have no histogram of requests by time to first token", "relabelling",
    ),
    "engines without histograms that the controller scrapes itself": (
        of_live(settings=(CLASSES,)),
        "engines", Verdict.NOTE, "requests of ns/chat are not counted", "profile",
    ),
    "a variant whose engines are silent": (
        with_objects({VARIANT_AUTOSCALINGS: [decided(variant("chat"), "False", "MetricsUnavailable")]}),
        "objects", Verdict.PROBLEM, "MetricsUnavailable", "stowplan explain va/chat -n ns",
    ),
    "a user who may not review permissions": (
        of(lacking=None), "permissions", Verdict.NOTE, "may not create subjectaccessreviews", "clusterrole",
    ),
    "a user who may not list webhook configurations": (
        of(configurations=None), "installation", Verdict.NOTE, "may not list mutatingwebhook", "clusterrole",
    ),
    "a user who may not list definitions": (
        of(definitions=None), "definitions", Verdict.NOTE, "not checked", "clusterrole",
    ),
    "a user who may not list Secrets": (
        of(secrets=None), "certificates", Verdict.NOTE, "may not list secrets", "clusterrole",
    ),
    "a user who may not list Leases": (
        of(leases=None), "rivals", Verdict.NOTE, "may not list leases", "clusterrole",
    ),
    "a user who may not list autoscalers": (
        both(without(HORIZONTAL_POD_AUTOSCALERS), of_live(forbidden=(HORIZONTAL_POD_AUTOSCALERS,))),
        "autoscalers", Verdict.NOTE, "may not list horizontalpodautoscalers", "clusterrole",
    ),
    "a permission that all depends on": (
        of(lacking={RIGHTS[0]: ["list variantautoscalings.llmd.ai"]}),
        "permissions", Verdict.PROBLEM, "nothing is decided", "kubectl auth can-i",
    ),
    "a permission for one feature": (
        of(lacking={QUOTAS: ["list resourcequotas"]}),
        "permissions", Verdict.NOTE, "plans may exceed quotas", "kubectl auth can-i",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "check", "verdict", "message", "remedy"), BROKEN.values(), ids=BROKEN.keys()
)
def test_a_broken_cluster(change: Change, check: str, verdict: Verdict, message: str, remedy: str) -> None:
    """The finding names the cause and a command, and blocks only if something does not work."""
    findings = [item for item in diagnose(change(cluster())) if item.verdict is not Verdict.OK]
    matching = [item for item in findings if item.check == check and message in item.message]
    assert [item.verdict for item in matching] == [verdict], findings
    assert remedy in matching[0].remedy
    assert all(item.remedy for item in findings)


def test_nothing_is_found_in_a_cluster_in_which_all_works() -> None:
    """Prometheus has histograms, and KEDA's ScaledObjects are readable."""
    seen = both(
        of(prometheus=PrometheusState(url=URL, engines=SERIES_NAMES), groups=frozenset({"keda.sh"})),
        with_objects({SCALED_OBJECTS: []}),
    )(cluster())
    assert [item for item in diagnose(seen) if item.verdict is not Verdict.OK] == []


def test_a_permission_on_a_kind_that_is_not_served_does_not_count() -> None:
    """Without KEDA, nobody can list ScaledObjects."""
    right = next(item for item in RIGHTS if item.resources == "scaledobjects.keda.sh")
    seen = of(lacking={right: ["list scaledobjects.keda.sh"]})(cluster())
    assert [item.check for item in diagnose(seen) if item.verdict is not Verdict.OK] == []


def test_the_table_of_permissions_is_that_of_the_base_manifests(base_roles: set[str]) -> None:
    """A permission that was forgotten is a gap in the check; a further one would be reported as missing."""
    described = {
        f"stowplan-{right.account}: {text}" for right in RIGHTS for text in permissions_of(right, SYSTEM)
    }
    assert described == base_roles


@pytest.mark.parametrize(
    ("url", "path"),
    {
        "a Service with a port": (URL, "/api/v1/namespaces/monitoring/services/prometheus:9090/proxy"),
        "the whole name, with a path": (
            "http://prometheus.monitoring.svc.cluster.local/prom/",
            "/api/v1/namespaces/monitoring/services/prometheus:80/proxy/prom",
        ),
        "TLS": ("https://p.m.svc:9090", "/api/v1/namespaces/m/services/https:p:9090/proxy"),
        "a name outside of the cluster": ("https://prometheus.example.com", ""),
        "an address": ("http://10.0.0.1:9090", ""),
        "nonsense": ("x", ""),
    }.values(),
)
def test_prometheus_is_asked_through_the_proxy_of_its_service(url: str, path: str) -> None:
    """Other addresses are not reachable from the command."""
    assert _proxy_path(url) == path
