"""Checks of the proofs that promises are kept, in every place where they apply.

A proof may have these members:

    keywords        the schema of the field has these, `required` and `type` among them
    valid, invalid  the schema accepts that value, or rejects it
    without         neither that keyword nor a member of that name is declared
    rule            a rule on it, its items or above it has that sentence; in CEL exactly if `cel` keeps it
    fills           admission sets `value` at that place of an example
    warns           admission warns about that place of a valid example
    refers          that place of an example names another object, whose absence causes a warning
    column          the list of the kind has that column
    test            there is a test of that name
    module, word    that module contains that word
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from jsonschema import Draft202012Validator

from apiserver.kinds.registry import find_kind
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.structural import crd_manifest
from apiserver.schema.validation import validate
from seeds.places import Place, places
from seeds.rows import Document, Promise

CHECKOUT: Final = Path(__file__).resolve().parents[2]
_PART: Final = re.compile(r"\w+")
NEEDS_PROOF: Final = frozenset({"schema", "cel", "webhook", "warning"})


def breaches(document: Document, promise: Promise) -> list[str]:
    """Return the errors in the proof of a promise; empty if it holds."""
    if promise.kept in NEEDS_PROOF and not promise.proof:
        return [f"{promise.kept} keeps it, and nothing is named that would show a breach"]
    proof = dict(promise.proof)
    if "module" in proof:
        return _word(proof["module"], proof["word"])
    ((name, value),) = proof.items() or (("", None),)
    if name in _ANYWHERE:
        return list(_ANYWHERE[name](document, value))
    return list(_in_every_place(document, promise, name, value)) if name else []


def _in_every_place(document: Document, promise: Promise, name: str, value: JsonValue) -> Iterator[str]:
    standing = list(_standing(document, promise.at))
    if not standing:
        yield f"nothing declares {promise.at}"
    for owner, field in standing:
        where = f"{owner.kind.kind} {owner.version.name} {(field or owner).path}"
        yield from (f"{where}: {text}" for text in _LOCAL[name](owner, field, value, promise.kept))


def _standing(document: Document, at: str) -> Iterator[tuple[Place, Place | None]]:
    """Yield each place of a type, with that of its field if given; for named strings, of their users."""
    type_name, _, field = at.partition(".")
    named = document.types.get(type_name)
    if named is not None and named.is_text:
        yield from _users(document, type_name)
        return
    for owner in places(document.name).get(type_name, []):
        below = owner.child(field) if field else None
        if below is not None or not field:
            yield owner, below


def _users(document: Document, type_name: str) -> Iterator[tuple[Place, Place | None]]:
    for item in document.types.values():
        for field, row in item.rows.items():
            if row.element == type_name:
                yield from _standing(document, f"{item.name}.{field}")


def _keywords(owner: Place, field: Place | None, names: list[str], kept: str) -> Iterator[str]:
    del kept
    here = field or owner
    for name in names:
        if name == "required":
            is_there = here.path.rpartition(".")[2] in owner.schema.get("required", [])
        elif name == "type":
            is_there = "type" in here.schema or any(key.startswith("x-kubernetes-") for key in here.schema)
        else:
            is_there = name in here.schema
        if not is_there:
            yield f"{name} is not declared"


def _rule(owner: Place, field: Place | None, sentence: str, kept: str) -> Iterator[str]:
    rules = (field or owner).rules
    if sentence not in rules:
        yield f"no rule says {sentence!r}; there are {sorted(rules)}"
    elif rules[sentence] != (kept == "cel"):
        yield f"{sentence!r} is {'said' if rules[sentence] else 'not said'} in CEL, and {kept} is to keep it"


def _valid(owner: Place, field: Place | None, value: JsonValue, kept: str) -> Iterator[str]:
    del kept
    if not Draft202012Validator((field or owner).schema).is_valid(value):
        yield f"{value!r} is refused"


def _invalid(owner: Place, field: Place | None, value: JsonValue, kept: str) -> Iterator[str]:
    if not list(_valid(owner, field, value, kept)):
        yield f"{value!r} is accepted"


def _without(owner: Place, field: Place | None, name: str, kept: str) -> Iterator[str]:
    del kept
    schema = (field or owner).schema
    if name in schema or name in schema.get("properties", {}):
        yield f"{name} is declared"


def _warns(owner: Place, field: Place | None, example: Json, kept: str) -> Iterator[str]:
    del field, kept
    version = owner.version
    value = {"metadata": {"name": "example"}, "spec": example["spec"]}
    yield from (f"the example is not valid: {error}" for error in validate(version.declaration, value))
    warnings = [text for advise in version.advise for text in advise(value)]
    if not any(text.startswith(f"{example['at']}: ") for text in warnings):
        yield f"{example['at']} is not warned about; there is {warnings}"


def _fills(owner: Place, field: Place | None, example: Json, kept: str) -> Iterator[str]:
    del field, kept
    value: JsonValue = with_defaults(owner.version, {"spec": example["spec"]})
    for part in _PART.findall(example["at"]):
        inner = int(part) if part.isdecimal() else part
        value = value[inner] if inner in value or isinstance(inner, int) else {}
    if value != example["value"]:
        yield f"{example['at']} is filled in with {value!r}"


def _refers(owner: Place, field: Place | None, example: Json, kept: str) -> Iterator[str]:
    del field, kept
    version = owner.version
    paths = {str(reference.path) for reference in version.references({"spec": example["spec"]})}
    if example["at"] not in paths:
        yield f"{example['at']} refers to nothing; {sorted(paths)} do"


def _column(document: Document, name: str) -> Iterator[str]:
    kinds = [find_kind(document.group, item.name) for item in document.types.values() if item.is_root]
    versions = [
        (kind.kind, entry) for kind in kinds if kind for entry in crd_manifest(kind)["spec"]["versions"]
    ]
    if not versions:
        yield f"no kind of {document.group} is declared"
    for kind_name, entry in versions:
        if name not in {column["name"] for column in entry["additionalPrinterColumns"]}:
            yield f"{kind_name} {entry['name']} has no column {name}"


def _test(document: Document, identifier: str) -> Iterator[str]:
    del document
    path, _, name = identifier.partition("::")
    if name not in _functions(path):
        yield f"there is no test {identifier}"


def _word(path: str, word: str) -> list[str]:
    is_there = f'"{word}"' in (CHECKOUT / path).read_text(encoding="utf-8")
    return [] if is_there else [f"{path} does not say {word}"]


@functools.cache
def _functions(path: str) -> frozenset[str]:
    if not (CHECKOUT / path).is_file():
        return frozenset()
    tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    defined = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, defined))


_LOCAL: Final[Mapping[str, Callable[[Place, Place | None, JsonValue, str], Iterator[str]]]] = {
    "keywords": _keywords,
    "rule": _rule,
    "valid": _valid,
    "invalid": _invalid,
    "without": _without,
    "warns": _warns,
    "refers": _refers,
    "fills": _fills,
}
_ANYWHERE: Final[Mapping[str, Callable[[Document, JsonValue], Iterator[str]]]] = {
    "column": _column,
    "test": _test,
}
