"""The program `stowplan check`: the files that it reads, its usage, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.manifests import deployment, listed, variant
from support.verbs import GOOD, Check

from apiserver import cli


def test_items_of_lists_are_checked_one_by_one(check: Check) -> None:
    """This includes generic lists, and lists of a kind, whose items may omit the kind."""
    own = {
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscalingList",
        "items": [{"metadata": {"name": "z"}}],
    }

    code, out, _ = check(
        "a.json", "b.json", a_json=listed(variant("x"), variant("y")), b_json=json.dumps(own)
    )

    assert code == 1
    assert out == [
        "a.json:1: VariantAutoscaling/x valid",
        "a.json:1: VariantAutoscaling/y valid",
        'b.json:1: The VariantAutoscaling "z" is invalid: spec: Required value',
    ]


def test_a_directory_is_searched_for_manifests(check: Check) -> None:
    """They are found by their extension; hidden files are ignored, and other documents are skipped."""
    files = {
        "d__a_yaml": GOOD,
        "d__e__b_yml": GOOD,
        "d__e__c_json": json.dumps(variant("x")),
        "d__e__README_md": "no manifest",
        "d___github__w_yaml": "{",
        "d__values_yaml": "replicas: 3\n",
    }

    code, out, err = check("d", **files)

    assert code == 0
    assert out == [
        "d/a.yaml:1: VariantAutoscaling/x valid",
        "d/e/b.yml:1: VariantAutoscaling/x valid",
        "d/e/c.json:1: VariantAutoscaling/x valid",
    ]
    assert err == ["skipped: 1 document that is not a manifest"]


def test_documents_that_are_not_manifests_are_counted(check: Check) -> None:
    """They are listed after the kinds, as documents: a file may hold several."""
    files = {
        "d__a_yaml": GOOD,
        "d__b_json": json.dumps(deployment("d", product="A100", accelerators=1)),
        "d__values_yaml": "replicas: 3\n---\nreplicas: 4\n",
    }

    assert check("d", **files)[2] == ["skipped: 1 Deployment (apps/v1), 2 documents that are not manifests"]


def test_standard_input_is_checked_like_a_file(check: Check) -> None:
    """Its name in messages is <stdin>."""
    assert check("-", given=GOOD) == (0, ["<stdin>:1: VariantAutoscaling/x valid"], [])


def test_other_kinds_are_skipped_with_a_note(check: Check) -> None:
    """The note counts the objects of each kind."""
    text = listed(
        variant("x"),
        deployment("d", product="A100", accelerators=1),
        deployment("e", product="A100", accelerators=1),
    )

    code, out, err = check("a.json", a_json=text)

    assert (code, len(out)) == (0, 1)
    assert err == ["skipped: 2 Deployment (apps/v1)"]


def test_a_note_is_printed_if_there_is_nothing_to_check(check: Check) -> None:
    """This is no error, but probably unintended."""
    warning = "a.yaml: Warning: nothing in this file was checked: no object is of a supported kind"
    assert check("a.yaml", a_yaml="---\n") == (0, [warning], [])


UNREADABLE = {
    "a missing file": ({}, "a.yaml: error: cannot be read: No such file or directory"),
    "a syntax error": (
        {"a_yaml": "a: 1\nb: [\n"},
        "a.yaml:2: error: yaml: did not find expected node content",
    ),
    "text": (
        {"a_yaml": "hello"},
        "a.yaml:1: error: not an object: a manifest is a mapping with apiVersion and kind",
    ),
    "no kind": (
        {"a_yaml": "apiVersion: v1\nmetadata: {}"},
        "a.yaml:1: error: Object 'kind' is missing: a manifest names its kind and the version of it",
    ),
    "no version": (
        {"a_yaml": "kind: X"},
        "a.yaml:1: error: Object 'apiVersion' is missing: a manifest names its kind and the version of it",
    ),
    "a list of numbers": (
        {"a_yaml": "apiVersion: v1\nkind: List\nitems:\n- 5\n"},
        "a.yaml:4: error: not an object: a manifest is a mapping with apiVersion and kind",
    ),
}


@pytest.mark.parametrize(("files", "want"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_input_is_reported_in_one_line(check: Check, files: dict[str, str], want: str) -> None:
    """The other files are still checked."""
    code, out, _ = check("a.yaml", "b.yaml", b_yaml=GOOD, **files)

    assert code == 2
    assert out == [want, "b.yaml:1: VariantAutoscaling/x valid"]


def test_a_directory_without_manifests_is_an_error(check: Check) -> None:
    """A wrong path must not look like success."""
    code, out, _ = check("d", d__README_md="x")

    assert (code, out) == (2, ["d: error: no *.yaml, *.yml or *.json in this directory"])


@pytest.mark.parametrize("arguments", [[], ["a.yaml", "-o", "table"]], ids=["no file", "a wrong format"])
def test_wrong_usage_exits_with_code_2(arguments: list[str]) -> None:
    """All verbs use this code."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(["check", *arguments])

    assert stopped.value.code == 2


