"""Decoding of files: everything that kubectl reads is decoded, and errors have a reason and a line.

Plain YAML scalars are those of kubectl 1.36, as read from `kubectl create --dry-run=client -o json`.
"""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.paths import FieldPath
from controller.commands.check.documents import read_documents
from controller.commands.check.tree import MOST_LEVELS, Tree, UnreadableDocumentError
from controller.commands.check.yaml_values import key_text, resolve


def values(text: str | bytes) -> list[Any]:
    """Return the values of the documents of a file, and the errors of unreadable ones."""
    data = text.encode() if isinstance(text, str) else text
    found = list(read_documents(data))
    return [tree.value if isinstance(tree, Tree) else tree for tree in found]


READ: dict[str, tuple[str | bytes, list[Any]]] = {
    "nothing": ("", []),
    "separators and comments alone": ("---\n# nothing\n---\n", []),
    "two documents": ("a: 1\n--- # two\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "a document with an end marker": ("a: 1\n...\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "line endings of Windows": ("a: 1\r\n---\r\nb: 2\r\n", [{"a": 1}, {"b": 2}]),
    "a byte order mark": ("\ufeffa: 1\n", [{"a": 1}]),
    "text in UTF-16": ("a: é\n".encode("utf-16"), [{"a": "é"}]),
    "text in a block, before a separator": ("a: |\n  x\n---\nb: 2\n", [{"a": "x\n"}, {"b": 2}]),
    "a separator inside indented text": ("a: |\n  x\n  --- y\n", [{"a": "x\n--- y\n"}]),
    "keys of other types": (
        "{1: a, 1.5: b, yes: c, 0x10: d}",
        [{"1": "a", "1.5": "b", "true": "c", "16": "d"}],
    ),
    "the last of two equal keys wins": ("a: 1\na: 2\n", [{"a": 2}]),
    "an alias": ("a: &x {b: [1]}\nc: *x\n", [{"a": {"b": [1]}, "c": {"b": [1]}}]),
    "an anchor that is used again": ("a: &x 1\nb: *x\nc: &x 2\nd: *x\n", [{"a": 1, "b": 1, "c": 2, "d": 2}]),
    "a merge overrides the members above it": (
        "base: &b {p: 1, q: 2}\nspec:\n  q: 0\n  <<: *b\n  p: 3\n",
        [{"base": {"p": 1, "q": 2}, "spec": {"q": 2, "p": 3}}],
    ),
    "the first of several merged mappings wins": (
        "base: &b {p: 1}\nspec:\n  <<: [*b, {p: 9, r: 3}]\n",
        [{"base": {"p": 1}, "spec": {"p": 1, "r": 3}}],
    ),
    "a quoted merge key is a key": ("'<<': {a: 1}\n", [{"<<": {"a": 1}}]),
    "JSON": ('{"a": [1, 1.0, 1e3, true, null, "\\u00e9\\/"]}', [{"a": [1, 1, 1000, True, None, "é/"]}]),
    "JSON after JSON": ('{"a": 1}\n{"b": 2} {"c": 3}', [{"a": 1}, {"b": 2}, {"c": 3}]),
    "JSON and YAML in one file": ('{"a": 1}\n---\nb: 2\n', [{"a": 1}, {"b": 2}]),
    "JSON with a trailing comma is YAML": ('{"a": 1,}', [{"a": 1}]),
    "a pair of surrogates, and half of one": ('{"a": "\\ud83d\\ude00 \\ud83d"}', [{"a": "😀 \ufffd"}]),
}


@pytest.mark.parametrize(("text", "want"), READ.values(), ids=READ.keys())
def test_a_file_is_read_as_kubectl_reads_it(text: str | bytes, want: list[Any]) -> None:
    """Every document is decoded, in order."""
    assert values(text) == want


BOMB = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 8))

