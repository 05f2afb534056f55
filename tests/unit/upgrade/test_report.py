"""Reports of upgrades and downgrades, as text and as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.manifests import legacy_variant, profiled_variant, variant
from support.memory_cluster import MemoryCluster

from apiserver.cluster.errors import ClusterError, Forbidden, Invalid, Unauthorized, Unavailable
from apiserver.kinds.llmd.conversion import convert
from apiserver.kinds.llmd.shapes import RELEASES, SHAPES, Shape
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from controller.commands.plan.terminal import Tone
from controller.commands.upgrade import downgrade, upgrade
from controller.commands.upgrade.calls import Failure, Pace
from controller.commands.upgrade.definitions import (
    storage_hash,
    transitional_definition,
    withdrawn_definition,
)
from controller.commands.upgrade.gather import UpgradeState
from controller.commands.upgrade.report import (
    Run,
    RunOutcome,
    end_lines,
    plan_lines,
    printable,
)
from controller.commands.upgrade.run import Progress, run
from controller.commands.upgrade.steps import MigrationSteps, is_annotated, is_reshaped

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: x, user: {token: x}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """Return the path of a kubeconfig of a cluster that does not respond."""
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    return str(path)


EMPTY = UpgradeState(now=datetime(2026, 1, 1, tzinfo=UTC), namespace="stowplan-system")


STEPS = MigrationSteps(
    MemoryCluster([]), Pace(per_second=1.0, tell=lambda *_: None), namespace="stowplan-system"
)


def stored(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest as an object in a namespace."""
    return manifest | {"metadata": manifest["metadata"] | {"namespace": "models"}}


OBJECTS = tuple(
    map(stored, (variant("s3", version="v1alpha1"), legacy_variant("s2"), profiled_variant("s1")))
)


def test_a_plan_counts_objects_by_shape_and_states_what_is_missing() -> None:
    """The JSON document and the text have the same content."""
    report = upgrade.plan_upgrade(replace(EMPTY, objects=OBJECTS), "https://cluster", STEPS)
    document = report.as_json()
    text = "\n".join(line for _, line in plan_lines(report))

    assert document["objects"] == {"total": 3, "byShape": {"current": 1, "legacy": 1, "modelProfile": 1}}
    assert "3 objects: 1 current, 1 legacy, 1 modelProfile" in text
    assert [step["action"] for step in document["steps"]] == ["install"]
    assert json.loads(json.dumps(document)) == document
    assert {"webhook", "certificates"} == {item.check for item in report.problems}


def test_a_missing_permission_is_reported_and_nothing_else() -> None:
    """Nothing else was read, so nothing is reported as missing or as passed."""
    denied = replace(EMPTY, missing_permissions=("list variantautoscalings.llmd.ai",))
    up = upgrade.plan_upgrade(denied, "https://cluster", STEPS)
    back = downgrade.plan_downgrade(denied, "https://cluster", STEPS, RELEASES["v0.4.2"])

    for report in (up, back):
        assert [item.message for item in report.checks] == [
            "you are not allowed to list variantautoscalings.llmd.ai"
        ]
        assert report.steps == ()
        assert "not installed" not in "".join(line for _, line in plan_lines(report))


REFUSALS = {
    "no permission": (Forbidden("no right"), 1, "stowplan: you are not allowed to do this: no right\n"),
    "credentials": (
        Unauthorized("who?"),
        2,
        "stowplan: the API server does not accept your credentials: who?\n",
    ),
    "no response": (Unavailable("refused"), 2, "stowplan: the API server does not respond: refused\n"),
    "an invalid request": (Invalid("bad name"), 2, "stowplan: bad name\n"),
}


