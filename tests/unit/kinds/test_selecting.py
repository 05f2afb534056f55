"""Parsing and matching of label selectors as in the Kubernetes API."""

from __future__ import annotations

import contextlib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.kinds.core.selecting import allowed_values, parse_selector, selects
from apiserver.schema.json import Json

LABELS = {
    "variant_name": "llama-a100",
    "accelerator_type": "A100",
    "model_id": "meta/llama-3.1-8b",
    "empty": "",
}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", True, id="an empty selector"),
        pytest.param("   ", True, id="only white space"),
        pytest.param("variant_name=llama-a100", True, id="equal"),
        pytest.param("variant_name==llama-a100", True, id="equal with =="),
        pytest.param(" variant_name =\tllama-a100 ", True, id="white space is ignored"),
        pytest.param("variant_name=other", False, id="equal, to another value"),
        pytest.param("absent=x", False, id="an absent label equals nothing"),
        pytest.param("absent=", False, id="an absent label does not equal the empty value"),
        pytest.param("empty=", True, id="an empty label equals the empty value"),
        pytest.param("variant_name!=other", True, id="not equal, to another value"),
        pytest.param("variant_name!=llama-a100", False, id="not equal, to the same value"),
        pytest.param("absent!=x", True, id="an absent label is not equal to any value"),
        pytest.param("accelerator_type in (H100,A100)", True, id="in a set"),
        pytest.param("accelerator_type in (H100, L4)", False, id="not in a set"),
        pytest.param("empty in (x,)", True, id="a set may contain the empty value"),
        pytest.param("empty in ()", True, id="empty parentheses contain the empty value"),
        pytest.param("absent in (x,y)", False, id="an absent label is in no set"),
        pytest.param("accelerator_type notin (H100)", True, id="notin a set"),
        pytest.param("accelerator_type notin (H100,A100)", False, id="notin a set with the value"),
        pytest.param("absent notin (x)", True, id="an absent label satisfies every notin"),
        pytest.param("variant_name", True, id="a label exists"),
        pytest.param("absent", False, id="a label does not exist"),
        pytest.param("!absent", True, id="a label is absent as required"),
        pytest.param("!variant_name", False, id="a label exists but must be absent"),
        pytest.param(
            "variant_name=llama-a100,!absent,accelerator_type in (A100)",
            True,
            id="all of several requirements hold",
        ),
        pytest.param(
            "variant_name=llama-a100,accelerator_type=H100", False, id="one of several requirements fails"
        ),
        pytest.param("model_id=meta/llama-3.1-8b", True, id="a value with a slash"),
        pytest.param("example.com/tier!=gold", True, id="a key with a domain"),
        pytest.param("!in,notin notin (x)", True, id="keywords as keys"),
        pytest.param("variant_name=in", False, id="a keyword as a value"),
    ],
)
def test_a_selector_matches(text: str, want: bool) -> None:
    """Cases are all operators on existing, absent and empty labels."""
    assert selects(parse_selector(text), LABELS) is want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("=x", id="a value without a key"),
        pytest.param(",", id="only a comma"),
        pytest.param("a=b,", id="a trailing comma"),
        pytest.param("a=b c", id="two values"),
        pytest.param("a b", id="two keys"),
        pytest.param("a in", id="a set is missing"),
        pytest.param("a in b", id="a set without parentheses"),
        pytest.param("a in (b", id="an unclosed set"),
        pytest.param("a in (b))", id="one parenthesis too many"),
        pytest.param("!", id="absence without a key"),
        pytest.param("!a=b", id="absence and a value"),
        pytest.param("a=!b", id="an operator as a value"),
        pytest.param("a===b", id="three equals signs"),
        pytest.param("a>1", id="a comparison of numbers, which HPA cannot express"),
        pytest.param("-a=b", id="a key that begins with a hyphen"),
        pytest.param("Ex_ample/a=b", id="an invalid domain"),
        pytest.param("a/b/c=d", id="a key with two slashes"),
        pytest.param(f"{'a' * 64}=b", id="a key that is too long"),
        pytest.param("ключ=b", id="a key outside ASCII"),
    ],
)
def test_a_malformed_selector_is_rejected(text: str) -> None:
    """The message names the first token that is unexpected."""
    with pytest.raises(ValueError, match=r"^found '[^ ]*', expected "):
        parse_selector(text)


def test_a_selector_may_list_many_values() -> None:
    """Such as all variants of a namespace, in a query of metrics."""
    names = [f"variant-{number:04}" for number in range(600)]
    assert parse_selector(f"variant_name in ({','.join(names)})") == {
        "matchExpressions": [{"key": "variant_name", "operator": "In", "values": names}]
    }


NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=3)
VALUES = st.lists(NAMES, min_size=1, max_size=3)
REQUIREMENTS = st.one_of(
    st.fixed_dictionaries({"key": NAMES, "operator": st.sampled_from(["In", "NotIn"]), "values": VALUES}),
    st.fixed_dictionaries({"key": NAMES, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)


def spelled(requirement: Json) -> str:
    """Return a requirement in the selector grammar."""
    key = requirement["key"]
    match requirement["operator"]:
        case "Exists":
            return str(key)
        case "DoesNotExist":
            return f"!{key}"
        case operator:
            return f"{key} {operator.lower()} ({','.join(requirement['values'])})"


@given(st.lists(REQUIREMENTS, max_size=4))
def test_parsing_a_written_selector_gives_the_same_requirements(requirements: list[Json]) -> None:
    """This holds for random requirements."""
    text = ",".join(map(spelled, requirements))

    assert parse_selector(text) == {"matchExpressions": requirements}


@given(st.text(alphabet="ab=!(),<> in", max_size=12))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    """No text raises another exception."""
    with contextlib.suppress(ValueError):
        parse_selector(text)


@given(st.lists(REQUIREMENTS, max_size=3), st.dictionaries(NAMES, NAMES, max_size=3))
def test_allowed_values_contain_the_label_values_of_every_match(
    requirements: list[Json], labels: dict[str, str]
) -> None:
    """They serve to narrow the search."""
    selector = {"matchExpressions": requirements}
    for key, value in labels.items():
        allowed = allowed_values(selector, key)

        assert not selects(selector, labels) or allowed is None or value in allowed
