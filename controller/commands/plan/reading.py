"""Parsing of files into valid objects or a saved decision; reports all errors at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import yaml

from apiserver.schema.document import duplicate_fields
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath
from controller.commands.check.documents import Source, read_documents
from controller.commands.check.tree import Tree, UnreadableDocumentError
from controller.commands.plan.shapes import GroupKind, judge_of
from controller.observe.targets import TargetKind
from controller.planning.inputs import PlanningInputs, from_json

_LIST: Final = "List"
_HEAD: Final = ("apiVersion", "kind")
_SAVED: Final = frozenset({"snapshot", "settings"})
_SAVED_HEAD: Final = re.compile(rb'\s*\{\s*"(?:snapshot|settings)"')
"""The beginning of a saved decision, which may be malformed."""

_PATH: Final = re.compile(r"[A-Za-z0-9_.\-/\[\]]+(?=: )")
_PART: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_CLUSTER_WIDE: Final = frozenset({"Node", "NodePool", "ResourceSlice", "DeviceClass"})


@dataclass(frozen=True, kw_only=True, slots=True)
class InputProblem:
    """An error in the input; the line is 0 if it concerns the whole file."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.text}" if where else self.text


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """One object of a supported kind, with its namespace and its place in a file."""

    file: str
    tree: Tree
    value: Json

    @property
    def kind(self) -> GroupKind:
        """Group and kind."""
        return str(self.value["apiVersion"]).rpartition("/")[0], str(self.value["kind"])

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        metadata = self.value["metadata"]
        return metadata.get("namespace", ""), metadata["name"]

    @property
    def label(self) -> str:
        """The object's kind and name, for messages."""
        return f"{self.kind[1]} {'/'.join(part for part in self.key if part)}"

    def problem(self, text: str, path: FieldPath | None = None) -> InputProblem:
        """Return a problem with this object, at a field."""
        where = f"{path}: " if path and path.parts else ""
        line = self.tree.line_of(path) if path else self.tree.line
        return InputProblem(file=self.file, line=line, text=f"{self.label}: {where}{text}")