UNREADABLE: dict[str, tuple[str | bytes, int, str]] = {
    "a tab": ("a:\n\tb: 1\n", 2, "begins with a tab: indent with spaces"),
    "an unclosed bracket": ("a: {b: 1\n", 1, "did not find expected ',' or '}'"),
    "a second document without separator": ("a: 1\n...\nb: 2\n", 3, "did not find expected <document start>"),
    "a second document after another line break": (
        "a: 1\r---\rb: 2\n",
        2,
        "insert a line with --- before it",
    ),
    "text after a separator": ("a: 1\n--- foo\n", 2, "invalid Yaml document separator: foo"),
    "bytes that are not UTF-8": (b"a: 1\nb: \xff\n", 2, "not UTF-8: byte 0xff"),
    "a control character": ("a: 1\nb: x\x01\n", 2, "control characters are not allowed"),
    "an unknown anchor": ("a: 1\nb: *x\n", 2, "unknown anchor 'x' referenced"),
    "an anchor within itself": ("a: &x {b: *x}\n", 1, "anchor 'x' value contains itself"),
    "a null as key": ("a: 1\n~: 2\n", 2, "invalid map key"),
    "a list as key": ("a: 1\n[b]: 2\n", 2, "invalid map key"),
    "a merge of a number": ("a: 1\n<<: 5\n", 2, "map merge requires map"),
    "infinity": ("a: 1\nb: .inf\n", 2, "JSON has no number inf"),
    "a tag that does not match its value": ("a: 1\nb: !!int x\n", 2, "cannot decode !!str `x` as a !!int"),
    "an alias bomb": (BOMB, 7, "document contains excessive aliasing"),
    "deeply nested YAML": ("[" * 100_000, 1, f"nested deeper than {MOST_LEVELS} levels"),
    "deeply nested JSON": (
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        1,
        f"nested deeper than {MOST_LEVELS} levels",
    ),
    "JSON with a missing colon": ('{"a": 1,\n "b" 2}', 2, "json: Expecting ':' delimiter"),
    "a JSON number out of range": ('{"a":\n1e400}', 2, "json: the number 1e400 is too large"),
    "a template's value": (
        "a: 1\nname: {{ .Values.name }}\n",
        2,
        "a boolean; if this is a template, render it",
    ),
    "a template's condition": (
        "{{- if .Values.on }}\na: 1\n{{- end }}\n",
        1,
        "; if this is a template, render it",
    ),
    "very many digits": ('{"a": ' + "9" * 10_000 + "}", 1, "is too large"),
}


