"""The catalog of models and accelerators, and what is estimated from it, next to published measurements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.sizing.catalog import ACCELERATORS, SHAPES, accelerator_named, shape_named
from controller.sizing.records import Estimate
from controller.sizing.roofline import EngineSetup, estimate

FP8 = EngineSetup(weight_bits=8.0, computes_8bit=True)


def estimated(model: str, accelerator: str, setup: EngineSetup | None = None) -> Estimate:
    """Return the estimate for a model by its name."""
    shape = shape_named(model)
    assert shape is not None
    return estimate(shape, ACCELERATORS[accelerator], setup or EngineSetup(), basis="")


NAMES = {
    "a version in the name": ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
    "as users write it": ("llama3.1:8b", "Llama-3.1-8B"),
    "a quantized model of somebody else": ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "Llama-3.1-70B"),
    "a newer family whose older one has the same size": ("Qwen/Qwen3-32B-FP8", "Qwen3-32B"),
    "an older family": ("Qwen/Qwen2.5-32B-Instruct-AWQ", "Qwen2.5-32B"),
    "a version after a point, and a size after one": ("Qwen/Qwen2.5-0.5B-Instruct", "Qwen2.5-0.5B"),
    "experts": ("openai/gpt-oss-120b", "gpt-oss-120b"),
    "a model with its active parameters": ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B"),
    "a distilled model has the dimensions of its base": (
        "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
        "Llama-3.1-70B",
    ),
    "a distilled model of another base": ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "Qwen3-8B"),
    "the model itself": ("deepseek-ai/DeepSeek-R1-0528", "DeepSeek-R1"),
    "a size that is the active one": ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "Llama-4-Scout"),
    "a size that is of no known model of the family": (
        "mistralai/Mistral-Large-3-675B",
        "a model of 675 billion parameters",
    ),
    "only a size": ("acme/chat-34b", "a model of 34 billion parameters"),
    "experts of a size": ("acme-8x3b", "a model of 19.7 billion parameters"),
    "no size": ("BAAI/bge-m3", None),
    "no parameters": ("chat-0b", None),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("name", "found"), NAMES.values(), ids=NAMES)
def test_a_model_is_recognized_by_its_name(name: str, found: str | None) -> None:
    """The entry with most words in the name counts; a size in the name stands for usual dimensions."""
    shape = shape_named(name)

    assert (shape.name if shape else None) == found


@given(st.text(max_size=2000))
def test_any_name_is_recognized_or_not(name: str) -> None:
    """Names come from users."""
    shape = shape_named(name)

    assert shape is None or shape.parameters > 0


PRODUCTS = {
    "the usual form factor": ("NVIDIA-H100-80GB-HBM3", "H100", "H100"),
    "another form factor": ("NVIDIA-H100-NVL", "H100", "H100-NVL"),
    "less memory": ("NVIDIA-A100-SXM4-40GB", "A100", "A100-40GB"),
    "more memory": ("NVIDIA-A100-SXM4-80GB", "A100", "A100"),
    "the name at Google": ("nvidia-tesla-a100", "A100", "A100-40GB"),
    "a short name": ("L40S", "L40S", "L40S"),
    "part of an accelerator": ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100-MIG-1G.5GB", None),
    "an unknown one": ("Acme-9000", "ACME-9000", None),
}


@pytest.mark.parametrize(("product", "short", "found"), PRODUCTS.values(), ids=PRODUCTS)
def test_an_accelerator_is_recognized_by_its_label(product: str, short: str, found: str | None) -> None:
    """A form factor with other data has an entry of its own, and a part has none."""
    assert accelerator_named(product, short) is (ACCELERATORS[found] if found else None)


MEASURED = {
    # One step with one sequence, in ms: the documents are named in docs/profiles.md.
    "Llama-3.1-8B on an H100": ("llama-3.1-8b", "H100", EngineSetup(), 6.48),
    "Llama-3.1-8B on an A100 with 40 GB": ("llama-3.1-8b", "A100-40GB", EngineSetup(), 13.3),
}


@pytest.mark.parametrize(("model", "accelerator", "setup", "step_ms"), MEASURED.values(), ids=MEASURED)
def test_a_step_takes_about_as_long_as_was_measured(
    model: str, accelerator: str, setup: EngineSetup, step_ms: float
) -> None:
    """The page on profiles has the figures."""
    known = estimated(model, accelerator, setup).parameters

    assert 1 / 1.3 < (known.alpha_ms + known.beta_ms) / step_ms < 1.3


def test_the_cache_is_about_as_large_as_engines_log() -> None:
    """In the first case, the engine had reserved eight GiB for something else on each accelerator."""
    four = EngineSetup(tensor_parallel=4, weight_bits=8.0, computes_8bit=True)
    two = EngineSetup(tensor_parallel=2, memory_share=0.98)

    assert 0.5 < 178_880 / estimated("Qwen3-235B-A22B-FP8", "H100", four).kv_tokens < 2
    assert 0.8 < 81_536 / estimated("DeepSeek-R1-Distill-Qwen-14B", "RTX-4090", two).kv_tokens < 1.25


def test_the_engines_of_the_benchmark_are_estimated_within_a_factor_of_two() -> None:
    """Its small engines are like a model of eight billion parameters."""
    for accelerator, (alpha, beta, delta) in {"H100": (8, 0.05, 0.03), "L40S": (18, 0.12, 0.11)}.items():
        known = estimated("llama-3.1-8b", accelerator).parameters

        assert 0.5 < known.alpha_ms / alpha < 2
        assert 0.5 < known.beta_ms / beta < 2
        assert 0.5 < known.delta_ms / delta < 2


@pytest.mark.parametrize("model", SHAPES)
@pytest.mark.parametrize("accelerator", ["B200", "H100", "A100-40GB", "L4", "MI300X"])
def test_more_accelerators_and_fewer_bits_are_never_slower_on_the_whole(model: str, accelerator: str) -> None:
    """Prompts and reads are shared, and the cache grows; only the exchanges take time."""
    shape, own = SHAPES[model], ACCELERATORS[accelerator]
    one = estimate(shape, own, EngineSetup(), basis="")
    two = estimate(shape, own, EngineSetup(tensor_parallel=2), basis="")
    small = estimate(shape, own, EngineSetup(weight_bits=8.0, computes_8bit=True), basis="")
    hops_ms = 2 * shape.layers * own.hop_us / 1e3

    assert two.parameters.delta_ms < one.parameters.delta_ms
    assert two.parameters.alpha_ms <= one.parameters.alpha_ms + hops_ms
    assert two.kv_tokens >= one.kv_tokens
    assert small.parameters.delta_ms <= one.parameters.delta_ms
    assert small.kv_tokens >= one.kv_tokens
    assert one.parameters.alpha_ms > 0
    assert one.parameters.beta_ms > 0


def test_weights_that_do_not_fit_leave_no_cache() -> None:
    """The name or the accelerator is then not what it seems."""
    assert estimated("llama-3.3-70b", "L4").kv_tokens == 0


def test_arithmetic_with_eight_bits_counts_only_where_it_exists() -> None:
    """An A100 converts such weights, and computes with 16 bits."""
    plain, fast = estimated("llama-8b", "H100"), estimated("llama-8b", "H100", FP8)

    assert fast.parameters.delta_ms < plain.parameters.delta_ms
    assert estimated("llama-8b", "A100", FP8).parameters.delta_ms == pytest.approx(
        estimated("llama-8b", "A100").parameters.delta_ms
    )
