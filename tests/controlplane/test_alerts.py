"""The shipped alerts, evaluated by promtool: each fires when it should, and not otherwise."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.documents import example
from support.monitoring import TOP, alerts

from hack.controlplane.binaries import provide_module
from hack.controlplane.modules import PROMETHEUS
from hack.controlplane.progress import ProgressLine
from hack.packaging.programs import KUBECTL

pytestmark = pytest.mark.controlplane

CASES = Path(__file__).with_name("alerts.yaml")


def test_every_alert_fires_when_it_should(tmp_path: Path) -> None:
    """The cases have the texts of alerts that depend on series, so other annotations are left out."""
    promtool = provide_module(PROMETHEUS, ProgressLine())["promtool"]
    rules = [rule | {"annotations": templated(rule["annotations"])} for rule in alerts()]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "stowplan", "rules": rules}]}))
    (tmp_path / "cases.yaml").write_text(CASES.read_text("utf-8"))

    tested = subprocess.run(
        [promtool, "test", "rules", "cases.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    """An alert occurs once for each of its severities."""
    cases = [
        case for test in yaml.safe_load(CASES.read_text("utf-8"))["tests"] for case in test["alert_rule_test"]
    ]
    firing = {
        (case["alertname"], fired["exp_labels"]["severity"]) for case in cases for fired in case["exp_alerts"]
    }
    quiet = {case["alertname"] for case in cases if not case["exp_alerts"]}

    assert firing == {(rule["alert"], rule["labels"]["severity"]) for rule in alerts()}
    assert quiet == {rule["alert"] for rule in alerts()}


def test_the_documented_kustomization_sets_the_url_of_runbooks(tmp_path: Path) -> None:
    """The pages and their sections stay, and the ConfigMap with the URL is not applied."""
    kubectl = provide_module(KUBECTL, ProgressLine())["kubectl"]
    (tmp_path / "stowplan").symlink_to(TOP)
    (tmp_path / "kustomization.yaml").write_text(example("docs/metrics.md", "Kustomization"))

    text = subprocess.run([kubectl, "kustomize", tmp_path], capture_output=True, text=True, check=True).stdout

    shipped, base = (
        [runbook(rule) for rule in alerts()],
        "https://git.corp.example/platform/stowplan/blob/main/",
    )
    (rendered,) = yaml.safe_load_all(text)
    found = [runbook(rule) for rule in rendered["spec"]["groups"][0]["rules"]]
    assert found == [url.replace("https://git.example/stowplan/", base) for url in shipped]
    assert found != shipped


def runbook(rule: dict[str, Any]) -> str:
    """Return the URL of an alert's runbook."""
    return str(rule["annotations"]["runbook_url"])


def templated(annotations: dict[str, Any]) -> dict[str, Any]:
    """Return the annotations whose text depends on series."""
    return {name: text for name, text in annotations.items() if "{{" in text}