@pytest.mark.parametrize(("text", "line", "why"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_unreadable_document_gets_one_error_with_a_line_and_a_reason(
    text: str | bytes, line: int, why: str
) -> None:
    """No exception is raised."""
    found = [item for item in values(text) if isinstance(item, UnreadableDocumentError)]

    assert [item.line for item in found] == [line]
    assert why in found[0].message


def test_a_syntax_error_leaves_the_other_documents_readable() -> None:
    """Files are split into documents before these are decoded."""
    first, second = values("a: {\n---\nb: 2\n")

    assert isinstance(first, UnreadableDocumentError)
    assert second == {"b": 2}


SPREAD = """\
# a comment
kind: X
spec:
  list:
  - a: 1

  - a: 2
    b: &b
      c: 3
  map: {x.y: 1}
  again: *b
"""

LINES = {
    "the object": (FieldPath(), 2),
    "a member": (FieldPath().child("spec"), 3),
    "an item": (FieldPath().child("spec", "list").index(1), 7),
    "a member of an item": (FieldPath().child("spec", "list").index(1).child("b", "c"), 9),
    "an absent member": (FieldPath().child("spec", "list").index(1).child("absent", "more"), 7),
    "an absent item": (FieldPath().child("spec", "list").index(5), 4),
    "an entry of a map": (FieldPath().child("spec", "map").key("x.y"), 10),
    "a member below an alias": (FieldPath().child("spec", "again", "c"), 9),
    "an absent member of the object": (FieldPath().child("status", "a"), 2),
}


@pytest.mark.parametrize(("path", "line"), LINES.values(), ids=LINES.keys())
def test_each_field_has_a_line(path: FieldPath, line: int) -> None:
    """An absent field has the line of its nearest parent."""
    (tree,) = read_documents(SPREAD.encode())

    assert isinstance(tree, Tree)
    assert tree.line_of(path) == line


def test_lines_are_counted_from_the_beginning_of_the_file() -> None:
    """This holds for several documents, and for JSON."""
    trees = list(read_documents(b'a: 1\n---\n\n{"b":\n 2}\n{"c":\n\n3}'))

    lines = [
        tree.line_of(FieldPath().child(name))
        for tree, name in zip(trees, "abc", strict=True)
        if isinstance(tree, Tree)
    ]
    assert lines == [1, 4, 6]


PLAIN: dict[str, Any] = {
    "": None,
    "~": None,
    "Null": None,
    "nUll": "nUll",
    "yes": True,
    "On": True,
    "y": True,
    "off": False,
    "N": False,
    "tRUE": "tRUE",
    "5": 5,
    "+5": 5,
    "010": 8,
    "08": 8,
    "0o17": 15,
    "0x1F": 31,
    "-0b101": -5,
    "1_000": 1000,
    "_1": "_1",
    "0x": "0x",
    "1e6": 1000000,
    "1e+06": 1000000,
    "1.0": 1,
    "1.": 1,
    "1.5": 1.5,
    ".5": 0.5,
    ".5_0": 0.5,
    "1e999": "1e999",
    "1:30": "1:30",
    "2001-01-01": "2001-01-01",
    "2001-12-14t21:59:43.10-05:00": "2001-12-14t21:59:43.10-05:00",
    "9223372036854775807": 9223372036854775807,
    "9223372036854775808": 9223372036854776000,
    "18446744073709551616": 18446744073709551616.0,
    "=": "=",
}


@pytest.mark.parametrize(("text", "want"), PLAIN.items(), ids=[text or "nothing" for text in PLAIN])
def test_a_plain_scalar_has_the_value_that_kubectl_decodes(text: str, want: object) -> None:
    """The JSON type is the same, too: true is not 1."""
    found = resolve(text, None, plain=True)

    assert (found, type(found)) == (want, type(want))


def test_a_quoted_scalar_is_text() -> None:
    """This holds even if it resembles another type."""
    assert resolve("on", None, plain=False) == "on"


TAGGED = {
    "a number tagged as text": ("5", "str", "5"),
    "a number tagged as an integer": ("5", "int", 5),
    "an integer tagged as a float is still an integer in JSON": ("3", "float", 3),
    "bytes": ("aGVs bG8=", "binary", "hello"),
    "a custom tag": ("5", "python/object", "5"),
}


@pytest.mark.parametrize(("text", "tag", "want"), TAGGED.values(), ids=TAGGED.keys())
def test_an_explicit_tag_determines_the_type(text: str, tag: str, want: object) -> None:
    """Unknown tags leave the text as it is."""
    assert resolve(text, f"tag:yaml.org,2002:{tag}", plain=True) == want


WRONG = {
    "text tagged as a number": ("x", "tag:yaml.org,2002:int", "cannot decode !!str `x` as a !!int"),
    "no base64": ("a", "tag:yaml.org,2002:binary", "invalid base64"),
    "not a number": (".nan", None, "JSON has no number nan"),
    "infinity": ("-.inf", None, "JSON has no number -inf"),
}


@pytest.mark.parametrize(("text", "tag", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_value_that_json_cannot_express_is_an_error(text: str, tag: str | None, why: str) -> None:
    """The message states the reason."""
    with pytest.raises(ValueError, match=why):
        resolve(text, tag, plain=True)


KEYS = {1: "1", 1.5: "1.5", 1e6: "1e+06", 1.23456789: "1.23456789", "a": "a"}


@pytest.mark.parametrize(("key", "want"), KEYS.items(), ids=KEYS.values())
def test_a_key_becomes_a_member_name(key: object, want: str) -> None:
    """Numbers have the format of Go."""
    assert key_text(key) == want


def test_a_boolean_key_becomes_text() -> None:
    """So `y: 1` is a member named true."""
    assert key_text(resolve("y", None, plain=True)) == "true"
