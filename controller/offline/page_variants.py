"""The variants on the page: each with what it gets and why; in groups that fold where they are many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from controller.offline.markup import Markup, folded, is_long, number, section, table, tag
from controller.offline.spans import Tone
from controller.offline.table import goes_short, in_order, place, price, tone_of
from controller.offline.text import Shown, helps, next_best
from controller.planning.decision import Decision
from controller.planning.snapshot import Variant
from controller.planning.wording import percent

Key = tuple[str, str]

_HEADS: Final = (
    "Variant", "Model", "Priority", "On", "Replicas", "Wanted", "Unmet", "Cost per hour", "Bound by",
)  # fmt: skip
_NUMBERS: Final = frozenset({"Priority", "Replicas", "Wanted", "Unmet", "Cost per hour"})
_CLASSES: Final = {Tone.BAD: "bad", Tone.ADVICE: "advice"}
_MEANINGS: Final = {
    Tone.BAD: "red: the model gets less than it needs",
    Tone.ADVICE: "amber: too little is known to decide, so what runs stands",
}


def variants_section(shown: Shown, codes: Mapping[Key, str], colour: Mapping[str, str]) -> Markup:
    """Return the table of all variants, in parts where it is long."""
    variants = {variant.key: variant for variant in shown.snapshot.variants}
    decided = in_order(shown.plan)
    if not is_long(len(decided)):
        return section("Variants", _table(decided, variants, codes, colour), *_legend(decided))
    parts = (
        folded(title, len(group), _table(group, variants, codes, colour))
        for title, group in _groups(decided).items()
        if group
    )
    return section("Variants", *parts, *_legend(decided))


def _groups(decided: Sequence[Decision]) -> Mapping[str, Sequence[Decision]]:
    """Return the decisions by what a reader looks for, the most urgent first."""
    groups: dict[str, list[Decision]] = {
        title: []
        for title in ("Models that go short", "Change", "Stay as they are", "Have no replicas and get none")
    }
    short, changing, staying, idle = groups.values()
    for item in decided:
        if goes_short(item):
            short.append(item)
        elif item.replicas != item.current_replicas:
            changing.append(item)
        else:
            (staying if item.replicas else idle).append(item)
    return groups


def _table(
    group: Sequence[Decision],
    variants: Mapping[Key, Variant],
    codes: Mapping[Key, str],
    colour: Mapping[str, str],
) -> Markup:
    rows = (row for item in group for row in _rows(item, variants[item.namespace, item.name], codes, colour))
    return table(_HEADS, rows, numbers=_NUMBERS)


def _rows(
    item: Decision, variant: Variant, codes: Mapping[Key, str], colour: Mapping[str, str]
) -> tuple[Markup, Markup]:
    tone = _CLASSES.get(tone_of(item), "")
    code = codes[variant.key]
    chip = tag("span", code, class_="code", style=f"background:{colour[code]}")
    first = tag(
        "tr",
        tag("td", chip, "/".join(variant.key), class_="name"),
        tag("td", item.model_id, class_="name"),
        number(str(item.priority)),
        tag("td", place(item, variant), class_="short"),
        number(f"{item.current_replicas} → {item.replicas}"),
        number(str(item.unconstrained_replicas)),
        tag("td", percent(item.unmet_per_mille), class_=f"number {tone}".strip()),
        number(price(variant.cost_per_replica * item.replicas)),
        tag("td", str(item.bound_by), class_=tone),
        class_="first",
    )
    return first, tag("tr", tag("td", *_sentences(item, tone), colspan=len(_HEADS)), class_="why")


def _sentences(item: Decision, tone: str) -> Iterator[Markup]:
    yield tag("p", item.message, class_=tone)
    if item.alternative is not None:
        yield tag("p", f"Next best: {next_best(item.alternative)}", class_="faint")
    for relief in item.reliefs:
        yield tag("p", f"Would help: {helps(relief)}", class_="faint")


def _legend(decided: Sequence[Decision]) -> Iterator[Markup]:
    """Yield what the colours of sentences mean, where any has one."""
    tones = {tone_of(item) for item in decided}
    told = [tag("span", text, class_=_CLASSES[tone]) for tone, text in _MEANINGS.items() if tone in tones]
    if told:
        yield tag("p", *told, class_="legend")
