"""Everything that the manifests install is removed by `stowplan uninstall`."""

from __future__ import annotations

from support.kustomizing import NO_OBJECTS, documents

from controller.commands.uninstall.installed import (
    ACCOUNT_NAMES,
    REMOVED,
    WEBHOOK_CONFIGURATIONS,
    has_our_name,
)

APART = {"CustomResourceDefinition", "APIService", "Namespace"}
LABEL = {"app.kubernetes.io/part-of": "stowplan"}


def test_every_installed_kind_is_known_to_uninstall() -> None:
    """Its API version is known, too, which is part of the URL of its collection."""
    installed = {
        (item["kind"], item["apiVersion"])
        for _, item in documents()
        if item["kind"] not in NO_OBJECTS | APART
    }
    known = {(resource.kind, resource.api_version) for resource in (*REMOVED, *WEBHOOK_CONFIGURATIONS)}

    assert installed <= known


def test_every_installed_name_is_known_to_uninstall() -> None:
    """Of the objects with Stowplan's label, only those with a known name are removed."""
    known = {resource.kind: resource for resource in (*REMOVED, *WEBHOOK_CONFIGURATIONS)}
    named = [(item["kind"], item["metadata"]["name"]) for _, item in documents() if item["kind"] in known]

    assert [f"{kind} {name}" for kind, name in named if not has_our_name(known[kind], name)] == []
    assert {name for kind, name in named if kind == "ServiceAccount"} == ACCOUNT_NAMES


def test_every_object_has_the_part_of_label() -> None:
    """The label is set on the object or by the kustomization of its folder."""
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
