"""What the manifests install is what `stowplan uninstall` knows to remove."""

from __future__ import annotations

from support.kustomizing import NO_OBJECTS, documents

from controller.uninstalling.installed import (
    ACCOUNT_NAMES,
    REMOVED,
    WEBHOOK_CONFIGURATIONS,
    has_our_name,
)

APART = {"CustomResourceDefinition", "APIService", "Namespace"}
LABEL = {"app.kubernetes.io/part-of": "stowplan"}


def test_every_kind_that_is_installed_is_known() -> None:
    """With its API, so that its collection is found."""
    installed = {
        (item["kind"], item["apiVersion"])
        for _, item in documents()
        if item["kind"] not in NO_OBJECTS | APART
    }
    known = {(resource.kind, resource.api_version) for resource in (*REMOVED, *WEBHOOK_CONFIGURATIONS)}

    assert installed <= known


def test_every_name_is_known() -> None:
    """Of an object with our label, only one with a name of ours is removed."""
    known = {resource.kind: resource for resource in (*REMOVED, *WEBHOOK_CONFIGURATIONS)}
    named = [(item["kind"], item["metadata"]["name"]) for _, item in documents() if item["kind"] in known]

    assert [f"{kind} {name}" for kind, name in named if not has_our_name(known[kind], name)] == []
    assert {name for kind, name in named if kind == "ServiceAccount"} == ACCOUNT_NAMES


def test_every_object_has_our_label() -> None:
    """Its own, or that of the kustomization of its folder."""
    folders = {
        path.parent
        for path, item in documents()
        if item["kind"] == "Kustomization" and any(it["pairs"] == LABEL for it in item.get("labels", []))
    }
    bare = [
        f"{path}: {item['kind']} {item['metadata']['name']}"
        for path, item in documents()
        if item["kind"] not in NO_OBJECTS
        and path.parent not in folders
        and not LABEL.items() <= item["metadata"].get("labels", {}).items()
    ]

    assert bare == []