@dataclass(kw_only=True, slots=True)
class FileContents:
    """The content of the files."""

    manifests: list[Manifest] = field(default_factory=list)
    saved: list[PlanningInputs] = field(default_factory=list)
    problems: list[InputProblem] = field(default_factory=list)
    broken: dict[str, list[InputProblem]] = field(default_factory=dict)
    """Errors of objects that can be left out, by kind and name."""

    refused: set[tuple[str, str, str]] = field(default_factory=set)
    """Kind, namespace and name of objects with problems."""

    skipped: Counter[str] = field(default_factory=Counter)
    """The number of objects of kinds that planning ignores, by kind."""

    def values(self, kind: str) -> list[Json]:
        """Return the objects of one kind."""
        return [item.value for item in of_kind(self.manifests, kind).values()]

    @property
    def skipped_note(self) -> str:
        """The line about these objects; empty without any."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.skipped.items()))
        return f"skipped: {kinds}\n" if kinds else ""


def read(sources: Sequence[Source], *, namespace: str) -> FileContents:
    """Return the content of the files; objects without a namespace are in the given one."""
    content = FileContents()
    for source in sources:
        if source.problem:
            content.problems.append(InputProblem(file=source.name, line=0, text=source.problem))
        elif _is_saved(source):
            try:
                content.saved.append(from_json(source.data))
            except ValueError as error:
                text = f"the saved decision cannot be read: {error}"
                content.problems.append(InputProblem(file=source.name, line=0, text=text))
        else:
            _take_documents(content, source, namespace)
    content.problems += _repetitions(content.manifests)
    if content.saved and (len(content.saved) > 1 or content.manifests):
        text = "a saved decision is complete: use it without other files"
        content.problems.append(InputProblem(file=sources[-1].name, line=0, text=text))
    return content


def contents_of(objects: Iterable[Json]) -> FileContents:
    """Return objects that were read from a cluster; those that planning cannot read are in `broken`."""
    content, cluster = FileContents(), Source(name="", data=b"")
    for value in objects:
        _take_object(content, cluster, Tree(value=value, line=0, marks={}), namespace="")
    return content


def _is_saved(source: Source) -> bool:
    """Return whether a file is a saved decision, which may lack its snapshot if the file was named."""
    try:
        members = msgspec.json.decode(source.data, type=dict[str, msgspec.Raw]).keys()
    except RecursionError:
        return False
    except msgspec.MsgspecError:
        return bool(_SAVED_HEAD.match(source.data))
    accepted = _SAVED if source.is_named else {"snapshot"}
    return not members.isdisjoint(accepted) and "kind" not in members


def _take_documents(content: FileContents, source: Source, namespace: str) -> None:
    for document in read_documents(source.data):
        if isinstance(document, UnreadableDocumentError):
            content.problems.append(InputProblem(file=source.name, line=document.line, text=document.message))
            continue
        if joined := _missing_separator(source, document):
            content.problems.append(joined)
            continue
        for tree in _objects(document):
            _take_object(content, source, tree, namespace)


def _missing_separator(source: Source, document: Tree) -> InputProblem | None:
    """Return a problem if the separator between two objects is missing, so that one replaces the other."""
    for name, line in document.marks_of(document.value).repeated:
        if name in _HEAD:
            text = f'duplicate field "{name}": separate objects by a line ---'
            return InputProblem(file=source.name, line=line, text=text)
    return None


def _objects(tree: Tree) -> Iterator[Tree]:
    """Yield the objects of a document, with lists expanded."""
    value = tree.value
    is_list = isinstance(value, dict) and str(value.get("kind")).endswith(_LIST)
    if not is_list or not isinstance(value.get("items"), list):
        yield tree
        return
    kind = value["kind"].removesuffix(_LIST)
    implied = {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}
    lines = tree.marks_of(value["items"]).lines
    for position, item in enumerate(value["items"]):
        if isinstance(item, dict):
            for name, default in implied.items():
                item.setdefault(name, default)
        yield from _objects(tree.part(item, lines[position]))


def _take_object(content: FileContents, source: Source, tree: Tree, namespace: str) -> None:
    value = tree.value
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in _HEAD):
        if source.is_named:
            text = "not an object: a manifest is a mapping with apiVersion and kind"
            content.problems.append(InputProblem(file=source.name, line=tree.line, text=text))
        return
    group_kind = value["apiVersion"].rpartition("/")[0], value["kind"]
    judge = judge_of(group_kind)
    if judge is None:
        content.skipped[f"{value['kind']} ({value['apiVersion']})"] += 1
        return
    problems = [
        InputProblem(file=source.name, line=tree.line_of(error.path), text=f"{_label(value)}: {error}")
        for error in judge.validate(value)
    ]
    if problems and can_be_left_out(value):
        content.broken.setdefault(_label(value, namespace), []).extend(problems)
    else:
        content.problems += problems
    if not problems:
        content.manifests.append(
            Manifest(file=source.name, tree=tree, value=_with_namespace(value, namespace))
        )
    elif isinstance(metadata := value.get("metadata"), dict):
        content.refused.add(
            (value["kind"], str(metadata.get("namespace") or namespace), str(metadata.get("name")))
        )


def can_be_left_out(value: Json) -> bool:
    """Return whether the others are planned without this object, as the controller does.

    This holds for variants and workloads, and for whatever was exported, which has a resourceVersion. Without
    a node that somebody wrote, the plan would answer another question.
    """
    metadata = value.get("metadata")
    is_exported = isinstance(metadata, dict) and "resourceVersion" in metadata
    return is_exported or value["kind"] in {"VariantAutoscaling", *TargetKind}


def _label(value: Json, namespace: str = "") -> str:
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        return str(value["kind"])
    if not namespace or value["kind"] in _CLUSTER_WIDE:
        return f"{value['kind']} {name}"
    return f"{value['kind']} {metadata.get('namespace') or namespace}/{name}"


def _with_namespace(value: Json, namespace: str) -> Json:
    if value["kind"] in _CLUSTER_WIDE:
        return value
    return value | {
        "metadata": value["metadata"] | {"namespace": value["metadata"].get("namespace") or namespace}
    }


def _repetitions(manifests: Sequence[Manifest]) -> Iterator[InputProblem]:
    first: dict[tuple[GroupKind, tuple[str, str]], Manifest] = {}
    for manifest in manifests:
        known = first.setdefault((manifest.kind, manifest.key), manifest)
        if known is not manifest:
            yield manifest.problem(
                f"is already defined in {known.file}:{known.tree.line}; remove one of the two"
            )


def of_kind(manifests: Sequence[Manifest], kind: str) -> Mapping[tuple[str, str], Manifest]:
    """Return the objects of one kind by namespace and name."""
    return {manifest.key: manifest for manifest in manifests if manifest.kind[1] == kind}


def documents_of(data: bytes) -> list[JsonValue]:
    """Return the documents of a file, without those that contain only comments.

    Raises UnreadableError, also for duplicate fields.
    """
    try:
        text = data.decode("utf-8-sig")
        documents = [item for item in yaml.safe_load_all(text) if item is not None]
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableDocumentError(f"not UTF-8: byte {data[error.start]:#04x}", line) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UnreadableDocumentError(f"not YAML: {error.problem}", mark.line + 1 if mark else 0) from error
    except RecursionError as error:
        raise UnreadableDocumentError("nested too deeply", 0) from error
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadableDocumentError(f"not YAML: {' '.join(str(error).split())}", 0) from error
    if repeated := duplicate_fields(text):
        more = [f"line {duplicate.line}: {duplicate}" for duplicate in repeated[1:]]
        raise UnreadableDocumentError("; ".join([str(repeated[0]), *more]), repeated[0].line)
    return documents


def with_lines(file: str, data: bytes, texts: Iterable[str]) -> tuple[InputProblem, ...]:
    """Return problems with the lines of the fields that they begin with, in the order of the lines."""
    problems = [InputProblem(file=file, line=_line_of(data, text), text=text) for text in texts]
    return tuple(sorted(problems, key=lambda problem: problem.line))


def _line_of(data: bytes, problem: str) -> int:
    """Return the line of the field with whose path a message begins, or of its nearest parent.

    Return 0 for a message without a path. `data` is readable, and contains one mapping.
    """
    match, tree = _PATH.match(problem), next(read_documents(data), None)
    if match is None or not isinstance(tree, Tree):
        return 0
    parts = (int(key) if key.isdigit() else key or name for key, name in _PART.findall(match[0]))
    return tree.line_of(FieldPath(tuple(parts)))
