"""`stowplan check` reports the same lines as `kubectl create --dry-run=server` for the same files.

For shipped counterexamples that can be in any namespace, test_samples.py compares them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.command_line import lines_of_check, lines_of_kubectl, stowplan
from support.manifests import legacy_variant, variant
from support.samples import SAMPLES, VALID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane


CRDS = sorted((SAMPLES.parent / "crds").glob("*/*.*.yaml"))
KINDS = {
    yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)["spec"]["names"]["kind"] for path in CRDS
}


def ours(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a sample that are of Stowplan's kinds."""
    items = [item for item in yaml.safe_load_all(path.read_text(encoding="utf-8")) if item]
    return [item for item in items if item["kind"] in KINDS]


@pytest.fixture(autouse=True)
def _installed(installation: Installation) -> None:
    """Run the webhooks, which every test in this file needs."""


def written(directory: Path, namespace: str, manifest: dict[str, Any]) -> Path:
    """Write a manifest to a file, in a namespace that exists."""
    path = directory / "manifest.yaml"
    metadata = {**manifest["metadata"], "namespace": namespace}
    path.write_text(yaml.safe_dump({**manifest, "metadata": metadata}), encoding="utf-8")
    return path


def lines_of_create(control_plane: ControlPlane, path: Path, *flags: str) -> list[str]:
    """Return the lines of kubectl for a dry run."""
    finished = control_plane.kubectl("create", "--dry-run=server", f"--filename={path}", *flags, check=False)
    return lines_of_kubectl(finished.stderr, path)


(OF_THE_DEMO,) = ours(SAMPLES / "demo/refused/mixed-shapes.yaml")
MISTAKES = {
    "fields of several shapes": OF_THE_DEMO,
    "several invalid fields": variant("x", modelID="", variantCost="ten", acceleratorCount=0),
    "one invalid field": variant("x", variantCost=40),
    "unknown fields": variant("x", zeta=1, alpha={"b": 1}, scaleTargetRef={"kind": "D", "nam": "x"}),
    "unknown fields in lists": legacy_variant(
        "x",
        modelProfile={"accelerators": [{"acc": "A", "accCount": 1, "y": 1}, {"z": 1}]},
        sloClassRef=[{"a": 1}],
    ),
    "unknown metadata": variant("x") | {"metadata": {"name": "x", "Labels": {}, "uId": "1"}},
    "a name with capital letters": variant("A_b", scaleTargetRef={"kind": "Deployment", "name": "x"}),
    "invalid labels": variant("x", labels={"a b": "c d"}),
    "invalid annotations": variant("x") | {"metadata": {"name": "x", "annotations": {"/a": "b"}}},
    "no spec": {key: value for key, value in variant("x").items() if key != "spec"},
    "an old version": legacy_variant("x"),
    "an old version with an invalid field": legacy_variant("x", acceleratorCount="four"),
    "a target kind that cannot be scaled": variant(
        "x", variantCost=40, scaleTargetRef={"apiVersion": "batch/v1", "kind": "Job", "name": "x"}
    ),
}


@pytest.mark.parametrize("manifest", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_reported_in_the_same_lines(
    control_plane: ControlPlane, empty_namespace: str, tmp_path: Path, manifest: dict[str, Any]
) -> None:
    """The server stops at the first stage that rejects; the check continues, so it can report more lines."""
    path = written(tmp_path, empty_namespace, manifest)

    theirs = lines_of_create(control_plane, path)
    said = lines_of_check(stowplan("check", str(path)).out, path)

    assert said[: len(theirs)] == theirs
    stopped_early = any("strict decoding error" in line for line in theirs)
    assert stopped_early or said[len(theirs) :] in ([], ["VariantAutoscaling/x valid"])


def bound(namespace: str | None) -> dict[str, Any]:
    """Return a binding without a namespace whose target can have one."""
    reference = {"name": "x"} | ({"namespace": namespace} if namespace else {})
    scaling = {"target": {"targetRef": reference}, "minReplicas": 1, "maxReplicas": 2}
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": "x"},
        "spec": {"policyRef": {"name": "x"}, "scalingConfiguration": scaling},
    }


@pytest.mark.parametrize("own", [None, "elsewhere"], ids=["no namespace", "another namespace"])
def test_the_namespace_option_has_the_same_meaning(
    control_plane: ControlPlane, empty_namespace: str, tmp_path: Path, own: str | None
) -> None:
    """The option sets the namespace of an object that has none, and must equal that of one that has."""
    manifest = bound("kube-system")
    manifest["metadata"] |= {"namespace": own} if own else {}
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(manifest), encoding="utf-8")

    (theirs,) = lines_of_create(control_plane, path, f"--namespace={empty_namespace}")

    checked = stowplan("check", str(path), f"--namespace={empty_namespace}")
    assert lines_of_check(checked.out, path)[0] == theirs


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("networking.volcano.sh/v1alpha1", "Modelserver"), ("llmd.ai/v9", "VariantAutoscaling")],
    ids=["a kind", "a version"],
)
def test_an_unknown_kind_or_version_is_rejected_with_the_same_message(
    control_plane: ControlPlane, empty_namespace: str, tmp_path: Path, api_version: str, kind: str
) -> None:
    """The message follows kubectl's prefix and is followed by the list of served versions."""
    path = written(tmp_path, empty_namespace, variant("x") | {"apiVersion": api_version, "kind": kind})

    theirs, checked = lines_of_create(control_plane, path)[0], stowplan("check", str(path))

    assert checked.code == 1
    words = checked.out.rstrip().rpartition(": ")[0].rpartition("error: ")[2]
    assert words.startswith("no matches for kind")
    assert words in theirs


ACCEPTED = {
    f"{path.relative_to(SAMPLES)}[{position}]": item
    for path in VALID
    for position, item in enumerate(ours(path))
}


def objects_of(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects that kubectl prints one after another."""
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        yield value
        rest = rest[end:].lstrip()


@pytest.fixture(scope="module")
def completed(
    control_plane: ControlPlane,
    installation: Installation,
    shared_namespace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[dict[str, Any]]]:
    """Return each sample as the check prints it, as the server stores it, and as it stores what was printed.

    kubectl runs only twice for all samples: each start takes a fifth of a second.
    """
    texts, printed, one = (tmp_path_factory.mktemp(name) for name in ("written", "printed", "one"))
    told: list[dict[str, Any]] = []
    for number, manifest in enumerate(ACCEPTED.values()):
        path = written(one, shared_namespace, manifest).rename(texts / f"{number:03}.yaml")
        text = stowplan("check", str(path), "-o", "yaml").out
        (printed / path.name).write_text(text, encoding="utf-8")
        told += yaml.safe_load_all(text)
    create = ("create", "--dry-run=server", "--output=json")
    stored = [
        objects_of(control_plane.kubectl(*create, f"--filename={folder}").stdout)
        for folder in (texts, printed)
    ]
    return {place: list(each) for place, each in zip(ACCEPTED, zip(told, *stored, strict=True), strict=True)}


@pytest.mark.parametrize("place", ACCEPTED)
def test_a_sample_is_defaulted_to_the_same_object(
    completed: dict[str, list[dict[str, Any]]], place: str
) -> None:
    """The check prints what the server would store, and the server accepts the printed object unchanged."""
    complete, stored, again = completed[place]

    assert complete["kind"] == stored["kind"] == again["kind"] == ACCEPTED[place]["kind"]
    assert complete["spec"] == stored["spec"] == again["spec"]
