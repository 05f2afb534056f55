"""Edits of YAML and JSON text, and of files: in any form, the values are right, and all else stays."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.variants import valid
from support.verbs import Stowplan

from apiserver.kinds.llmd.conversion import HUB, SPOKE, convert
from apiserver.schema.json import Json, JsonValue, same
from controller.commands.check.documents import Source, read_documents
from controller.commands.check.tree import Tree
from controller.commands.check.yaml_values import as_yaml
from controller.commands.convert.documents import convert_file
from controller.commands.convert.objects import Conversion, ConversionOptions, convert_value
from controller.commands.convert.splice import splice


def said(text: str) -> JsonValue:
    """Return the value of a text with one document."""
    [tree] = read_documents(text.encode())
    assert isinstance(tree, Tree)
    return tree.value


@settings(max_examples=often(60), deadline=None)
@given(st.integers(0, 2**62), st.sampled_from([SPOKE, HUB]), st.sampled_from([SPOKE, HUB]))
def test_a_converted_file_has_the_values_of_conversion(seed: int, version: str, wanted: str) -> None:
    """The objects have all shapes, and are alone, with a comment, or in a list."""
    value = said(as_yaml(valid(seed, version)))
    expected = convert(value, wanted)
    listed = {"apiVersion": "v1", "kind": "List", "items": [value, {"kind": "Pod", "apiVersion": "v1"}]}
    change = functools.partial(convert_value, options=ConversionOptions(version=wanted.rpartition("/")[2]))

    for text in (as_yaml(value), as_yaml(value).replace("\n", "  # why\n", 1), as_yaml(listed)):
        file = convert_file(Source(name="f", data=text.encode()), change)
        [found] = file.values
        assert same(said(file.after), found)
        one = found["items"][0] if found["kind"] == "List" else found
        assert same(one["spec"], expected["spec"])
        assert not any("without its comments" in note.text for note in file.notes)


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        pytest.param("a: 1 # x\nb: 2\n", {"a": 7, "b": 2}, "a: 7 # x\nb: 2\n", id="a changed value"),
        pytest.param("# top\n\na: 1\n# b's\nb: 2\nc: 3\n", {"a": 1, "c": 3},
                     "# top\n\na: 1\nc: 3\n", id="a removed field"),
        pytest.param("s:\n  a: 1\n  # last\n# out\nt: 2", {"s": {"a": 1, "b": "x"}, "t": 2},
                     "s:\n  a: 1\n  b: x\n  # last\n# out\nt: 2", id="an added field"),
        pytest.param("a: 1", {"a": 1, "b": [1]}, "a: 1\nb:\n- 1", id="no line break at the end"),
        pytest.param("a: {b: 1, c: 2} # f\n", {"a": {"b": 1}}, "a: {b: 1} # f\n", id="flow style"),
        pytest.param('a: [{"b": 1}]\n', {"a": [{"b": "x"}, 1]},
                     'a: [{"b": "x"}, 1]\n', id="flow style of JSON"),
        pytest.param("a: {b: 1}\n", {"a": {"b": "on", "c": "x: 1, {y}" + " w" * 999}},
                     "a: {b: \"on\", c: 'x: 1, {y}" + " w" * 999 + "'}\n", id="flow style with odd text"),
        pytest.param("a: {b: 1}\n", {"a": {"b": "x\ny"}}, 'a: {"b": "x\\ny"}\n', id="flow style, line break"),
        pytest.param("a: |\n  x\n  y\n\n# c\nb: 1\n", {"a": "z", "b": 1},
                     "a: z\n\n# c\nb: 1\n", id="a block scalar"),
        pytest.param("a:\n- x: 1 # one\n- x: 2\n", {"a": [{"x": 1}, {"x": 3}]},
                     "a:\n- x: 1 # one\n- x: 3\n", id="a changed item"),
        pytest.param("a:\n- 1\n- 2\n# c\nb: 1\n", {"a": [3], "b": 1},
                     "a:\n- 3\n# c\nb: 1\n", id="a shorter list"),
        pytest.param("a: 'y'\n", {"a": "on"}, 'a: "on"\n', id="text that would be a boolean"),
        pytest.param("a:\nb: 1\n", {"a": 2, "b": 1}, "a: 2\nb: 1\n", id="a null gets a value"),
    ],
)  # fmt: skip
def test_an_edit_changes_only_its_place(text: str, new: Json, expected: str) -> None:
    """Comments beside and above unchanged parts stay."""
    edited = splice(text, said(text), new).text

    assert edited == expected
    assert same(said(edited), new)


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        pytest.param("a: 1 # x\nb: 2\n", {"a": 7, "b": 2}, [], id="a changed value"),
        pytest.param("# top\n\n# of a\na: 1 # x\n# last\n", {"b": 2}, [("a", 2, 2)], id="above and behind"),
        pytest.param("b: 1\ns:\n- c: # is\n    d: '# not'\n    # is\n    e: x#not\n  f: 1\n",
                     {"b": 1, "s": [{"f": 1}]}, [("s", 2, 2)], id="number signs in text"),
        pytest.param("a: | # is\n  # not\n  x\n# is, and stays\nb: 1\n", {"b": 1},
                     [("a", 1, 0)], id="a block scalar"),
        pytest.param("a: {b: 1, # is\n  c: 2} # stays\n", {"a": {"b": 1}}, [("a", 1, 0)], id="flow style"),
        pytest.param("{b: 1, # is\n c: 2}\n", {"b": 1}, [("", 1, 0)], id="only flow style"),
        pytest.param("a: # is\r\n  b: 1\r\nc: 1\r\n", {"a": "x", "c": 1}, [("a", 1, 0)], id="another type"),
    ],
)  # fmt: skip
def test_lost_comments_are_counted(text: str, new: Json, expected: list[tuple[str, int, int]]) -> None:
    """They are counted by the field that was removed or rewritten; comments that stay are not."""
    result = splice(text, said(text), new)

    assert [(part.path, part.count, part.lines_above) for part in result.lost_comments] == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: &x {b: 1}\nc: *x\n", id="an anchor that changes for one of its users"),
        pytest.param("base: &x\n  b: 1\na:\n  <<: *x\n  d: 1\nc: {b: 1}\n", id="a merged field"),
        pytest.param("{a: {b: 1}, c: {b: 1}}\n", id="only flow style"),
    ],
)
def test_a_form_that_cannot_be_edited_is_rewritten(text: str) -> None:
    """It loses its comments, but no values."""
    new = said(text) | {"a": {"b": 2}}

    file = convert_file(Source(name="f", data=text.encode()), lambda _: Conversion(value=new, count=1))

    assert same(said(file.after), new)


VALUE = {
    "apiVersion": "llmd.ai/v1alpha2",
    "kind": "VariantAutoscaling",
    "metadata": {"name": "ä, b: c", "labels": {}},
    "spec": {"x": [1, {"y": 0.5}], "z": [], "scaleTargetRef": {"kind": "D", "name": "d"}},
}
LINE = json.dumps(VALUE, ensure_ascii=False)
INDENTED = json.dumps(VALUE, indent=3, ensure_ascii=False)
LEGACY = (
    '{"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "metadata": {"name": "a"}, "spec":'
    ' {"weight": 1.50}}'
)
DIGITS = "123456789012345678901234567890.10"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LINE + "\n", id="on one line"),
        pytest.param(INDENTED, id="indented by three"),
        pytest.param(json.dumps(VALUE, indent="\t", ensure_ascii=False) + "\n\n", id="indented by tabs"),
        pytest.param(INDENTED.replace("\n", "\r\n") + "\r\n", id="with line endings of Windows"),
        pytest.param(json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False) + "\n", id="compact"),
        pytest.param(LINE.replace("0.5", DIGITS), id="a number of many digits"),
        pytest.param(LINE.replace("0.5", "5e-1"), id="a number in another form"),
        pytest.param(json.dumps(VALUE), id="escaped"),
        pytest.param(f"\n{LINE}\r\n  {INDENTED}\n\n{LINE}", id="several in one file"),
    ],
)
def test_a_usual_style_keeps_every_byte(convert: Stowplan, text: str) -> None:
    """Only the version changes, without a message."""
    code, out, err = convert("-f", "a.json", "--to", "v1alpha1", "--in-place", a_json=text)
    _, back, _ = convert("-f", "a.json", "--to", "v1alpha2")
    _, as_it_is, _ = convert("-f", "a.json", "--to", "v1alpha1")

    ended = text if text.endswith("\n") else f"{text}\n"
    assert (code, out, err) == (0, "", [])
    assert as_it_is == ended.replace("v1alpha2", "v1alpha1")
    assert back == ended


def test_other_objects_of_a_list_keep_their_numbers(convert: Stowplan) -> None:
    """The list is changed, because one of its objects is converted, and gets another field."""
    other = f'{{"kind": "X", "apiVersion": "x/v1", "n": [{DIGITS}, 5e-1, 1.0]}}'
    text = f'{{"kind": "List", "apiVersion": "v1", "items": [{other}, {LEGACY}]}}\n'

    code, out, err = convert("-f", "a.json", "--to", "v1alpha2", "--drop-kept", "--in-place", a_json=text)
    _, converted, _ = convert("-f", "a.json", "--to", "v1alpha2")

    assert (code, out, err) == (0, "", [])
    target = '"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}'
    expected = LEGACY.replace("v1alpha1", "v1alpha2").replace("1.50", f"1.50, {target}")
    assert converted == text.replace(LEGACY, expected)


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        pytest.param(
            INDENTED.replace('"spec"', ' "spec"').replace("0.5", DIGITS),
            INDENTED.replace("0.5", DIGITS),
            "spacing is reformatted",
            id="uneven indentation",
        ),
        pytest.param(
            LINE.replace("b: c", "b: \\ud800"),
            LINE.replace("b: c", "b: \ufffd"),
            "numbers and spacing are reformatted",
            id="half of a surrogate pair",
        ),
    ],
)
def test_a_reformatted_document_is_reported(convert: Stowplan, text: str, expected: str, note: str) -> None:
    """It gets the nearest usual style."""
    code, out, err = convert("-f", "a.json", "--to", "v1alpha1", a_json=text)

    assert (code, out) == (0, expected.replace("v1alpha2", "v1alpha1") + "\n")
    assert err == [f"a.json:1: {note}"]


def test_an_unchanged_document_keeps_every_byte(convert: Stowplan) -> None:
    """It keeps even an unusual style, and nothing is reported."""
    text = LINE.replace(": [", " : [").replace("0.5", "5e-1")

    code, out, err = convert("-f", "a.json", "--to", "v1alpha2", a_json=text)

    assert (code, out, err) == (0, text + "\n", [])


TEXT = "apiVersion: llmd.ai/v1alpha2\nkind: VariantAutoscaling\nmetadata: {name: a}\nspec: {modelID: m}\n"
FULL_DISK = """\
import resource, sys
from apiserver import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))
sys.exit(cli.main(["convert", "-f", "a.yaml", "--to", "v1alpha1", "--in-place"]))
"""


def _someone_else() -> tuple[int, int]:
    """Return an owner and a group that a file may get here, other than those of a new file."""
    if os.geteuid() == 0:
        return 4321, 4322
    return os.geteuid(), next((group for group in os.getgroups() if group != os.getegid()), os.getegid())


def test_owner_group_and_mode_stay(convert: Stowplan, tmp_path: Path) -> None:
    """This includes the mode bits that a change of the owner clears."""
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    os.chown(path, *_someone_else())
    path.chmod(0o2664)

    code, _, err = convert("-f", "a.yaml", "--to", "v1alpha1", "--in-place")

    assert (code, err) == (0, [])
    assert "v1alpha1" in path.read_text()
    status = path.stat()
    assert (status.st_uid, status.st_gid) == _someone_else()
    assert status.st_mode & 0o7777 == 0o2664


def test_a_symbolic_link_still_points_to_the_file(convert: Stowplan, tmp_path: Path) -> None:
    """The file that it points to is written."""
    (tmp_path / "real.yaml").write_text(TEXT)
    (tmp_path / "a.yaml").symlink_to("real.yaml")

    code, _, _ = convert("-f", "a.yaml", "--to", "v1alpha1", "--in-place")

    assert code == 0
    assert (tmp_path / "a.yaml").is_symlink()
    assert "v1alpha1" in (tmp_path / "real.yaml").read_text()


def test_a_full_disk_leaves_the_file_unchanged(tmp_path: Path) -> None:
    """No other file is left behind, and the error is reported."""
    (tmp_path / "a.yaml").write_text(TEXT)

    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr == "a.yaml: error: cannot be written: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
    assert (tmp_path / "a.yaml").read_text() == TEXT


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_write_permission_is_reported(convert: Stowplan, tmp_path: Path) -> None:
    """The exit code is that of an error."""
    (tmp_path / "a.yaml").write_text(TEXT)
    tmp_path.chmod(0o500)

    code, _, err = convert("-f", "a.yaml", "--to", "v1alpha1", "--in-place")
    tmp_path.chmod(0o700)

    assert (code, err) == (2, ["a.yaml: error: cannot be written: Permission denied"])
