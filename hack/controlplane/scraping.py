"""The configuration of Prometheus in tests."""

from __future__ import annotations

import json

_META = "__meta_kubernetes_pod"


def prometheus_configuration(*, kubeconfig: str) -> str:
    """Return a configuration that scrapes Running pods annotated with `prometheus.io/scrape: "true"`.

    The port is that of the annotation `prometheus.io/port`. The series have `namespace`, `pod` and all labels
    of the pod, as in usual installations. JSON is YAML.
    """
    annotation = f"{_META}_annotation_prometheus_io"
    relabelings = [
        {"source_labels": [f"{annotation}_scrape"], "regex": "true", "action": "keep"},
        {"source_labels": [f"{_META}_phase"], "regex": "Running", "action": "keep"},
        {
            "source_labels": [f"{_META}_ip", f"{annotation}_port"],
            "separator": ":",
            "target_label": "__address__",
        },
        {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
        {"source_labels": [f"{_META}_name"], "target_label": "pod"},
        {"regex": f"{_META}_label_(.+)", "action": "labelmap"},
    ]
    document = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
        "scrape_configs": [
            {
                "job_name": "pods",
                "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": kubeconfig}],
                "relabel_configs": relabelings,
            }
        ],
    }
    return json.dumps(document, indent=2)
