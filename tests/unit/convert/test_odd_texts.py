"""Conversion of arbitrary files: a correct result, or an error with a line."""

from __future__ import annotations

import functools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import often
from support.variants import odd, valid

from apiserver.kinds.conversion import convert
from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.kinds.llmd.shapes import without_annotation
from apiserver.schema.json import JsonValue, same
from controller.commands.check.documents import Source, read_documents
from controller.commands.check.tree import Tree
from controller.commands.check.yaml_values import as_yaml
from controller.commands.convert.documents import ConvertedFile, convert_file
from controller.commands.convert.objects import ConversionOptions, convert_value

VARIANT = '{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{"name":"a"},"spec":{}}'
BLOCK = """\
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata: &m
  name: a
spec:
\t# a tab
  modelID: m
  variantID: m-A100-1   # behind
"""
FRAGMENTS = (
    VARIANT, VARIANT + "\n", VARIANT + " " + VARIANT, BLOCK, BLOCK.replace("\t", "  "),
    "a: >-\n", "%YAML 1.2\n",
    "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nspec: &x {variantID: m-A-1}\n",
    "status: *x\n", "x: &x 1\ny: &x 2\n", "<<: *x\n", "? [a]\n: b\n", "- a\n- b\n", "a: !!binary abc\n",
    "{apiVersion: llmd.ai/v1alpha1, # why\n kind: VariantAutoscaling, spec: {modelID: m}}\n",
    "kind: VariantAutoscalingList\napiVersion: llmd.ai/v1alpha1\nitems:\n- spec: {variantID: x-y-1}\n- 7\n",
    "---\n", "--- # c\n", "---\r\n", "--- x\n", "...\n", "\n", "\r\n", "\r", "\r---\r", "# only a comment\n",
    "null\n", "~", "\ufeff", "\t", " ", "  ", "{", "}", "[", "]", '"', "'", ":", ",", "a: |\n  x\n",
    "\x00", "\x85", "\u2028---\n", "🦙", "NaN", "1e400", "9" * 5000, "\\ud800", "- " * 250, '{"a":' * 250,
)  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    """Return texts that resemble manifests: fragments in a row, and whole manifests, cut and mixed."""
    fragment = st.sampled_from(FRAGMENTS)
    fragments = st.lists(fragment, max_size=7).map("".join)
    whole = st.builds(_manifest, st.integers(0, 2**62), st.sampled_from([SPOKE, HUB]), st.integers(0, 4))
    cut = st.builds(lambda text, end: text[: end % (len(text) + 1)], whole, st.integers(0, 2**16))
    followed = st.builds(lambda text, end: f"{text}{end}", whole, fragment)
    sound = st.lists(whole, min_size=1, max_size=3).map("\n---\n".join)
    mixed = st.lists(st.one_of(whole, followed, cut, fragments), max_size=4).map("---\n".join)
    ends = st.sampled_from(["\n", "\r\n", "\n\n"])
    return st.builds(
        lambda text, end: text.replace("\n", end), st.one_of(sound, followed, cut, fragments, mixed), ends
    )


def _manifest(seed: int, version: str, form: int) -> str:
    value = (valid if form % 2 else odd)(seed, version)
    if form == 0:
        return json.dumps(value) + "\n" + json.dumps(value, indent=2) + "\n"
    return json.dumps(value, ensure_ascii=False) if form == 1 else as_yaml(value)


def converted(data: bytes, api_version: str) -> ConvertedFile:
    """Return a file converted to a version."""
    wanted = ConversionOptions(version=api_version.rpartition("/")[2])
    return convert_file(Source(name="f", data=data), functools.partial(convert_value, options=wanted))


def read(data: bytes) -> list[JsonValue]:
    """Return the values of the documents of a file, without unreadable ones."""
    return [tree.value for tree in read_documents(data) if isinstance(tree, Tree)]


def is_variant(value: JsonValue) -> bool:
    """Tell whether a value is an object that can be converted."""
    is_of_kind = isinstance(value, dict) and value.get("kind") == "VariantAutoscaling"
    return is_of_kind and value.get("apiVersion") in {SPOKE, HUB}


