"""Names, labels and label selectors, with the syntax that Kubernetes requires, mostly of RFC 1123.

Rules and wording of labels: `k8s.io/apimachinery/pkg/api/validate/content/kube.go` and
`k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go`. Limits on counts are ours.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Atomic, Items, Length, Pattern, Properties
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly

LABEL_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""The pattern of a DNS label: lower-case letters, digits and dashes, with no dash at either end."""

LABEL_SAYS: Final = "lower-case letters, digits and dashes, such as my-name"
"""The description of the pattern."""

DnsLabel = Annotated[str, Length(maximum=63), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]
"""A DNS label, such as the name of a volume or a namespace."""

SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""The pattern of a DNS subdomain, without anchors."""

SUBDOMAIN_SAYS: Final = "lower-case letters, digits, dashes and dots, such as my-name or my.name"
"""The description of the pattern."""

DnsSubdomain = Annotated[str, Length(maximum=253), Pattern(f"^{SUBDOMAIN}$", says=SUBDOMAIN_SAYS)]
"""A DNS subdomain, such as the name of most objects."""

KeyName = Annotated[
    str,
    Length(maximum=253),
    Pattern(
        r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$", says="letters, digits, '-', '_' and '.', not '..' in front"
    ),
]
"""A key of a ConfigMap or Secret."""

VariableName = Annotated[
    str, Length(maximum=1024), Pattern(r"^[ -<>-~]+$", says="printable ASCII characters other than '='")
]
"""The name of an environment variable, as Kubernetes 1.34 and later accept it."""

_KIND: Final = "[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?"
_KIND_SAYS: Final = "a kind such as Deployment: a letter, then letters, digits and dashes"

KindName = Annotated[str, Length(1, 63), Pattern(f"^{_KIND}$", says=_KIND_SAYS)]
"""The name of a kind."""

KindNameOrEmpty = Annotated[str, Length(maximum=63), Pattern(f"^({_KIND})?$", says=_KIND_SAYS)]
"""The name of a kind. Empty means unset."""

_LONGEST_API_VERSION: Final = 317
_API_VERSION: Final = rf"^(({SUBDOMAIN}/)?v([-a-z0-9]*[a-z0-9])?)?$"

ApiVersion = Annotated[
    str,
    Length(maximum=_LONGEST_API_VERSION),
    Pattern(_API_VERSION, says="a group and version such as apps/v1, or v1 for the core group"),
]
"""An API group and version, as in the `apiVersion` of a manifest. Empty means unset."""

DnsSubdomainOrEmpty = Annotated[str, Length(maximum=253), Pattern(f"^({SUBDOMAIN})?$", says=SUBDOMAIN_SAYS)]
"""The name of an object. Empty means unset."""

DnsLabelOrEmpty = Annotated[
    str, Length(maximum=63), Pattern(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", says=LABEL_SAYS)
]
"""The name of a namespace. Empty means unset."""

_is_api_version: Final = re.compile(_API_VERSION).fullmatch


def group_of(api_version: str) -> str | None:
    """Return the group of an API version; empty for the core group, None for text of another form."""
    if len(api_version) > _LONGEST_API_VERSION or not _is_api_version(api_version):
        return None
    return api_version.rpartition("/")[0]


_NAME: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_CHARACTERS: Final = (
    "consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)
_NAME_CHARACTERS: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE_CHARACTERS: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_PREFIX: Final = re.compile(SUBDOMAIN)
_LONGEST_NAME: Final = 63
_LONGEST_PREFIX: Final = 253
_LONGEST_KEY: Final = _LONGEST_PREFIX + 1 + _LONGEST_NAME
_PREFIX_TOO_LONG: Final = f"prefix part must be no more than {_LONGEST_PREFIX} characters"


def _long_prefix(value: str, path: FieldPath) -> Sequence[FieldError]:
    if len(value) > _LONGEST_KEY or value.find("/") <= _LONGEST_PREFIX:
        return ()
    return [errors.invalid(path, value, _PREFIX_TOO_LONG)]


LabelKey = Annotated[
    str,
    Length(maximum=_LONGEST_KEY),
    Pattern(rf"^({SUBDOMAIN}/)?{_NAME}$", says="a label key such as app or example.com/team"),
    WebhookOnly(_long_prefix, f"A prefix of a label key has up to {_LONGEST_PREFIX} characters."),
]
"""The key of a label: a name of up to 63 characters, with an optional domain prefix."""

LabelValue = Annotated[str, Length(maximum=_LONGEST_NAME)]
"""The value of a label in a map. `LABELS` on the map validates its characters."""


def label_key_errors(key: str) -> tuple[str, ...]:
    """Return the errors of a label key, worded as by the API server."""
    # A cache of longer keys would take memory.
    return _errors_of_short_key(key) if len(key) <= _LONGEST_KEY else tuple(_key_errors(key))


@functools.lru_cache(maxsize=4096)
def _errors_of_short_key(key: str) -> tuple[str, ...]:
    return tuple(_key_errors(key))


def label_value_errors(value: str) -> tuple[str, ...]:
    """Return the errors in the characters of a label value. The schema validates its length."""
    if len(value) > _LONGEST_NAME or _VALUE_CHARACTERS.fullmatch(value):
        return ()
    return (f"a valid label must be an empty string or {_CHARACTERS}",)


def _key_errors(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield f"a valid label key must {_CHARACTERS} with an optional DNS subdomain prefix and '/'"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif len(prefix) > _LONGEST_PREFIX:
        yield _PREFIX_TOO_LONG
    elif prefix and not _PREFIX.fullmatch(prefix):
        yield "prefix part must be a lowercase RFC 1123 subdomain such as example.com"
    yield from _name_errors(name)


def _name_errors(name: str) -> Iterator[str]:
    if not name:
        yield "name part must be non-empty"
    elif len(name) > _LONGEST_NAME:
        yield f"name part must be no more than {_LONGEST_NAME} characters"
    elif not _NAME_CHARACTERS.fullmatch(name):
        yield f"name part must {_CHARACTERS}"


def label_errors(value: dict[str, str], path: FieldPath) -> list[FieldError]:
    """Return the errors of labels: those of a key at the path of the map, of a value at its own path."""
    problems: list[FieldError] = []
    for key, text in value.items():
        problems += [errors.invalid(path, key, detail) for detail in label_key_errors(key)]
        problems += [errors.invalid(path.key(key), text, detail) for detail in label_value_errors(text)]
    return problems


def _selector_value_errors(value: list[str], path: FieldPath) -> list[FieldError]:
    return [
        errors.invalid(path.index(position), text, detail)
        for position, text in enumerate(value)
        for detail in label_value_errors(text)
    ]


LABELS: Final = WebhookOnly(label_errors, "Keys and values are valid as those of labels.")
"""The rule for a map of labels. It is not expressed in CEL: the API server assumes no limit on the length of
map keys, so it cannot bound the cost."""

Labels = Annotated[dict[str, LabelValue], Properties(maximum=64), LABELS]
"""A map of labels."""

SelectorValues = Annotated[
    tuple[LabelValue, ...],
    Items(maximum=64),
    WebhookOnly(_selector_value_errors, "Values are valid as those of labels."),
]
"""The values that a selector compares a label with."""


def _missing_values(value: Json, path: FieldPath) -> Sequence[FieldError]:
    if value.get("operator") not in {"In", "NotIn"} or value.get("values"):
        return ()
    return [errors.required(path.child("values"), f"must be set {_WITH_VALUES}")]


def _superfluous_values(value: Json, path: FieldPath) -> Sequence[FieldError]:
    if value.get("operator") not in {"Exists", "DoesNotExist"} or not value.get("values"):
        return ()
    return [errors.forbidden(path.child("values"), f"may not be set {_WITHOUT_VALUES}")]


_WITH_VALUES: Final = "when `operator` is 'In' or 'NotIn'"
_WITHOUT_VALUES: Final = "when `operator` is 'Exists' or 'DoesNotExist'"
OPERATOR_RULES: Final = (
    WebhookOnly(_missing_values, f"`values` is required {_WITH_VALUES}."),
    WebhookOnly(_superfluous_values, f"`values` may not be set {_WITHOUT_VALUES}."),
)
"""The rules of a requirement on labels: whether it has values depends on its operator. Requirements are
nested in lists so deeply that CEL would exceed the API server's cost budget."""


@declaration(*OPERATOR_RULES)
class LabelSelectorRequirement:
    """One requirement on the labels of an object."""

    key: LabelKey
    """The key of the label."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """The relationship of the label to the values."""

    values: Maybe[SelectorValues] = UNSET
    """The values to compare the label with: one or more for In and NotIn, none otherwise."""


@declaration()
class LabelSelector:
    """A query for objects by their labels. All requirements must hold. An empty one selects all objects."""

    match_labels: Maybe[Labels] = UNSET
    """Labels that an object must have, with exactly these values."""

    match_expressions: Maybe[Annotated[tuple[LabelSelectorRequirement, ...], Items(maximum=32)]] = UNSET
    """Further requirements on labels. All of them must hold."""


Selector = Annotated[LabelSelector, Atomic()]
"""A label selector that server-side apply treats as one atomic value."""
