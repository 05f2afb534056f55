"""A profile in YAML for the spec of a VariantAutoscaling, with comments about what is known beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apiserver.schema.json import Json
from controller.commands.check.yaml_values import as_yaml
from controller.commands.plan.terminal import harmless
from controller.sizing.lengths import Lengths
from controller.sizing.records import MAX_NUM_SEQS, StepParameters


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What is known about the engines of one variant."""

    origin: str
    """Where it was read, and from how much, in words."""

    parameters: StepParameters | None
    max_batch_size: int | None = None
    """None if it is unknown."""

    kv_tokens: int | None = None
    start_seconds: float | None = None
    lengths: Lengths | None = None
    doubts: tuple[str, ...] = ()


def document(shown: Shown) -> Json:
    """Return it as JSON, with `spec` only if step times are known."""
    lengths = shown.lengths
    return {
        "origin": shown.origin,
        **({"spec": {"variantProfile": _profile(shown)}} if shown.parameters else {}),
        "kvCacheTokens": shown.kv_tokens,
        "startSeconds": shown.start_seconds,
        "promptTokens": round(lengths.prompt, 1) if lengths else None,
        "computedPromptTokens": round(lengths.computed, 1) if lengths else None,
        "answerTokens": round(lengths.output, 1) if lengths else None,
        "unknown": list(shown.doubts),
    }


def yaml_text(shown: Shown) -> str:
    """Return it as YAML with comments."""
    comments = "".join(f"# {harmless(line)}\n" for line in _comments(shown))
    if shown.parameters is None:
        return comments
    return comments + as_yaml({"spec": {"variantProfile": _profile(shown)}})


def _profile(shown: Shown) -> Json:
    known = shown.parameters
    assert known is not None, "a profile has step times"
    return {
        "maxBatchSize": shown.max_batch_size or MAX_NUM_SEQS,
        "perfParms": {
            "decodeParms": {"alpha": _decimal(known.alpha_ms), "beta": _decimal(known.beta_ms)},
            "prefillParms": {"gamma": _decimal(known.gamma_ms), "delta": _decimal(known.delta_ms)},
        },
    }


def _decimal(number: float) -> str:
    """Return a number with four digits and without an exponent."""
    text = f"{number:.12f}" if abs(number) < 1 else f"{number:.4g}"
    if abs(number) < 1 and number:
        digits = len(text) - len(text.lstrip("0.")) - 2
        text = f"{number:.{max(0, digits) + 4}f}".rstrip("0").rstrip(".")
    elif not number:
        text = "0"
    return text if "e" not in text else f"{number:.0f}"


def _comments(shown: Shown) -> Iterator[str]:
    yield shown.origin
    if shown.parameters:
        yield "a step takes alpha + beta x sequences + delta x prompt tokens, in ms"
        if shown.max_batch_size is None:
            yield "maxBatchSize is vLLM's default: replace it by the engine's --max-num-seqs, if that differs"
    if shown.kv_tokens:
        yield f"KV cache of an engine: {shown.kv_tokens} tokens"
    if shown.start_seconds:
        yield f"start-up of a replica: {shown.start_seconds:.0f} s"
    if shown.lengths:
        prompt, computed, output = shown.lengths.prompt, shown.lengths.computed, shown.lengths.output
        hits = f", {1 - computed / prompt:.0%} of it found in the prefix cache" if computed < prompt else ""
        yield f"mean request: a prompt of {prompt:.0f} tokens{hits}, and an answer of {output:.0f}"
    for doubt in shown.doubts:
        yield f"not known: {doubt}"
