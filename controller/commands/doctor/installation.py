"""Checks of what is installed: the API server, definitions, webhooks, APIs, certificates and permissions.

Pure. Each check yields one finding or more; `problem` is what blocks.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from apiserver.cluster.resource import NODES
from apiserver.kinds.registry import FAMILIES
from apiserver.schema.json import Json, as_list, as_object
from controller.commands.doctor.evidence import Evidence
from controller.commands.upgrade.definitions import is_ours, served_versions
from controller.commands.upgrade.gather import ready_pods
from controller.commands.upgrade.report import Finding, note, ok, problem
from controller.observe.decision_following import API_SERVICE, REMEDY_FOR_OTHERS, external_metrics_of
from controller.observe.decision_following import is_ours as is_our_api

OLDEST_KUBERNETES: Final = (1, 30)
"""The oldest release that is tested."""

_TOLERANT_KUBERNETES: Final = (1, 35)
_SOON: Final = timedelta(days=7)
_CONFIGURATIONS: Final = (
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
)
GKE: Final = "cloud.google.com/gke-nodepool"
"""Label of nodes of Google Kubernetes Engine."""

_EKS: Final = "eks.amazonaws.com/nodegroup"
_UNREACHED: Final = re.compile(r"deadline exceeded|timed? ?out|no route to host|i/o timeout")


def unknown(check: str, *what: str) -> Finding:
    """Return the finding that something was not checked, because the user may not read it."""
    verb = "list" if "subjectaccessreviews.authorization.k8s.io" not in what else "create"
    resources = ",".join(what)
    return note(
        check,
        f"not checked: you may not {verb} {', '.join(what)}",
        f"kubectl create clusterrole NAME --verb={verb} --resource={resources}, and bind it to you",
    )


def check_server(seen: Evidence) -> Iterator[Finding]:
    """Yield whether the release of Kubernetes is supported, and what it lacks."""
    numbers = re.match(r"v(\d+)\.(\d+)", str(seen.version.get("gitVersion")))
    if numbers is None:
        return
    release = int(numbers[1]), int(numbers[2])
    shown = f"Kubernetes {seen.version['gitVersion']}"
    if release < OLDEST_KUBERNETES:
        least = ".".join(map(str, OLDEST_KUBERNETES))
        yield problem(
            "kubernetes", f"{shown} is older than {least}", f"upgrade the cluster to {least} or newer"
        )
    elif release < _TOLERANT_KUBERNETES:
        yield note(
            "kubernetes",
            f"{shown}: HorizontalPodAutoscalers ignore the field tolerance, so from 10 replicas on they do"
            " not follow a difference of one",
            "enable the feature gate HPAConfigurableTolerance, or accept it",
        )
    else:
        yield ok("kubernetes", shown)


def check_permissions(seen: Evidence) -> Iterator[Finding]:
    """Yield whether the user may install, and what our accounts may not do."""
    if not seen.is_installed:
        if seen.missing:
            text = f"you are not allowed to {', '.join(seen.missing)}, which an installation needs"
            yield problem(
                "permissions", text, "install as a user with these permissions, such as cluster-admin"
            )
        else:
            yield ok("permissions", "you may install Stowplan")
        return
    if seen.configurations is None:
        yield unknown("installation", *_CONFIGURATIONS)
    if seen.lacking is None:
        yield unknown("permissions", "subjectaccessreviews.authorization.k8s.io")
        return
    for right, texts in seen.lacking.items():
        if _is_unserved(seen, right.resources):
            continue
        account = f"stowplan-{right.account}"
        text = f"{account} is not allowed to {', '.join(texts)}: {right.without}"
        user = f"system:serviceaccount:{seen.system}:{account}"
        remedy = f"apply the manifests; kubectl auth can-i --list --as={user}"
        yield (problem if right.is_needed else note)("permissions", text, remedy)
    if not seen.lacking:
        yield ok("permissions", "our accounts have the permissions of the base installation")


def _is_unserved(seen: Evidence, resources: str) -> bool:
    """Tell whether the cluster has none of the API groups of some resources."""
    groups = {resource.partition(".")[2] for resource in resources.split()}
    return bool(seen.groups) and groups.isdisjoint({*seen.groups, ""})


def check_definitions(seen: Evidence) -> Iterator[Finding]:
    """Yield whether our definitions are installed and ours."""
    if seen.definitions is None:
        yield unknown("definitions", "customresourcedefinitions.apiextensions.k8s.io")
        return
    for kind in FAMILIES[0].kinds:
        live = seen.definitions.get(kind.crd_name)
        versions = {item.name for item in kind.versions}
        if live is None:
            if seen.is_installed:
                text = f"the definition {kind.crd_name} is not installed"
                yield problem("definitions", text, "apply the manifests: see docs/installing.md")
            continue
        served = served_versions(live)
        if versions - {*served}:
            text = f"{kind.crd_name} serves {', '.join(served)} only: it is of an earlier release"
            yield problem("definitions", text, "stowplan upgrade")
        elif not is_ours(live):
            text = f"{kind.crd_name} belongs to another owner, who may replace it"
            yield note("definitions", text, "stowplan upgrade, which names the owner")
        else:
            yield ok("definitions", f"{kind.crd_name} serves {', '.join(served)}")


def check_external_metrics(seen: Evidence) -> Iterator[Finding]:
    """Yield who answers for external metrics, of which a cluster has only one."""
    services = seen.live.api_services
    if services is None:
        return
    state = external_metrics_of(services)
    if not seen.is_installed:
        if services and not is_our_api(services[0]):
            text = f"{state.other_service} answers for external metrics, and a cluster has one such API"
            yield note(
                "external metrics", text, "install without it: see 'Clusters with KEDA' in docs/installing.md"
            )
        return
    watch = f"kubectl describe apiservice {API_SERVICE}"
    if state.other_service:
        text = (
            f"{state.other_service} answers for external metrics: HorizontalPodAutoscalers get no decision,"
            " unless it serves the same numbers"
        )
        yield note("external metrics", text, REMEDY_FOR_OTHERS)
    if state.unavailable:
        yield problem("external metrics", state.unavailable, watch)
    elif not state.other_service:
        yield ok("external metrics", "stowplan-apiserver answers")


def check_webhooks(seen: Evidence) -> Iterator[Finding]:
    """Yield whether the API server reaches admission, by a dry run."""
    if not seen.is_installed:
        return
    result, message = seen.admission
    if result == "reached":
        yield ok("webhooks", "a dry run of a write passed admission")
    elif result == "forbidden":
        yield note(
            "webhooks",
            f"not tried: {message}",
            "run this command as a user who may create VariantAutoscalings",
        )
    elif result == "unreached":
        remedy = f"kubectl -n {seen.system} get pods -l app.kubernetes.io/component=webhooks"
        if _UNREACHED.search(message):
            remedy = f"{firewall(seen)}; and {remedy}"
        yield problem("webhooks", f"the API server does not reach admission: {message}", remedy)
    own = [item for item in seen.slices or () if _service_of(item) == "stowplan-webhooks"]
    if own and not ready_pods(own):
        yield problem(
            "webhooks",
            "the Service stowplan-webhooks has no ready pod",
            f"kubectl -n {seen.system} describe pods -l app.kubernetes.io/component=webhooks",
        )


def _service_of(item: Json) -> str:
    return str(as_object(item["metadata"].get("labels")).get("kubernetes.io/service-name"))


def firewall(seen: Evidence) -> str:
    """Return the remedy for requests from the control plane that do not arrive."""
    if has_label(seen, GKE):
        return "allow TCP 9443 from the control plane to the nodes (gcloud compute firewall-rules create)"
    if has_label(seen, _EKS):
        return "allow TCP 9443 from the cluster's security group to that of the nodes"
    return "allow TCP 9443 from the control plane to the pods, also in NetworkPolicies"


def has_label(seen: Evidence, label: str) -> bool:
    """Tell whether any node has a label."""
    return any(label in as_object(node["metadata"].get("labels")) for node in seen.live.of(NODES))


def check_certificates(seen: Evidence) -> Iterator[Finding]:
    """Yield webhooks without a CA bundle, and certificates that have expired or soon will."""
    if not seen.is_installed:
        return
    findings = [*_without_bundles(seen), *_expiry_findings(seen)]
    if seen.configurations is None:
        findings.append(unknown("certificates", *_CONFIGURATIONS))
    if seen.secrets is None:
        findings.append(unknown("certificates", "secrets"))
    yield from findings or [ok("certificates", "all certificates are valid for a week or longer")]


def _without_bundles(seen: Evidence) -> Iterator[Finding]:
    for configuration in seen.configurations or ():
        name = configuration["metadata"]["name"]
        clients = [as_object(item.get("clientConfig")) for item in as_list(configuration.get("webhooks"))]
        if any(not client.get("caBundle") for client in clients):
            yield problem(
                "certificates",
                f"{configuration['kind']} {name} has no caBundle: the API server cannot trust our webhooks",
                _renewal(seen),
            )


def _renewal(seen: Evidence) -> str:
    return f"kubectl -n {seen.system} logs deploy/stowplan-controller, which issues it, or cert-manager's log"


def _expiry_findings(seen: Evidence) -> Iterator[Finding]:
    for subject, ends in _certificates(seen):
        if ends - seen.now > _SOON:
            continue
        when = f"expired on {ends:%Y-%m-%d}" if ends < seen.now else f"expires on {ends:%Y-%m-%d %H:%M} UTC"
        remedy = _renewal(seen)
        make = problem if ends < seen.now else note
        yield make("certificates", f"{subject} {when}", remedy)


def _certificates(seen: Evidence) -> Iterator[tuple[str, datetime]]:
    """Yield what each certificate is, and the end of its validity: of a bundle, the latest."""
    for configuration in seen.configurations or ():
        for item in as_list(configuration.get("webhooks"))[:1]:
            bundle = str(as_object(as_object(item).get("clientConfig")).get("caBundle") or "")
            if ends := _latest_end(bundle):
                yield f"the authority in {configuration['kind']} {configuration['metadata']['name']}", ends
    for secret in seen.secrets or ():
        name = secret["metadata"]["name"]
        if name.startswith("stowplan-") and (
            ends := _latest_end(str(as_object(secret.get("data")).get("tls.crt") or ""))
        ):
            yield f"the certificate in Secret {name}", ends


def _latest_end(encoded: str) -> datetime | None:
    """Return the end of the certificate that is valid longest; None if there is none."""
    try:
        certificates = x509.load_pem_x509_certificates(base64.b64decode(encoded))
    except ValueError:
        return None
    return max((item.not_valid_after_utc for item in certificates), default=None)
