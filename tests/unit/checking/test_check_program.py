"""`stowplan check` as a person and a pipeline meet it: which files it reads, its usage, how it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.check_verb import GOOD, Check
from support.manifests import deployment, listed, variant

from apiserver import cli


def test_lists_are_unfolded(check: Check) -> None:
    """Lists of anything, and lists of a kind, whose items need not repeat it."""
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


def test_a_directory_is_searched(check: Check) -> None:
    """For manifests by their extension; hidden files and files that are none of them stay unread."""
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


def test_documents_of_other_programs_are_counted(check: Check) -> None:
    """After the kinds, as documents: a file may hold several."""
    files = {
        "d__a_yaml": GOOD,
        "d__b_json": json.dumps(deployment("d", product="A100", accelerators=1)),
        "d__values_yaml": "replicas: 3\n---\nreplicas: 4\n",
    }

    assert check("d", **files)[2] == ["skipped: 1 Deployment (apps/v1), 2 documents that are not manifests"]


def test_standard_input_is_a_file(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name that a shell gives it."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))

    assert check("-") == (0, ["<stdin>:1: VariantAutoscaling/x valid"], [])


def test_other_kinds_are_passed_over_with_a_note(check: Check) -> None:
    """By kind, not one by one."""
    text = listed(
        variant("x"),
        deployment("d", product="A100", accelerators=1),
        deployment("e", product="A100", accelerators=1),
    )

    code, out, err = check("a.json", a_json=text)

    assert (code, len(out)) == (0, 1)
    assert err == ["skipped: 2 Deployment (apps/v1)"]


def test_nothing_to_check_is_said(check: Check) -> None:
    """It is no error, but hardly what was meant."""
    assert check("a.yaml", a_yaml="---\n") == (0, [], ["nothing to check: no object is of a supported kind"])


UNREADABLE = {
    "a file that is not there": ({}, "a.yaml: error: cannot be read: No such file or directory"),
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
def test_what_cannot_be_read_is_a_clear_line(check: Check, files: dict[str, str], want: str) -> None:
    """The other files are checked all the same."""
    code, out, _ = check("a.yaml", "b.yaml", b_yaml=GOOD, **files)

    assert code == 2
    assert out == [want, "b.yaml:1: VariantAutoscaling/x valid"]


def test_a_directory_without_manifests_is_an_error(check: Check) -> None:
    """A wrong path must not look like success."""
    code, out, _ = check("d", d__README_md="x")

    assert (code, out) == (2, ["d: error: no *.yaml, *.yml or *.json in this directory"])


@pytest.mark.parametrize("arguments", [[], ["a.yaml", "-o", "table"]], ids=["no file", "a wrong format"])
def test_wrong_usage_is_two(arguments: list[str]) -> None:
    """As everywhere."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(["check", *arguments])

    assert stopped.value.code == 2


def test_help_fits_a_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With examples."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.main(["check", "--help"])

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("  stowplan check") for line in lines)


def test_it_loads_neither_servers_nor_solvers(tmp_path: Path) -> None:
    """So that it starts at once."""
    (tmp_path / "a.yaml").write_text(GOOD, encoding="utf-8")
    program = (
        "import sys; from apiserver import cli; code = cli.main(['check', 'a.yaml']);"
        "print(code, *{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
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
    assert {"aiohttp", "kubernetes_asyncio", "ortools", "numpy", "webhooks", "controller"}.isdisjoint(modules)


def test_a_reader_that_leaves_early_is_no_error_message(tmp_path: Path) -> None:
    """`stowplan check ... | head -1` ends quietly."""
    (tmp_path / "a.yaml").write_text("---\n".join([GOOD] * 3000), encoding="utf-8")
    root = Path(__file__).resolve().parents[3]
    command = f"{sys.executable} -m apiserver.cli check {tmp_path}/a.yaml | head -1"
    finished = subprocess.run(["sh", "-c", command], cwd=root, capture_output=True, text=True, check=True)

    assert finished.stdout.count("\n") == 1
    assert finished.stderr == ""


@pytest.mark.parametrize("word", ["--help", "version"])
def test_help_that_nobody_reads_is_no_traceback(word: str) -> None:
    """As when a pager is left before the command has written anything."""
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
    """It is the likelier mistake."""
    with pytest.raises(SystemExit):
        cli.main(["check", "--bogus"])
    assert "--bogus" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["check"])
    assert "at least one FILE is required" in capsys.readouterr().err


def test_a_plugin_is_called_as_kubectl_calls_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its help can be typed as it stands."""
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-stowplan"])
    cli.main(["--help"])
    assert capsys.readouterr().out.startswith("usage: kubectl stowplan VERB")
    for verb in ("check", "convert", "plan", "explain", "simulate", "upgrade", "downgrade"):
        with pytest.raises(SystemExit):
            cli.main([verb, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: kubectl stowplan {verb}")
