"""The program `stowplan convert`: its input and output, and its messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.verbs import Stowplan

from apiserver import cli

OTHERS = """\
# the fleet's settings
apiVersion: v1
kind: ConfigMap
metadata: {name:   x}
data:
    a:   "b"   # odd spacing stays
"""
LEGACY = """\
# one variant
apiVersion: llmd.ai/v1alpha1   # the old version
kind: VariantAutoscaling
metadata:
    name: llama   # its name
spec:
    # which model
    modelID: 'meta/llama'   # exactly
    # what the business calls it
    variantID: special-A100-4
    accelerator: "A100"

    acceleratorCount: 4
    sloClassRef: {name: premium, key: opt}
    variantProfile:   # measured in May
        maxBatchSize: 4
        perfParms:
            decodeParms: {alpha: "20.580"}   # ms
            prefillParms: {gamma: "0.10"}
# the end
"""
CURRENT = """\
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata: {name: llama}
spec:
  modelID: m
  scaleTargetRef: {kind: Deployment, name: llama}
  variantCost: "10.50"
"""
VARIANT_TWICE = (
    '{"apiVersion": "llmd.ai/v1alpha2", "kind": "VariantAutoscaling", "metadata": {"name": "a"},'
    ' "spec": {"modelID": "m", "modelID": "n"}}'
)


def test_only_differences_are_rewritten(convert: Stowplan) -> None:
    """Comments, order, quotes and spacing of everything else stay, and so does every other document."""
    code, out, err = convert(
        "-f", "a.yaml", "--to", "v1alpha2", "--drop-kept", a_yaml=f"{OTHERS}---\n{LEGACY}--- # next\n{OTHERS}"
    )

    expected = (
        LEGACY.replace("v1alpha1   #", "v1alpha2   #")
        .replace("    # what the business calls it\n    variantID: special-A100-4\n", "")
        .replace(
            "# the end",
            "    scaleTargetRef:\n      apiVersion: apps/v1\n      kind: Deployment\n      name: llama\n"
            "# the end",
        )
    )
    assert out == f"{OTHERS}---\n{expected}--- # next\n{OTHERS}"
    assert err == [
        "a.yaml:9: VariantAutoscaling/llama: lost: spec.variantID does not exist in v1alpha2",
        "a.yaml:16: 1 comment lost with spec.variantID",
    ]
    assert code == 0


def test_converting_there_and_back_restores_every_field(convert: Stowplan) -> None:
    """Meanwhile, the annotation keeps what v1alpha2 cannot express, and a message names it."""
    _, there, err = convert("-f", "-", "--to", "v1alpha2", given=LEGACY)
    _, back, _ = convert("-f", "-", "--to", "v1alpha1", given=there)

    assert "llmd.ai/kept-by-conversion" in there
    assert err == [
        "<stdin>:2: VariantAutoscaling/llama: spec.variantID kept in the annotation"
        " llmd.ai/kept-by-conversion: v1alpha2 has no such field",
        "<stdin>:9: 1 comment lost with spec.variantID",
    ]
    moved = LEGACY.replace("    # what the business calls it\n    variantID: special-A100-4\n", "")
    assert back == moved.replace("# the end", "    variantID: special-A100-4\n# the end")


def test_an_omitted_target_is_omitted_again_after_converting_back(convert: Stowplan) -> None:
    """The annotation also keeps that the field was absent; --drop-kept omits the annotation."""
    plain = LEGACY.replace("special", "meta/llama")
    _, there, err = convert("-f", "-", "--to", "v1alpha2", given=plain)
    _, back, _ = convert("-f", "-", "--to", "v1alpha1", given=there)
    _, dropped, _ = convert("-f", "-", "--to", "v1alpha2", "--drop-kept", given=plain)

    assert "scaleTargetRef" in there
    assert "scaleTargetRef" not in back
    assert err == ["<stdin>:9: 1 comment lost with spec.variantID"]
    assert "kept-by-conversion" not in dropped


def test_lost_comments_in_a_rewritten_part_are_reported(convert: Stowplan) -> None:
    """The entry in use moves to other fields, and its comments cannot."""
    entry = "{acc: A100, accCount: 1, perfParms: {}, maxBatchSize: 4}"
    profile = f"modelProfile:\n    accelerators: # measured\n    # the fast one\n    - {entry} # in May\n"
    text = PARTIAL.partition("  accelerator")[0] + f"  {profile}  sloClassRef: {{name: a, key: b}} # stays\n"

    _, out, err = convert("-f", "-", "--to", "v1alpha2", given=f"{OTHERS}---\n{text}")

    assert out.count("#") == OTHERS.count("#") + 1
    assert err[-1] == "<stdin>:15: 3 comments lost with spec.modelProfile"


PARTIAL = """\
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata:
  name: llama
