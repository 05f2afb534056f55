"""Label selectors mean what they mean to the Kubernetes API."""

from __future__ import annotations

import contextlib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.metrics.selector import Operator, Requirement, Selector, parse_selector
from apiserver.metrics.status import BadRequestError

LABELS = {
    "variant_name": "llama-a100",
    "accelerator_type": "A100",
    "model_id": "meta/llama-3.1-8b",
    "empty": "",
}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", True, id="nothing is demanded"),
        pytest.param("   ", True, id="only white space"),
        pytest.param("variant_name=llama-a100", True, id="equal"),
        pytest.param("variant_name==llama-a100", True, id="equal with two signs"),
        pytest.param(" variant_name =\tllama-a100 ", True, id="white space does not matter"),
        pytest.param("variant_name=other", False, id="not equal"),
        pytest.param("absent=x", False, id="an absent label equals nothing"),
        pytest.param("absent=", False, id="an absent label does not equal the empty value"),
        pytest.param("empty=", True, id="an empty label equals the empty value"),
        pytest.param("variant_name!=other", True, id="unequal"),
        pytest.param("variant_name!=llama-a100", False, id="not unequal"),
        pytest.param("absent!=x", True, id="an absent label is unequal to anything"),
        pytest.param("accelerator_type in (H100,A100)", True, id="one of a set"),
        pytest.param("accelerator_type in (H100, L4)", False, id="none of a set"),
        pytest.param("empty in (x,)", True, id="a set may hold the empty value"),
        pytest.param("empty in ()", True, id="a set without a word holds the empty value"),
        pytest.param("absent in (x,y)", False, id="an absent label is in no set"),
        pytest.param("accelerator_type notin (H100)", True, id="outside a set"),
        pytest.param("accelerator_type notin (H100,A100)", False, id="not outside a set"),
        pytest.param("absent notin (x)", True, id="an absent label is outside every set"),
        pytest.param("variant_name", True, id="a label is there"),
        pytest.param("absent", False, id="a label is not there"),
        pytest.param("!absent", True, id="a label is absent as wanted"),
        pytest.param("!variant_name", False, id="a label is there though unwanted"),
        pytest.param("variant_name=llama-a100,!absent,accelerator_type in (A100)", True, id="all of several"),
        pytest.param("variant_name=llama-a100,accelerator_type=H100", False, id="one of several fails"),
        pytest.param("model_id=meta/llama-3.1-8b", True, id="a value with a slash"),
        pytest.param("example.com/tier!=gold", True, id="a key with a domain"),
        pytest.param("!in,notin notin (x)", True, id="words of the grammar as keys"),
        pytest.param("variant_name=in", False, id="a word of the grammar as a value"),
    ],
)
def test_a_selector_matches(text: str, want: bool) -> None:
    """Every operator on labels that are there, absent and empty."""
    assert parse_selector(text).matches(LABELS) is want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("=x", id="a value without a key"),
        pytest.param(",", id="only a comma"),
        pytest.param("a=b,", id="nothing after a comma"),
        pytest.param("a=b c", id="two values"),
        pytest.param("a b", id="two keys"),
        pytest.param("a in", id="a set is missing"),
        pytest.param("a in b", id="a set without parentheses"),
        pytest.param("a in (b", id="an open set"),
        pytest.param("a in (b))", id="one parenthesis too many"),
        pytest.param("!", id="absence of nothing"),
        pytest.param("!a=b", id="absence and a value"),
        pytest.param("a=!b", id="a sign as a value"),
        pytest.param("a===b", id="three signs"),
        pytest.param("a>1", id="a comparison of numbers, which HPA cannot express"),
        pytest.param("-a=b", id="a key that begins with a hyphen"),
        pytest.param("Ex_ample/a=b", id="a domain that is none"),
        pytest.param("a/b/c=d", id="a key with two slashes"),
        pytest.param(f"{'a' * 64}=b", id="a key that is too long"),
        pytest.param("ключ=b", id="a key outside ASCII"),
    ],
)
def test_a_malformed_selector_is_a_bad_request(text: str) -> None:
    """The message repeats the selector, so that its author recognises it."""
    with pytest.raises(BadRequestError) as refusal:
        parse_selector(text)

    assert repr(text) in str(refusal.value)


NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=3)
REQUIREMENTS = st.builds(
    lambda key, operator, values: Requirement(
        key, operator, values if operator in {Operator.IN, Operator.NOT_IN} else frozenset()
    ),
    NAMES,
    st.sampled_from(Operator),
    st.frozensets(NAMES, min_size=1, max_size=3),
)


def spelled(requirement: Requirement) -> str:
    """Write a requirement in the grammar."""
    match requirement.operator:
        case Operator.EXISTS:
            return requirement.key
        case Operator.DOES_NOT_EXIST:
            return f"!{requirement.key}"
        case _:
            return f"{requirement.key} {requirement.operator.value} ({','.join(sorted(requirement.values))})"


@given(st.lists(REQUIREMENTS, max_size=4))
def test_what_is_written_is_read(requirements: list[Requirement]) -> None:
    """Any requirements, written in the grammar, are read as the same requirements."""
    text = ",".join(map(spelled, requirements))

    assert parse_selector(text) == Selector(tuple(requirements))


@given(st.text(alphabet="ab=!(),<> in", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the parser fail otherwise."""
    with contextlib.suppress(BadRequestError):
        parse_selector(text)


def test_only_short_selectors_are_kept() -> None:
    """Whoever may write an autoscaler may write thousands of long ones."""
    short, long = "a=b", f"a in ({','.join(map(str, range(1000)))})"

    assert parse_selector(short) is parse_selector(short)
    assert parse_selector(long) == parse_selector(long)
    assert parse_selector(long) is not parse_selector(long)


@given(st.lists(REQUIREMENTS, max_size=3), st.dictionaries(NAMES, NAMES, max_size=3))
def test_allowed_values_lose_no_match(requirements: list[Requirement], labels: dict[str, str]) -> None:
    """A label of anything that matches is among the values that the selector allows for it."""
    selector = Selector(tuple(requirements))
    for key, value in labels.items():
        allowed = selector.allowed_values(key)

        assert not selector.matches(labels) or allowed is None or value in allowed
