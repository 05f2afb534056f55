"""The permissions that the base manifests grant."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

BASE = Path(__file__).parents[3] / "manifests" / "base"


@pytest.fixture
def base_roles() -> set[str]:
    """Return each permission of the base's accounts as `ACCOUNT: VERB PLURAL.GROUP[ NAME][ in NAMESPACE]`."""
    texts = set()
    for process in ("controller", "apiserver", "webhooks"):
        for role in yaml.safe_load_all((BASE / f"rbac-{process}.yaml").read_text("utf-8")):
            if role["kind"] not in ("Role", "ClusterRole") or "aggregationRule" in role:
                continue
            place = f" in {role['metadata']['namespace']}" if role["kind"] == "Role" else ""
            texts |= {f"stowplan-{process}: {text}{place}" for rule in role["rules"] for text in _texts(rule)}
    return texts


def _texts(rule: dict[str, list[str]]) -> set[str]:
    return {
        f"{verb} {resource}{f'.{group}' if group else ''}{f' {name}' if name else ''}"
        for verb in rule["verbs"]
        for resource in rule["resources"]
        for group in rule["apiGroups"]
        for name in rule.get("resourceNames", [""])
    }