@pytest.mark.parametrize(("error", "code", "want"), REFUSALS.values(), ids=REFUSALS.keys())
def test_errors_of_the_api_server_are_distinguished(
    error: ClusterError, code: int, want: str, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cluster that rejects a request does respond."""

    async def plan(*_: object) -> Run:
        raise error

    options = upgrade.parser().parse_args(["--kubeconfig", kubeconfig])
    assert run(options, plan) == code
    assert capsys.readouterr() == ("", want)

    options = upgrade.parser().parse_args(["--kubeconfig", kubeconfig, "-o", "json"])
    assert run(options, plan) == code
    message = want.removeprefix("stowplan: ").rstrip()
    assert json.loads(capsys.readouterr().out) == {"outcome": "stopped", "error": message}


def test_a_run_without_permissions_does_not_report_that_there_is_nothing_to_change(
    kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without permissions this is not known."""

    async def plan(*_: object) -> Run:
        denied = replace(EMPTY, missing_permissions=("list definitions",))
        return upgrade.plan_upgrade(denied, "https://cluster", STEPS)

    options = upgrade.parser().parse_args(["--kubeconfig", kubeconfig])
    assert run(options, plan) == 1
    assert "stopped: 1 problem to solve first; nothing else was checked, and nothing was changed" in (
        capsys.readouterr().out
    )


def test_a_problem_without_steps_is_reported(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of a problem, although nothing would be changed."""

    async def plan(*_: object) -> Run:
        return replace(upgrade.plan_upgrade(EMPTY, "https://cluster", STEPS), steps=())

    options = upgrade.parser().parse_args(["--kubeconfig", kubeconfig])
    assert run(options, plan) == 1
    assert "stopped: there is nothing to change, but the checks found 2 problems to solve" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize("rate", ["0", "-1", "abc", "nan", "inf"])
def test_an_invalid_rate_is_rejected(rate: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message states what would be valid."""
    with pytest.raises(SystemExit):
        upgrade.main([f"--rate={rate}"])

    want = f"argument --rate: '{rate}': must be a number of objects greater than 0, such as 50 or 0.5"
    assert want in capsys.readouterr().err


def test_a_downgrade_that_would_make_up_values_is_a_problem() -> None:
    """Users may accept it; values that are lost are only reported."""
    snapshot, shape = replace(EMPTY, objects=OBJECTS), RELEASES["v0.0.4"]
    refused = downgrade.plan_downgrade(snapshot, "https://cluster", STEPS, shape)
    taken = downgrade.plan_downgrade(snapshot, "https://cluster", STEPS, shape, accept_incomplete=True)

    assert [item.check for item in refused.problems] == ["shape"]
    assert taken.problems == ()
    changes = {item["name"]: item for item in refused.as_json()["changes"]}
    assert changes["s3"]["lost"]
    assert changes["s3"]["madeUp"]
    assert not [said for item in changes.values() for said in item["madeUp"] if "written" in said]


def test_a_downgrade_reports_lost_values_and_omits_unchanged_objects() -> None:
    """The last release of the modelProfile shape has no service classes, and requires only the model."""
    back = downgrade.plan_downgrade(
        replace(EMPTY, objects=OBJECTS), "https://cluster", STEPS, RELEASES["v0.4.2"]
    )

    assert back.problems == ()
    changes = {item["name"]: item for item in back.as_json()["changes"]}
    assert changes["s2"]["lost"]
    assert "s1" not in changes


def test_an_object_of_the_requested_shape_is_not_reshaped() -> None:
    """Only our annotation is removed."""
    plain = stored(profiled_variant("x"))
    annotated = convert(convert(plain, "llmd.ai/v1alpha2"), "llmd.ai/v1alpha1")
    kept = plain | {"metadata": plain["metadata"] | {"annotations": {"llmd.ai/kept-by-conversion": "{}"}}}

    items = (plain, annotated, kept)
    assert [is_reshaped(item, SHAPES["modelProfile"]) for item in items] == [False, False, False]
    assert [is_annotated(item) for item in items] == [False, False, True]
    assert is_reshaped(plain, SHAPES["legacy"])


def test_under_a_definition_of_another_owner_a_downgrade_has_no_steps() -> None:
    """It may prune unknown fields, which is a problem if an object would have to change."""
    definitions = {VARIANT_AUTOSCALING.crd_name: definition_of_a_release()}
    snapshot = replace(EMPTY, definitions=definitions, objects=OBJECTS[2:])
    lossy = downgrade.plan_downgrade(snapshot, "https://cluster", STEPS, RELEASES["v0.5.1"])
    clean = downgrade.plan_downgrade(snapshot, "https://cluster", STEPS, SHAPES["modelProfile"])

    assert lossy.steps == clean.steps == clean.problems == ()
    assert [item.message for item in lossy.problems if "nothing to restore" in item.message]


def definition_of_a_release() -> dict[str, Any]:
    """Return the definition of a release, as applied after the downgrade."""
    version = {"name": "v1alpha1", "served": True, "storage": True}
    return {"metadata": {"name": VARIANT_AUTOSCALING.crd_name}, "spec": {"versions": [version]}}


def given_back() -> dict[str, Any]:
    """Return the definition that a downgrade leaves."""
    stored = {"status": {"storedVersions": ["v1alpha1"]}}
    return withdrawn_definition(VARIANT_AUTOSCALING, definition_of_a_release()) | stored


def of_our_chart() -> dict[str, Any]:
    """Return the definition of our chart during a downgrade, when only its withdrawal is left."""
    live = transitional_definition(VARIANT_AUTOSCALING, None, storage="v1alpha1", ca_bundle="Y2E=")
    annotations = {
        "meta.helm.sh/release-name": "stowplan",
        "meta.helm.sh/release-namespace": "stowplan-system",
        "helm.sh/resource-policy": "keep",
        "theirs": "kept",
    }
    labels = live["metadata"]["labels"] | {"app.kubernetes.io/managed-by": "Helm"}
    fields: dict[str, Any] = {
        f"f:{name}": {f"f:{key}": {} for key in keys}
        for name, keys in (("labels", labels), ("annotations", annotations))
    }
    entries = [
        {"manager": "helm", "operation": "Update", "fieldsV1": {"f:metadata": fields}},
        {"manager": "stowplan", "operation": "Update"},
    ]
    metadata = {"labels": labels, "annotations": annotations, "managedFields": entries}
    return live | {"metadata": live["metadata"] | metadata, "status": {"storedVersions": ["v1alpha1"]}}


def test_a_downgrade_continues_after_the_definition_of_our_chart_was_withdrawn() -> None:
    """An interrupted run, another shape, or another run find no other owner."""
    before = of_our_chart()
    after = withdrawn_definition(VARIANT_AUTOSCALING, before)
    kept = OBJECTS[2] | {
        "metadata": OBJECTS[2]["metadata"] | {"annotations": {"llmd.ai/kept-by-conversion": "{}"}}
    }

    def plan(live: dict[str, Any], shape: Shape) -> Run:
        definitions = {VARIANT_AUTOSCALING.crd_name: live}
        return downgrade.plan_downgrade(
            replace(EMPTY, definitions=definitions, objects=(kept,)), "", STEPS, shape
        )

    first, again = (plan(live, SHAPES["modelProfile"]) for live in (before, after))
    other = plan(after, RELEASES["v0.5.1"])

    assert not [item for item in first.problems if item.check == "owners"]
    assert [step.action for step in first.steps] == ["disown", "withdraw", "sweep"]
    assert again.problems == ()
    assert [step.action for step in again.steps] == ["sweep"]
    assert not [item for item in other.problems if item.check == "owners"]
    assert after["metadata"]["annotations"] == {"theirs": "kept"}
    assert after["metadata"]["labels"] == {}


INSTALLED: dict[str, Any] = {"webhooks": []}
NEXT: dict[str, tuple[UpgradeState, str]] = {
    "the definition of the release is not applied yet": (
        replace(EMPTY, definitions={VARIANT_AUTOSCALING.crd_name: given_back()}, configuration=INSTALLED),
        "next: apply the definition of release v0.4.2 over the current one,",
    ),
    "the definition of the release is applied": (
        replace(
            EMPTY,
            definitions={VARIANT_AUTOSCALING.crd_name: definition_of_a_release()},
            configuration=INSTALLED,
        ),
        "next: remove Stowplan,",
    ),
    "the definition of the release is applied, and Stowplan is removed": (
        replace(EMPTY, definitions={VARIANT_AUTOSCALING.crd_name: definition_of_a_release()}),
        "",
    ),
    "an empty cluster": (EMPTY, ""),
}


@pytest.mark.parametrize(("snapshot", "want"), NEXT.values(), ids=NEXT.keys())
def test_a_downgrade_states_only_the_next_action(snapshot: UpgradeState, want: str) -> None:
    """Each check is reported once."""
    report = downgrade.plan_downgrade(snapshot, "https://cluster", STEPS, RELEASES["v0.4.2"])

    assert next(iter(report.advice), "") == want
    assert report.steps == report.problems == ()
    assert [item.check for item in report.checks].count("definition") == 1


def test_control_characters_from_a_cluster_do_not_reach_the_terminal() -> None:
    """They are replaced; the only escape sequences are our own colours."""
    report = upgrade.plan_upgrade(EMPTY, "https://cluster", STEPS)
    failure = Failure(namespace="models", name="x", message="\x1b[2Jgone")
    stopped = replace(report, outcome=RunOutcome.STOPPED, error="one object", failures=(failure,))
    lines = [printable(line, is_coloured=True) for line in end_lines(stopped)]

    assert lines[0] == "\x1b[31mstopped: one object\x1b[0m"
    assert "\x1b[2J" not in "".join(lines)
    assert printable((Tone.BAD, "x"), is_coloured=False) == "x"


def test_progress_is_reported_once_a_second_and_at_the_end() -> None:
    """It is not reported for each of many objects."""
    moments, stream = iter([0.0, 0.0, 0.4, 1.1, 1.2, 1.3]), io.StringIO()
    progress = Progress(stream, clock=lambda: next(moments))
    progress.begin("1/2", "rewrite")
    for done in (1, 2, 3, 4):
        progress.tell(done, 4, "pods")
    progress.end("all")

    assert stream.getvalue() == ("[1/2] rewrite\n[1/2] 2 of 4 pods\n[1/2] 4 of 4 pods\n[1/2] done: all\n")


def test_the_hash_of_the_storage_version_is_that_of_the_api_server() -> None:
    """The expected value was returned by the discovery of a real API server."""
    assert storage_hash(VARIANT_AUTOSCALING, "v1alpha2") == "BdU+3yXNqk4="


@pytest.mark.parametrize(
    "arguments", [[], ["--shape", "none"], ["--to-release", "v9"], ["--shape", "legacy", "--rate", "0"]]
)
def test_wrong_usage_has_exit_code_2(arguments: list[str]) -> None:
    """It is detected before any connection."""
    with pytest.raises(SystemExit) as error:
        downgrade.main(arguments)

    assert error.value.code == 2


def test_a_missing_cluster_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message states this."""
    assert upgrade.main(["--kubeconfig", str(tmp_path / "none")]) == 2
    assert "no cluster is configured" in capsys.readouterr().err