@settings(max_examples=often(100), deadline=None)
@given(texts(), st.sampled_from([SPOKE, HUB]), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_any_text_is_converted_correctly_or_rejected_with_a_line(
    text: str, wanted: str, encoding: str
) -> None:
    """The values are those that the webhook would return, and the converted text has these values."""
    data = text.encode(encoding)
    file = converted(data, wanted)

    if file.problems:
        assert all(problem.line >= 1 and problem.text for problem in file.problems)
        return
    given = read(data)
    assert same(read(file.after.encode(file.encoding)), file.values)
    assert len(given) == len(file.values)
    for was, now in zip(given, file.values, strict=True):
        if is_variant(was):
            assert same(without_annotation(now), without_annotation(convert(was, wanted)))


@settings(max_examples=often(100), deadline=None)
@given(st.binary(max_size=40))
def test_arbitrary_bytes_raise_no_exception(data: bytes) -> None:
    """This includes bytes that are not text."""
    file = converted(b'{"a":1}\n---\n' + data, HUB)

    assert file.problems or file.before == file.after


@pytest.mark.parametrize("between", ["\n", "\n---\n", "\n--- # c\n", " "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_adjacent_json_documents_are_all_converted(between: str, newline: str) -> None:
    """The text between them stays."""
    text = f"{VARIANT}{between}{VARIANT}\nnull\n".replace("\n", newline) + '{"kind":"Pod", "x":1.0}'

    file = converted(text.encode(), HUB)

    assert [value.get("apiVersion") for value in file.values] == [HUB, HUB, None]
    assert same(read(file.after.encode()), file.values)
    assert file.after.endswith(f'}}{newline}null{newline}{{"kind":"Pod", "x":1.0}}')


def test_only_the_document_that_changes_is_rewritten() -> None:
    """If two documents are in one part, the other keeps every byte."""
    other = VARIANT.replace("v1alpha1", "v1alpha2").replace(",", " ,\t")

    file = converted(f"{other}\n{VARIANT}\n".encode(), HUB)

    assert file.after.startswith(f"{other}\n")
    assert read(file.after.encode())[1]["apiVersion"] == HUB


def test_an_anchor_that_is_defined_twice_costs_only_the_comments() -> None:
    """Such a document can be converted, but not edited in place."""
    text = "apiVersion: &x llmd.ai/v1alpha2 # c\nkind: VariantAutoscaling\nspec: {modelID: &x m}\n"

    file = converted(text.replace("\n", "\r\n").encode(), SPOKE)

    assert file.after.startswith("apiVersion: llmd.ai/v1alpha1\r\nkind:")
    assert "without its comments" in file.notes[-1].text


def test_a_second_document_without_a_separator_is_rejected() -> None:
    """Parsers read one of the two, so rewriting the text would drop the other."""
    text = f"a: 1\n---\n{BLOCK}".replace("\t", "  ").replace("\n", "\r")

    [problem] = converted(text.encode(), HUB).problems

    assert problem.line == 2
    assert "---" in problem.text


def test_aliases_that_expand_beyond_the_nesting_limit_are_rejected() -> None:
    """The expanded text would be nested too deeply for recursion."""
    steps = (f"l{n}: &l{n} {'[' * 150}*l{n - 1}{']' * 150}\n" for n in range(1, 9))
    [problem] = converted(f"{BLOCK}l0: &l0 1\n{''.join(steps)}".replace("\t", "  ").encode(), HUB).problems

    assert problem.line == 1
    assert "deeper than 200 levels" in problem.text


def test_nesting_at_the_limit_is_converted() -> None:
    """The document has a form that must be rewritten as a whole."""
    text = f"{BLOCK}a: &x 1\nb: &x 2\nc: {'[' * 199}{']' * 199}\n".replace("\t", "  ")

    file = converted(text.encode(), HUB)

    assert same(read(file.after.encode()), file.values)
    assert file.values[0]["apiVersion"] == HUB