def test_help_fits_a_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The help has examples."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.main(["check", "--help"])

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("  stowplan check") for line in lines)


def test_the_verb_loads_neither_servers_nor_solvers(tmp_path: Path) -> None:
    """So it starts without delay."""
    (tmp_path / "a.yaml").write_text(GOOD, encoding="utf-8")
    program = (
        "import sys; from apiserver import cli; code = cli.main(['check', 'a.yaml']);"
        "print(code, *sys.modules, file=sys.stderr)"
    )
    root = Path(__file__).resolve().parents[3]
    finished = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )

    code, *modules = finished.stderr.split()
    assert code == "0"
    packages = {name.partition(".")[0] for name in modules}
    assert {"aiohttp", "kubernetes_asyncio", "ortools", "numpy", "webhooks"}.isdisjoint(packages)
    ours = {name for name in modules if name.startswith("controller.")}
    assert {".".join(name.split(".")[:3]) for name in ours} == {
        "controller.commands",
        "controller.commands.check",
    }


def test_a_closed_pipe_causes_no_error_message(tmp_path: Path) -> None:
    """`stowplan check ... | head -1` ends quietly."""
    (tmp_path / "a.yaml").write_text("---\n".join([GOOD] * 3000), encoding="utf-8")
    root = Path(__file__).resolve().parents[3]
    command = f"{sys.executable} -m apiserver.cli check {tmp_path}/a.yaml | head -1"
    finished = subprocess.run(["sh", "-c", command], cwd=root, capture_output=True, text=True, check=True)

    assert finished.stdout.count("\n") == 1
    assert finished.stderr == ""


@pytest.mark.parametrize("word", ["--help", "version"])
def test_help_to_a_closed_pipe_prints_no_traceback(word: str) -> None:
    """A pager may be closed before the command has written anything."""
    reading, writing = os.pipe()
    os.close(reading)
    root = Path(__file__).resolve().parents[3]
    with os.fdopen(writing, "wb") as closed:
        command = [sys.executable, "-m", "apiserver.cli", word]
        finished = subprocess.run(
            command, cwd=root, stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )

    assert (finished.returncode, finished.stderr) == (1, "")


def test_an_unknown_option_is_named_before_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    """It is the more likely mistake."""
    with pytest.raises(SystemExit):
        cli.main(["check", "--bogus"])
    assert "--bogus" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["check"])
    assert "at least one FILE is required" in capsys.readouterr().err


def test_the_help_of_the_kubectl_plugin_shows_the_command_of_kubectl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users can type the usage as it is printed."""
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-stowplan"])
    cli.main(["--help"])
    assert capsys.readouterr().out.startswith("usage: kubectl stowplan VERB")
    for verb in ("check", "convert", "plan", "explain", "simulate", "upgrade", "downgrade"):
        with pytest.raises(SystemExit):
            cli.main([verb, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: kubectl stowplan {verb}")
