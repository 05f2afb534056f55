"""A cluster in which everything works, as `stowplan doctor` reads it, and objects that break it."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.cluster.resource import DEPLOYMENTS
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.program import version
from apiserver.schema.structural import crd_manifest
from controller.commands.doctor.evidence import Evidence
from controller.config import ControllerConfig
from support.live_objects import NOW, live, usual_objects
from support.manifests import Manifest, autoscaler, deployment, l4_node

SYSTEM = "stowplan-system"


def certificate(ends: datetime) -> str:
    """Return a self-signed certificate as base64 of its PEM text."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=ends - timedelta(days=90),
        not_valid_after=ends,
    )
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


VALID = certificate(NOW + timedelta(days=60))


def process(name: str, *, image: str = f"stowplan:{version()}", ready: int = 2, **status: Any) -> Manifest:
    """Return one of our Deployments."""
    template = {"spec": {"containers": [{"name": name, "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": SYSTEM, "name": f"stowplan-{name}"},
        "spec": {"replicas": 2, "template": template},
        "status": {"readyReplicas": ready, **status},
    }


def api_service(name: str = "stowplan-apiserver", *, available: str = "True") -> Manifest:
    """Return the APIService of external metrics."""
    state = {"type": "Available", "status": available, "reason": "R", "message": "no endpoints"}
    return {
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": {"service": {"namespace": "keda" if name.startswith("keda") else SYSTEM, "name": name}},
        "status": {"conditions": [state]},
    }


def webhook(bundle: str = VALID) -> Manifest:
    """Return a webhook configuration."""
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "stowplan"},
        "webhooks": [{"clientConfig": {"caBundle": bundle}}],
    }


def cluster() -> Evidence:
    """Return a cluster in which everything works."""
    read = live(usual_objects(), api_services=(api_service(),))
    own = [process(name) for name in ("webhooks", "controller", "apiserver")]
    read = replace(read, objects={**read.objects, DEPLOYMENTS: [*read.of(DEPLOYMENTS), *own]})
    known: dict[str, Any] = {
        "config": ControllerConfig(),
        "version": {"gitVersion": "v1.36.3"},
        "groups": frozenset({"llmd.ai", "apps"}),
        "definitions": {VARIANT_AUTOSCALING.crd_name: crd_manifest(VARIANT_AUTOSCALING)},
        "configurations": (webhook(),),
        "admission": ("reached", ""),
    }
    return Evidence(now=NOW, live=read, **known)


def gke_node() -> Manifest:
    """Return a node of Google Kubernetes Engine."""
    return l4_node("n1", labels={"cloud.google.com/gke-nodepool": "p"})


def old_definition() -> Manifest:
    """Return the definition of an earlier release."""
    made = crd_manifest(VARIANT_AUTOSCALING)
    made["spec"]["versions"] = made["spec"]["versions"][:1]
    return made


def tag(name: str) -> Manifest:
    """Return a Deployment with llm-d's or Kthena's image."""
    made = deployment(name, product="NVIDIA-L4", accelerators=0)
    made["metadata"]["namespace"] = "other"
    made["spec"]["template"]["spec"]["containers"][0]["image"] = f"registry/{name}:v1"
    return made


def quota_failure(message: str) -> list[Manifest]:
    """Return the conditions of a Deployment whose pods are refused."""
    return [{"type": "ReplicaFailure", "status": "True", "message": message}]


def multiplying() -> Manifest:
    """Return an autoscaler that reads the decision otherwise than it is meant."""
    made = autoscaler("chat")
    made["spec"]["metrics"][0]["external"]["target"] = {"type": "Value", "value": "1"}
    return made


def late() -> Manifest:
    """Return an autoscaler that waits before it scales up."""
    made = autoscaler("chat")
    made["spec"]["behavior"]["scaleUp"] = {
        **made["spec"]["behavior"]["scaleUp"],
        "stabilizationWindowSeconds": 120,
    }
    return made


def slow() -> Manifest:
    """Return an autoscaler with the default behavior."""
    made = autoscaler("chat")
    del made["spec"]["behavior"]
    return made
