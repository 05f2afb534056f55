"""The program `stowplan migrate`: its input and output, its messages, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.manifests import listed, variant
from support.migrate_verb import hpa
from support.verbs import Stowplan

from controller.commands.check.yaml_values import as_yaml

OTHER = """\
# settings of ours
apiVersion: v1
kind: ConfigMap
metadata: {name:   x}
"""
VARIANT = """\
# one variant
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata:
  name: llama
spec:
  modelID: m
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}
  acceleratorCount: 2   # of eight
"""
SCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler   # by the decision
metadata:
  name: llama
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}
  maxReplicas: 8   # enough
  metrics:
  - type: External
    external:
      metric: {name: wva_desired_replicas, selector: {matchLabels: {variant_name: llama}}}
      target: {type: AverageValue, averageValue: "1"}
"""
AFTER = SCALER.replace(
    "  name: llama\nspec",
    '  name: llama\n  annotations:\n    llm-d.ai/managed: "true"\n    llm-d.ai/model-id: m\nspec',
)
LOSS = (
    "VariantAutoscaling llama: spec.acceleratorCount: has no place in annotated autoscalers: the pods of the"
    " target say how many they request"
)


def test_partners_are_looked_for_in_all_files(stowplan: Stowplan, tmp_path: Path) -> None:
    """The variant goes from its file with its comments, and other documents keep every byte."""
    files = {"a_yaml": f"{OTHER}---\n{VARIANT}---\n{OTHER}", "b_yaml": SCALER}
    code, out, err = stowplan("migrate", "-f", ".", "--to", "released", "--in-place", **files)

    assert (code, out) == (0, "")
    assert err == [
        "a.yaml:7: 2 comments lost with the document",
        f"a.yaml:14: {LOSS}",
        "not changed, as --to released is not about them: 2 ConfigMap",
    ]
    assert (tmp_path / "a.yaml").read_text() == f"{OTHER}---\n{OTHER}"
    assert (tmp_path / "b.yaml").read_text() == AFTER


def test_strict_refuses_a_loss(stowplan: Stowplan, tmp_path: Path) -> None:
    """Nothing is written, and the loss is named."""
    text = f"{VARIANT}---\n{SCALER}"
    code, out, err = stowplan(
        "migrate", "-f", "a.yaml", "--to", "released", "--strict", "--in-place", a_yaml=text
    )

    assert (code, out) == (1, "")
    assert err[1:] == [f"a.yaml:9: {LOSS}", "nothing is written because of --strict: losses: 1"]
    assert (tmp_path / "a.yaml").read_text() == text


def test_the_target_shape_is_not_changed(stowplan: Stowplan) -> None:
    """A second run prints the same text, and --diff has no changes."""
    code, out, err = stowplan("migrate", "-f", "-", "--to", "released", "--strict", given=AFTER)
    assert (code, out) == (0, AFTER)
    assert err == ["not changed, as --to released is not about them: 1 HorizontalPodAutoscaler"]
    assert stowplan("migrate", "-f", "-", "--to", "released", "--diff", given=AFTER)[:2] == (0, "")


def test_a_written_variant_follows_its_autoscaler(stowplan: Stowplan) -> None:
    """In YAML as a document behind it; --diff shows both."""
    code, out, _ = stowplan("migrate", "-f", "-", "--to", "stowplan", given=AFTER)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
    written = variant("llama") | {"spec": {"scaleTargetRef": target, "modelID": "m"}}
    assert (code, out) == (0, SCALER + as_yaml(written))

    code, out, _ = stowplan("migrate", "-f", "-", "--to", "stowplan", "--diff", given=AFTER)
    assert code == 1
    assert '-    llm-d.ai/managed: "true"\n' in out
    assert "+kind: VariantAutoscaling\n" in out


def test_json_and_lists_keep_their_form(stowplan: Stowplan) -> None:
    """As of `kubectl get -o json`; a list of one kind becomes a general one."""
    objects = [variant("llama"), hpa()]
    _, out, _ = stowplan("migrate", "-f", "-", "--to", "released", given=listed(*objects))
    assert [item["kind"] for item in json.loads(out)["items"]] == ["HorizontalPodAutoscaler"]

    _, out, _ = stowplan("migrate", "-f", "-", "--to", "released", given="\n".join(map(json.dumps, objects)))
    assert json.loads(out)["kind"] == "HorizontalPodAutoscaler"
    _, out, _ = stowplan("migrate", "-f", "-", "--to", "stowplan", "-o", "json", given=out)
    assert [item["kind"] for item in json.loads(out)["items"]] == [
        "HorizontalPodAutoscaler",
        "VariantAutoscaling",
    ]

    bare = {name: item for name, item in variant("llama").items() if name not in {"apiVersion", "kind"}}
    kinds = {"apiVersion": "llmd.ai/v1alpha2", "kind": "VariantAutoscalingList", "items": [bare]}
    _, out, _ = stowplan("migrate", "-f", "-", "--to", "released", given=json.dumps(kinds))
    value = json.loads(out)
    assert (value["kind"], value["items"][0]["kind"]) == ("List", "HorizontalPodAutoscaler")


def test_unreadable_files_keep_all_others_from_being_written(stowplan: Stowplan, tmp_path: Path) -> None:
    """A partner may be in one of them."""
    files = {"a_yaml": f"{VARIANT}---\n{SCALER}", "b_yaml": "a: [\n"}
    code, out, err = stowplan("migrate", "-f", ".", "--to", "released", "--in-place", **files)

    assert (code, out) == (2, "")
    assert err[-1] == "nothing is written because of the errors above"
    assert (tmp_path / "a.yaml").read_text() == files["a_yaml"]


def test_standard_input_has_no_place(stowplan: Stowplan, capsys: pytest.CaptureFixture[str]) -> None:
    """As in convert."""
    with pytest.raises(SystemExit) as stopped:
        stowplan("migrate", "-f", "-", "--to", "released", "--in-place")
    assert stopped.value.code == 2
    assert "--in-place cannot be used with standard input" in capsys.readouterr().err


PIECES = (
    *(VARIANT, SCALER, AFTER, OTHER, "---\n", "--- # next\n", "\n", "null\n", "[]\n", "a: &x [1]\nb: *x\n"),
    *('{"kind": "List", "items": [null, {}, {"kind": "List", "items": [1]}]}', '{"kind": []}', "# alone\n"),
    json.dumps(variant("llama")),
    VARIANT.replace("metadata:", "metadata: &m").replace("\n", "\r\n"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.sampled_from(["released", "stowplan"]))
@settings(max_examples=often(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_migrated_or_refused(stowplan: Stowplan, pieces: list[str], side: str) -> None:
    """What is printed can be read again, and a second run changes nothing."""
    code, out, err = stowplan("migrate", "-f", "-", "--to", side, given="".join(pieces))
    assert code == 0 or any("error:" in line for line in err)
    again = stowplan("migrate", "-f", "-", "--to", side, given=out)
    assert again[:2] == (0, out)
