"""Any value in any field is validated, and an update is held to what it changes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import pytest
from differential.compare import name_of
from differential.fuzz import versions
from differential.generate import case
from differential.places import Place, each
from support.campaign import TIMES, often

from apiserver.kinds.core.containers import ResourceRequirements
from apiserver.kinds.judgement import complete_and_judge
from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import schema_defaults, with_defaults
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import node_of
from apiserver.schema.shape import is_typed
from apiserver.schema.validation import judge

VERSIONS: Final = {name_of(kind, version): (kind, version) for kind, version in versions([])}
OBJECTS: Final = often(3)
VALUES: Final[tuple[JsonValue, ...]] = (
    *(
        None,
        True,
        False,
        "",
        "x",
        "x" * 300,
        "1e21",
        "Ω/%",
        [],
        {},
        [[]],
        [{}],
        {"": []},
        {"": "-x"},
        {"x": {"x": None}},
    ),
    *(0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**31) - 1, -(2**63) - 1, 10**30),
    *(0.0, 0.5, -0.5, 1.0, 50.0, 1e18, 1e20, 1e21, -1e21, 1e300),
)
"""Values of every JSON type: empty, small, at and beyond the bounds of each width, and whole floats."""

METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences")

every_version = pytest.mark.parametrize("name", VERSIONS)


@every_version
def test_any_value_in_any_field_is_validated_without_an_exception(name: str) -> None:
    """A wrong type or width is an error at its field; nothing raises, neither on create nor on update."""
    kind, version = VERSIONS[name]
    tried: set[tuple[str, ...]] = set()
    for number in range(OBJECTS):
        for value, place in _replaced(version, _object(kind, version, number), tried):
            _expect_refused_if_wrong(kind, version, value, place)


@every_version
def test_any_value_in_metadata_is_validated_without_an_exception(name: str) -> None:
    """The value replaces all metadata, one member, or the content of a member."""
    kind, version = VERSIONS[name]
    whole = min((_object(kind, version, number) for number in range(5)), key=lambda value: len(str(value)))
    for junk in VALUES:
        told(kind, version, whole | {"metadata": junk})
        for member in METADATA:
            told(kind, version, whole | {"metadata": {"name": "a", member: junk}})
            told(kind, version, whole | {"metadata": {"name": "a", member: [junk]}})
            told(kind, version, whole | {"metadata": {"name": "a", member: {"a": junk}}})


@pytest.mark.parametrize("junk", [[], {}, 7, True, 1e21])
def test_a_name_that_is_not_a_string_is_rejected_at_its_field(junk: JsonValue) -> None:
    """This is the only error."""
    kind, version = VERSIONS["Model/v1alpha1"]
    adapters = [{"name": "a", "artifactURL": "hf://a/b"}]
    backend = {"name": "b", "type": "vLLM", "modelURI": "hf://a/b", "minReplicas": 1, "maxReplicas": 1}
    spec = {"backends": [backend | {"workers": [{}], "loraAdapters": adapters}]}
    [error] = told(kind, version, {"metadata": {"name": junk}, "spec": spec})

    assert str(error) == f"metadata.name: Invalid value: {json.dumps(junk)}: must be a string"


TARGET_VALUES: Final[dict[JsonValue, str]] = {
    1e20: "Invalid value: 1e+20: must be less than or equal to 9223372036854775807",
    1e21: "Invalid value: 1e+21: must be less than or equal to 9223372036854775807",
    -1e21: "Invalid value: -1e+21: must be greater than or equal to 1",
    2**63: "Invalid value: 9223372036854775808: must be less than or equal to 9223372036854775807",
    0.0: "Invalid value: 0.0: must be greater than or equal to 1",
    0.5: "Invalid value: 0.5: must be an integer or a string",
}


@pytest.mark.parametrize(("number", "want"), TARGET_VALUES.items())
def test_a_number_that_fits_no_quantity_gets_one_error(number: JsonValue, want: str) -> None:
    """A number of a wrong type gets no error about a bound in addition."""
    kind, version = VERSIONS["AutoscalingPolicy/v1alpha1"]
    spec = {"metrics": [{"metricName": "m", "targetValue": number}]}

    found = [str(error) for error in told(kind, version, {"metadata": {"name": "a"}, "spec": spec})]

    assert [text.replace("Invalid value: 0: must", "Invalid value: 0.0: must") for text in found] == [
        f"spec.metrics[0].targetValue: {want}"
    ]


def test_an_invalid_text_under_an_empty_key_is_an_error() -> None:
    """The library that finds the error reports the path of the map alone."""
    found = judge(ResourceRequirements).validate({"limits": {"": "-x"}})

    assert 'limits: Invalid value: "-x": must be a quantity of 0 or more, such as 2, 500m or 80Gi' in map(
        str, found
    )


def told(kind: Kind, version: Version, value: Json) -> list[FieldError]:
    """Return the errors of an object on create; check that an update and the warnings raise nothing."""
    complete_and_judge(kind, version, copy.deepcopy(value), copy.deepcopy(value))
    given = copy.deepcopy(value)
    judgement = complete_and_judge(kind, version, given)
    if judgement.is_sound:
        for advice in version.advise:
            assert all(isinstance(text, str) for text in advice(given))
    return judgement.errors


def _object(kind: Kind, version: Version, number: int) -> Json:
    """Return a generated valid object with its defaults."""
    items = (case(kind, version, drawn) for drawn in range(number * 100, number * 100 + 100))
    value: Json = msgspec.json.decode(next(item.body for item in items if item.sort == "valid"))
    schema_defaults(version.declaration, value)
    return value


def _replaced(version: Version, whole: Json, tried: set[tuple[str, ...]]) -> Iterator[tuple[Json, Place]]:
    """Yield the object with each value in each of its places, one at a time; it is changed in place.

    Outside campaigns, each field is tried in one place: in the first item of a list, in the first object.
    """
    for place in list(each(node_of(version.declaration), whole)):
        field = tuple("" if isinstance(part, int) else part for part in place.path.parts)
        if TIMES == 1 and field in tried:
            continue
        tried.add(field)
        before = place.value
        for junk in VALUES:
            place.put(copy.deepcopy(junk))
            yield whole, place
        place.put(before)


def _expect_refused_if_wrong(kind: Kind, version: Version, value: Json, place: Place) -> None:
    junk = place.value
    found = told(kind, version, value)
    is_number = isinstance(junk, int | float) and not isinstance(junk, bool)
    is_too_wide = is_number and place.node.type in {"integer", "int-or-string"} and not _is_held(place, junk)
    if junk is not None and (is_too_wide or not is_typed(place.node, junk)):
        wrong = [error for error in found if error.path == place.path]
        assert wrong, f"{place.path} is {junk!r}, and nothing is said of it: {found}"


def _is_held(place: Place, number: float) -> bool:
    bounds = place.node.bounds
    return bounds["minimum"] <= number <= bounds["maximum"]


MODEL: Json = {
    "apiVersion": "registry.volcano.sh/v1alpha1",
    "kind": "Model",
    "metadata": {"name": "llama"},
    "spec": {
        "owner": "ann",
        "backends": [
            {
                "name": "h100",
                "type": "vLLM",
                "modelURI": "hf://meta/llama",
                "minReplicas": 1,
                "maxReplicas": 3,
                "workers": [{"image": "vllm:1"}],
            }
        ],
    },
}
"""An object from before equal bounds were required for backends without a policy."""

BAD = {"name": "bad", "modelMatch": {"uri": {"regex": "("}}, "targetModels": [{"modelServerName": "a"}]}
GOOD = {"name": "good", "targetModels": [{"modelServerName": "b"}]}
ROUTE: Json = {
    "apiVersion": "networking.volcano.sh/v1alpha1",
    "kind": "ModelRoute",
    "metadata": {"name": "chat"},
    "spec": {"modelName": "llama", "rules": [BAD]},
}
"""An object from before regular expressions were compiled at admission."""


def set_owner(value: Json) -> None:
    """Change a field that no rule is about."""
    value["spec"]["owner"] = "bob"


def set_image(value: Json) -> None:
    """Change a field beside the invalid one."""
    value["spec"]["backends"][0]["workers"][0]["image"] = "vllm:2"


def set_fewest(value: Json) -> None:
    """Change the invalid field to another invalid value."""
    value["spec"]["backends"][0]["minReplicas"] = 2


def lower_the_other_bound(value: Json) -> None:
    """Break a rule over two fields whose error is at the unchanged one, and a bound."""
    value["spec"]["backends"][0]["maxReplicas"] = 0


def put_in_front(value: Json) -> None:
    """Move the invalid item."""
    value["spec"]["rules"].insert(0, GOOD)


def break_another(value: Json) -> None:
    """Add an invalid item."""
    value["spec"]["rules"].append(GOOD | {"name": "worse", "modelMatch": {"uri": {"regex": "["}}})


UPDATES = {
    "a field that no rule is about": (MODEL, set_owner, []),
    "another field of the invalid item": (MODEL, set_image, []),
    "the invalid field itself": (MODEL, set_fewest, ["spec.backends[0].minReplicas"]),
    "the other field of a newly broken rule": (
        MODEL,
        lower_the_other_bound,
        ["spec.backends[0].minReplicas", "spec.backends[0].maxReplicas"],
    ),
    "a new position of the invalid item": (ROUTE, put_in_front, []),
    "a new invalid item": (ROUTE, break_another, ["spec.rules[1].modelMatch.uri.regex"]),
}


@pytest.mark.parametrize(("stored", "change", "want"), UPDATES.values(), ids=UPDATES.keys())
def test_an_update_is_rejected_only_for_errors_in_what_it_changes(
    stored: Json, change: Callable[[Json], None], want: list[str]
) -> None:
    """An object that was accepted once stays editable."""
    found = find_version(stored["apiVersion"], stored["kind"])
    assert found is not None
    old = with_defaults(found[1], stored)
    new = copy.deepcopy(old)
    change(new)

    errors = complete_and_judge(*found, new, old).errors

    assert [str(error.path) for error in errors] == want