spec:
  modelID: m
  accelerator: A100
  sloClassRef: {name: premium, key: opt}
"""


@pytest.mark.parametrize("options", [[], ["--drop-kept"]])
def test_fields_that_the_result_has_are_not_reported_as_lost(convert: Stowplan, options: list[str]) -> None:
    """An incomplete shape is kept for the conversion back, although v1alpha2 has all of its fields."""
    _, out, err = convert("-f", "-", "--to", "v1alpha2", *options, given=PARTIAL)
    _, with_one, told = convert(
        "-f", "-", "--to", "v1alpha2", *options, given=f"{PARTIAL}  variantID: m-A-1\n"
    )

    assert "  accelerator: A100\n  sloClassRef: {name: premium, key: opt}\n" in out
    assert err == []
    assert "variantID" not in with_one.partition("spec:")[2]
    assert [line.partition(" kept ")[0].partition(" does ")[0].split()[-1] for line in told] == [
        "spec.variantID"
    ]


@pytest.mark.parametrize(
    ("metadata", "is_told"),
    [
        pytest.param("{}", True, id="no name"),
        pytest.param("{name: ''}", True, id="an empty name"),
        pytest.param("{generateName: a-}", True, id="a generated name"),
        pytest.param(
            "{ownerReferences: [{kind: Deployment, controller: true, name: d}]}",
            False,
            id="the name of an owner",
        ),
    ],
)
def test_a_target_without_a_name_is_reported(convert: Stowplan, metadata: str, *, is_told: bool) -> None:
    """It would get the name of the object, which has none."""
    text = PARTIAL.replace("\n  name: llama", f" {metadata}")

    _, out, err = convert("-f", "a.yaml", "--to", "v1alpha2", a_yaml=f"{OTHERS}---\n{text}")

    told = "VariantAutoscaling: metadata.name is missing, so spec.scaleTargetRef.name"
    assert [line.partition(", which")[0] for line in err] == [f"a.yaml:8: {told}"] * is_told
    assert ("name: d\n" in out) is not is_told


def test_an_edit_after_conversion_leaves_a_custom_identifier_unchanged(convert: Stowplan) -> None:
    """It is not derived, so an edit of the model does not change it."""
    _, there, _ = convert("-f", "-", "--to", "v1alpha2", given=LEGACY)
    _, back, _ = convert("-f", "-", "--to", "v1alpha1", given=there.replace("'meta/llama'", "mistral"))

    assert "modelID: mistral   # exactly" in back
    assert "variantID: special-A100-4" in back


def test_an_object_in_the_desired_version_keeps_every_byte(convert: Stowplan) -> None:
    """Nothing is reformatted."""
    code, out, err = convert("-f", "a.yaml", "--to", "v1alpha1", a_yaml=LEGACY)

    assert (code, out, err) == (0, LEGACY, [])


def test_lists_are_converted_item_by_item(convert: Stowplan) -> None:
    """This includes generic lists, and lists of the kind, whose items may omit it."""
    anything = {"apiVersion": "v1", "kind": "List", "items": [json.loads('{"kind":"Pod","apiVersion":"v1"}')]}
    own = {"apiVersion": "llmd.ai/v1alpha2", "kind": "VariantAutoscalingList"}
    item = {"metadata": {"name": "a"}, "spec": {"modelID": "m", "scaleTargetRef": {"kind": "D", "name": "d"}}}

    _, out, _ = convert(
        "-f", "a.json", "--to", "v1alpha1", "-o", "json", a_json=json.dumps(own | {"items": [item]})
    )
    code, same, err = convert("-f", "b.json", "--to", "v1alpha1", b_json=json.dumps(anything))

    assert json.loads(out) == own | {"apiVersion": "llmd.ai/v1alpha1", "items": [item]}
    assert json.loads(same) == anything
    assert err == ["nothing to convert: no VariantAutoscaling was found"]
    assert code == 0


def test_comments_in_the_items_of_a_list_stay(convert: Stowplan) -> None:
    """The output of `kubectl get -o yaml` is edited like any other manifest."""
    indented = CURRENT.replace("\n", "\n  ").rstrip()
    pod = "- kind: Pod # two\n  apiVersion: v1\n"
    text = f"apiVersion: v1\nkind: List\nitems:\n{pod}- {indented}  # dear\n  status: {{decision: {{}}}}\n"

    _, out, err = convert("-f", "-", "--to", "v1alpha1", "--drop-kept", given=text)

    assert out == text.replace("v1alpha2", "v1alpha1").replace("{decision: {}}", "{}")
    assert err == ["<stdin>:6: VariantAutoscaling/llama: lost: status.decision does not exist in v1alpha1"]


def test_diff_prints_the_change_and_sets_the_exit_code(convert: Stowplan) -> None:
    """Formatters do the same in a pipeline."""
    code, out, _ = convert("-f", "a.yaml", "--to", "v1alpha1", "--diff", a_yaml=CURRENT)
    unchanged, nothing, _ = convert("-f", "a.yaml", "--to", "v1alpha2", "--diff")

    assert code == 1
    assert out.splitlines()[:2] == ["--- a.yaml", "+++ a.yaml (converted)"]
    assert [line for line in out.splitlines()[2:] if line[0] in "+-"] == [
        "-apiVersion: llmd.ai/v1alpha2",
        "+apiVersion: llmd.ai/v1alpha1",
    ]
    assert (unchanged, nothing) == (0, "")


def test_files_are_rewritten_in_place(convert: Stowplan, tmp_path: Path) -> None:
    """Mode, byte order mark and line endings stay; files without an object to convert are not written."""
    data = b"\xef\xbb\xbf" + CURRENT.replace("\n", "\r\n").encode()
    (tmp_path / "b.yaml").write_text(OTHERS)
    (tmp_path / "b.yaml").chmod(0o400)
    (tmp_path / "a.yaml").touch(0o640)

    code, out, _ = convert("-f", ".", "--to", "v1alpha1", "--in-place", a_yaml=data)

    assert (code, out) == (0, "")
    assert (tmp_path / "a.yaml").read_bytes() == data.replace(b"v1alpha2", b"v1alpha1")
    assert (tmp_path / "a.yaml").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "b.yaml"]


def test_a_release_can_be_given_as_the_shape(convert: Stowplan) -> None:
    """Lost fields and placeholders are reported, each with its path."""
    code, out, err = convert(
        "-f",
        "-",
        "--to",
        "v1alpha1",
        "--shape",
        "v0.0.4",
        given=CURRENT.replace("name: llama}\n  v", "name: d}\n  v"),
    )

    assert code == 0
    assert "modelProfile:" in out
    assert "scaleTargetRef" not in out
    assert [line.split(": ")[2:4] for line in err] == [
        ["lost", "spec.variantCost"],
        ["lost", "spec.scaleTargetRef"],
        ["placeholder", "spec.modelProfile.accelerators[0].acc"],
        ["placeholder", "spec.modelProfile.accelerators[0].accCount"],
        ["placeholder", "spec.modelProfile.accelerators[0].perfParms"],
        ["placeholder", "spec.modelProfile.accelerators[0].maxBatchSize"],
        ["placeholder", "spec.sloClassRef"],
    ]


def test_the_format_changes_only_on_request(convert: Stowplan) -> None:
    """JSON stays JSON and YAML stays YAML, unless -o requests the other."""
    value = {"apiVersion": "llmd.ai/v1alpha2", "kind": "VariantAutoscaling", "metadata": {"name": "a"}}
    text = json.dumps(value, indent=4) + "\n"

    _, as_it_was, _ = convert("-f", "a.json", "--to", "v1alpha1", a_json=text)
    _, as_yaml, _ = convert("-f", "a.json", "--to", "v1alpha1", "-o", "yaml")
    _, as_json, _ = convert("-f", "b.yaml", "--to", "v1alpha1", "-o", "json", b_yaml=CURRENT)

    assert as_it_was == text.replace("v1alpha2", "v1alpha1")
    assert as_yaml.startswith("---\napiVersion: llmd.ai/v1alpha1\n")
    assert json.loads(as_json)["spec"]["variantCost"] == "10.50"


def test_status_and_unknown_fields_are_kept(convert: Stowplan) -> None:
    """Only a server knows which fields exist, so nothing is pruned offline."""
    text = f"{CURRENT}  unheard-of: 1\nstatus:\n  decision: {{reason: Steady, message: ''}}\n  x: [1, 2]\n"

    _, out, err = convert("-f", "-", "--to", "v1alpha1", given=text)
    _, back, _ = convert("-f", "-", "--to", "v1alpha2", given=out)

    assert "  unheard-of: 1\nstatus:\n  x: [1, 2]\n" in out
    assert "status.decision kept" in err[0]
    assert "decision:" in back


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"a_yaml": "a: b\n---\nb: [\n"}, "a.yaml:3: error: yaml:", id="a syntax error"),
        pytest.param({}, "a.yaml: error: cannot be read: No such file", id="a missing file"),
        pytest.param(
            {"a_yaml": f"{OTHERS}---\n{CURRENT.replace('v1alpha2', 'v1beta1')}"},
            "a.yaml:8: error: VariantAutoscaling has no version llmd.ai/v1beta1: its versions are"
            " v1alpha1, v1",
            id="an unknown version",
        ),
        pytest.param(
            {"a_yaml": f"{OTHERS}---\n{CURRENT}  modelID: n\n"},
            'a.yaml:15: error: duplicate field "spec.modelID": keep one of them',
            id="a field that occurs twice",
        ),
        pytest.param(
            {
                "a_yaml": json.dumps({"apiVersion": "v1", "kind": "List", "items": ["VA"]}, indent=1).replace(
                    '"VA"', VARIANT_TWICE
                )
            },
            'a.yaml:5: error: duplicate field "items[0].spec.modelID": keep one of them',
            id="a field that occurs twice in a list",
        ),
    ],
)
def test_unreadable_input_is_reported_with_its_line(
    convert: Stowplan, files: dict[str, str], expected: str
) -> None:
    """Nothing is printed then: a part of the objects is not a usable manifest."""
    code, out, err = convert("-f", "a.yaml", "--to", "v1alpha1", **files)

    assert (code, out) == (2, "")
    assert err[0].startswith(expected)
    assert err[1:] == ["nothing is printed because of the errors above"]


def test_duplicate_fields_of_other_documents_are_accepted(convert: Stowplan) -> None:
    """They stay as they are."""
    text = f"{OTHERS}data: {{}}\n"

    code, out, err = convert("-f", "a.yaml", "--to", "v1alpha1", a_yaml=f"{text}---\n{CURRENT}")

    assert (code, err) == (0, [])
    assert out.startswith(text)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--to", "v1alpha1"], id="no file"),
        pytest.param(["-f", "a.yaml"], id="no version"),
        pytest.param(["-f", "a", "--to", "v1alpha2", "--shape", "legacy"], id="a shape of v1alpha2"),
        pytest.param(["-f", "-", "--to", "v1alpha1", "--in-place"], id="no file to write"),
        pytest.param(["-f", "a", "--to", "v1alpha1", "--diff", "--in-place"], id="two modes at once"),
    ],
)
def test_wrong_usage_exits_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """All verbs use this code."""
    with pytest.raises(SystemExit) as end:
        cli.main(["convert", *arguments])

    assert end.value.code == 2
    assert "stowplan convert: error:" in capsys.readouterr().err


def test_help_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    """The help has examples."""
    with pytest.raises(SystemExit):
        cli.main(["convert", "--help"])

    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 45
    assert max(map(len, text.splitlines())) <= 80
    assert "examples:" in text


def test_the_verb_loads_neither_servers_nor_solvers() -> None:
    """It runs for one file at a time, so it loads declarations only."""
    program = "import sys, controller.commands.convert.run; print(*sys.modules)"

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert not {"aiohttp", "kubernetes_asyncio", "ortools", "numpy"} & set(found.split())
