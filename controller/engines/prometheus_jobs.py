"""Jobs of a Prometheus whose series can have the namespace of other pods than they come from. Pure functions.

A target's own labels replace those of its series only without `honor_labels`, and the relabeling rules of a
monitor, which its owner writes, may set any label. Nothing in the series tells this. What decides is the last
rule that may set the label `namespace`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import yaml

from apiserver.schema.json import Json, as_list, as_object
from controller.engines.metrics import UnreadableMetricsError

_NAMESPACE: Final = "namespace"
_DISCOVERED: Final = "__meta_kubernetes_namespace"
_ANY: Final = (None, "(.*)")
_FIRST: Final = (None, "$1", "${1}")
_OF_OBJECT: Final = re.compile(r"(?:podMonitor|serviceMonitor|probe|scrapeConfig)/([^/]+)/")
"""Matches the name of a job that the Prometheus operator made from an object of a namespace."""


def forgeable_jobs(text: str) -> list[str]:
    """Return the jobs of a configuration whose series can claim any namespace, in order.

    Those that the Prometheus operator made must set the namespace of their object, as with
    `enforcedNamespaceLabel`; others may also copy the namespace of the discovered pod. Raises
    UnreadableMetricsError for text that is no configuration.
    """
    try:
        document = as_object(yaml.load(text, yaml.CSafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UnreadableMetricsError("the configuration of Prometheus is no YAML") from error
    jobs = [as_object(job) for job in as_list(document.get("scrape_configs"))]
    found = [str(job.get("job_name")) for job in jobs if not _is_enforced(job)]
    return [*found, *map(str, as_list(document.get("scrape_config_files")))]


def _is_enforced(job: Json) -> bool:
    owner = _OF_OBJECT.match(str(job.get("job_name")))
    rule = _deciding(as_list(job.get("metric_relabel_configs")))
    if rule is None and not job.get("honor_labels"):
        rule = _deciding(as_list(job.get("relabel_configs")))
    if rule is None or rule.get("regex") not in _ANY or rule.get("action", "replace") != "replace":
        return False
    replacement = rule.get("replacement")
    if owner is not None:
        return bool(replacement == owner[1])
    is_constant = isinstance(replacement, str) and "$" not in replacement and replacement != ""
    return is_constant or (rule.get("source_labels") == [_DISCOVERED] and replacement in _FIRST)


def _deciding(rules: Sequence[object]) -> Json | None:
    """Return the last rule that may set or remove the label."""
    return next((rule for rule in map(as_object, reversed(rules)) if _may_change(rule)), None)


def _may_change(rule: Json) -> bool:
    match rule.get("action", "replace"):
        case "keep" | "drop" | "keepequal" | "dropequal":
            return False
        case "labeldrop":
            return _matches(rule)
        case "labelkeep":
            return not _matches(rule)
        case "labelmap":
            name = str(rule.get("replacement", "$1"))
        case _:
            name = str(rule.get("target_label"))
    return name == _NAMESPACE or "$" in name


def _matches(rule: Json) -> bool:
    try:
        return re.fullmatch(str(rule.get("regex", "(.*)")), _NAMESPACE) is not None
    except re.error:  # in the syntax of RE2
        return rule.get("action") == "labeldrop"
