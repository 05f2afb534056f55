"""The dimensions of known models, and the data sheets of accelerators.

Dimensions are those of the configurations that the models' authors publish with the weights (`config.json`),
and numbers of parameters those of their model cards. Data of accelerators are those of the makers' data
sheets: dense arithmetic, without sparsity. They were entered by hand, and not compared with these files
again. `roofline.py` estimates step times from both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """One accelerator, as engines see it."""

    memory_gib: float
    """Memory that processes can use; a bit less than the data sheet's."""

    bandwidth: float
    """Memory bandwidth in TB/s."""

    arithmetic: float
    """Dense 16-bit floating point performance in TFLOPS."""

    arithmetic_8bit: float = 0.0
    """The same with 8 bits; 0 if it has no such arithmetic."""

    hop_us: float = 10.0
    """Time of a small exchange with other accelerators of the replica; more without direct links."""


_PCIE_US: Final = 40.0
_A100_40GB: Final = Accelerator(memory_gib=39.4, bandwidth=1.555, arithmetic=312)

ACCELERATORS: Final[Mapping[str, Accelerator]] = {
    "GB300": Accelerator(memory_gib=270, bandwidth=8.0, arithmetic=2500, arithmetic_8bit=5000),
    "B300": Accelerator(memory_gib=270, bandwidth=8.0, arithmetic=2250, arithmetic_8bit=4500),
    "GB200": Accelerator(memory_gib=184, bandwidth=8.0, arithmetic=2500, arithmetic_8bit=5000),
    "B200": Accelerator(memory_gib=178, bandwidth=8.0, arithmetic=2250, arithmetic_8bit=4500),
    "GH200": Accelerator(memory_gib=95, bandwidth=4.0, arithmetic=989, arithmetic_8bit=1979),
    "H200": Accelerator(memory_gib=139.8, bandwidth=4.8, arithmetic=989, arithmetic_8bit=1979),
    "H100": Accelerator(memory_gib=79.1, bandwidth=3.35, arithmetic=989, arithmetic_8bit=1979),
    "H100-NVL": Accelerator(memory_gib=93, bandwidth=3.9, arithmetic=835, arithmetic_8bit=1671),
    "H100-PCIE": Accelerator(
        memory_gib=79.1, bandwidth=2.0, arithmetic=756, arithmetic_8bit=1513, hop_us=_PCIE_US
    ),
    "H800": Accelerator(memory_gib=79.1, bandwidth=3.35, arithmetic=989, arithmetic_8bit=1979),
    "H20": Accelerator(memory_gib=95, bandwidth=4.0, arithmetic=148, arithmetic_8bit=296),
    "A100": Accelerator(memory_gib=79.1, bandwidth=2.0, arithmetic=312),
    "A100-40GB": _A100_40GB,
    "A100-TESLA": _A100_40GB,  # GKE: `nvidia-tesla-a100`, beside `nvidia-a100-80gb`
    "A800": Accelerator(memory_gib=79.1, bandwidth=2.0, arithmetic=312),
    "A40": Accelerator(memory_gib=44.4, bandwidth=0.696, arithmetic=150, hop_us=_PCIE_US),
    "A30": Accelerator(memory_gib=23.6, bandwidth=0.933, arithmetic=165, hop_us=_PCIE_US),
    "A10G": Accelerator(memory_gib=22, bandwidth=0.6, arithmetic=70, hop_us=_PCIE_US),
    "A10": Accelerator(memory_gib=22, bandwidth=0.6, arithmetic=125, hop_us=_PCIE_US),
    "L40S": Accelerator(
        memory_gib=44.4, bandwidth=0.864, arithmetic=362, arithmetic_8bit=733, hop_us=_PCIE_US
    ),
    "L40": Accelerator(
        memory_gib=44.4, bandwidth=0.864, arithmetic=181, arithmetic_8bit=362, hop_us=_PCIE_US
    ),
    "L4": Accelerator(memory_gib=22, bandwidth=0.3, arithmetic=121, arithmetic_8bit=242, hop_us=_PCIE_US),
    "T4": Accelerator(memory_gib=14.6, bandwidth=0.32, arithmetic=65, hop_us=_PCIE_US),
    "V100": Accelerator(memory_gib=15.7, bandwidth=0.9, arithmetic=125),
    "V100-32GB": Accelerator(memory_gib=31.7, bandwidth=0.9, arithmetic=125),
    "RTX-4090": Accelerator(
        memory_gib=23.5, bandwidth=1.008, arithmetic=165, arithmetic_8bit=330, hop_us=_PCIE_US
    ),
    "MI355X": Accelerator(memory_gib=288, bandwidth=8.0, arithmetic=2516, arithmetic_8bit=5033),
    "MI325X": Accelerator(memory_gib=256, bandwidth=6.0, arithmetic=1307, arithmetic_8bit=2615),
    "MI300X": Accelerator(memory_gib=192, bandwidth=5.3, arithmetic=1307, arithmetic_8bit=2615),
    "MI250X": Accelerator(memory_gib=128, bandwidth=3.2, arithmetic=383),
}
"""Accelerators by their short names. A form factor with other data has an entry of its own."""


def accelerator_named(product: str, short_name: str) -> Accelerator | None:
    """Return an accelerator by the label of a node, such as `NVIDIA-A100-SXM4-40GB`, or its short name.

    Parts of accelerators, such as MIG devices, are unknown: their short names differ.
    """
    text = product.upper()
    for name in ACCELERATORS:
        kind, _, form = name.partition("-")
        if form and kind == short_name and form in text:
            return ACCELERATORS[name]
    return ACCELERATORS.get(short_name)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """The dimensions of a model that determine its speed. Parameters are in billions."""

    name: str
    """Name as people call it; for a model that is not in the table, its size."""

    parameters: float
    active: float = 0.0
    """Parameters that one token uses; 0 for all."""

    layers: int
    kv_heads: int
    head_size: int
    """Values of one key, and of one value, for each head."""

    full_layers: int = 0
    """Layers that attend to the whole context; others keep a short window. 0 for all."""

    experts: tuple[int, int] = (0, 0)
    """Experts of a layer, and how many of them a token uses."""

    latent_size: int = 0
    """Values per token and layer that are cached instead of keys and values (DeepSeek); 0 for none."""

    weight_bits: float = 16.0
    """Bits per parameter of the weights that its authors publish."""

    is_exact: bool = True
    """Whether it is in the table, and not taken from a size in a name."""

    def cached_values(self, tensor_parallel: int) -> float:
        """Return the values per token that one of the accelerators caches."""
        layers = self.full_layers or self.layers
        if self.latent_size:
            return layers * self.latent_size
        return layers * 2 * self.head_size * max(1.0, self.kv_heads / tensor_parallel)


FOUR_BITS: Final = 4.5
"""Bits per parameter with 4-bit weights: some layers and the scales are larger."""


def _dense(
    name: str, parameters: float, layers: int, kv_heads: int, head_size: int = 128, *, full_layers: int = 0
) -> ModelShape:
    return ModelShape(
        name=name,
        parameters=parameters,
        layers=layers,
        kv_heads=kv_heads,
        head_size=head_size,
        full_layers=full_layers,
    )


_DEEPSEEK: Final = ModelShape(
    name="DeepSeek-V3",
    parameters=671,
    active=37,
    layers=61,
    kv_heads=1,
    head_size=128,
    experts=(256, 8),
    latent_size=576,
    weight_bits=8.0,
)
_OSS: Final = ModelShape(
    name="gpt-oss-120b",
    parameters=116.8,
    active=5.1,
    layers=36,
    kv_heads=8,
    head_size=64,
    full_layers=18,
    experts=(128, 4),
    weight_bits=FOUR_BITS,
)
_MIXTRAL: Final = ModelShape(
    name="Mixtral-8x7B", parameters=46.7, active=12.9, layers=32, kv_heads=8, head_size=128, experts=(8, 2)
)
_QWEN_30B: Final = ModelShape(
    name="Qwen3-30B-A3B", parameters=30.5, active=3.3, layers=48, kv_heads=4, head_size=128, experts=(128, 8)
)

SHAPES: Final[Mapping[str, ModelShape]] = {
    "deepseek v3": _DEEPSEEK,
    "deepseek v3.1": _DEEPSEEK,
    "deepseek r1": replace(_DEEPSEEK, name="DeepSeek-R1"),
    "gpt oss 120b": _OSS,
    "gpt oss 20b": replace(
        _OSS, name="gpt-oss-20b", parameters=20.9, active=3.6, layers=24, full_layers=12, experts=(32, 4)
    ),
    "mixtral 8x7b": _MIXTRAL,
    "mixtral 8x22b": replace(_MIXTRAL, name="Mixtral-8x22B", parameters=140.6, active=39.0, layers=56),
    "qwen3 235b a22b": replace(_QWEN_30B, name="Qwen3-235B-A22B", parameters=235, active=22, layers=94),
    "qwen3 30b a3b": _QWEN_30B,
    "llama 4 scout": replace(
        _MIXTRAL, name="Llama-4-Scout", parameters=109, active=17, layers=48, experts=(16, 1)
    ),
    "llama 4 maverick": replace(
        _MIXTRAL, name="Llama-4-Maverick", parameters=400, active=17, layers=48, experts=(128, 1)
    ),
    "llama 2 7b": _dense("Llama-2-7B", 6.74, 32, 32),
    "llama 2 13b": _dense("Llama-2-13B", 13.0, 40, 40),
    "llama 1b": _dense("Llama-3.2-1B", 1.24, 16, 8, 64),
    "llama 3b": _dense("Llama-3.2-3B", 3.21, 28, 8),
    "llama 8b": _dense("Llama-3.1-8B", 8.03, 32, 8),
    "llama 70b": _dense("Llama-3.1-70B", 70.6, 80, 8),
    "llama 405b": _dense("Llama-3.1-405B", 406, 126, 8),
    "qwen3 0.6b": _dense("Qwen3-0.6B", 0.6, 28, 8),
    "qwen3 1.7b": _dense("Qwen3-1.7B", 1.7, 28, 8),
    "qwen3 4b": _dense("Qwen3-4B", 4.0, 36, 8),
    "qwen3 8b": _dense("Qwen3-8B", 8.2, 36, 8),
    "qwen3 14b": _dense("Qwen3-14B", 14.8, 40, 8),
    "qwen3 32b": _dense("Qwen3-32B", 32.8, 64, 8),
    "qwen 0.5b": _dense("Qwen2.5-0.5B", 0.49, 24, 2, 64),
    "qwen 1.5b": _dense("Qwen2.5-1.5B", 1.54, 28, 2),
    "qwen 3b": _dense("Qwen2.5-3B", 3.09, 36, 2),
    "qwen 7b": _dense("Qwen2.5-7B", 7.62, 28, 4),
    "qwen 14b": _dense("Qwen2.5-14B", 14.8, 48, 8),
    "qwen 32b": _dense("Qwen2.5-32B", 32.8, 64, 8),
    "qwen 72b": _dense("Qwen2.5-72B", 72.7, 80, 8),
    "mistral 7b": _dense("Mistral-7B", 7.25, 32, 8),
    "mistral nemo": _dense("Mistral-Nemo-12B", 12.2, 40, 8),
    "mistral small 24b": _dense("Mistral-Small-24B", 23.6, 40, 8),
    "mistral large": _dense("Mistral-Large-123B", 123, 88, 8),
    "gemma 3 4b": _dense("Gemma-3-4B", 4.3, 34, 4, 256, full_layers=5),
    "gemma 3 12b": _dense("Gemma-3-12B", 12.2, 48, 8, 256, full_layers=8),
    "gemma 3 27b": _dense("Gemma-3-27B", 27.4, 62, 16, full_layers=10),
    "gemma 2 9b": _dense("Gemma-2-9B", 9.24, 42, 8, 256, full_layers=21),
    "gemma 2 27b": _dense("Gemma-2-27B", 27.2, 46, 16, full_layers=23),
    "phi 4": _dense("Phi-4", 14.7, 40, 10),
    "phi 4 mini": _dense("Phi-4-mini", 3.84, 32, 8),
    "opt 125m": _dense("OPT-125M", 0.125, 12, 12, 64),
}
"""Models by words of their names. Of several that fit a name, the one with most words counts, or the first.
"""

_COMMON: Final = tuple(SHAPES[f"llama {size}"] for size in ("1b", "3b", "8b", "70b", "405b")) + tuple(
    SHAPES[f"qwen {size}"] for size in ("0.5b", "7b", "14b", "32b")
)
"""Models whose dimensions stand for those of others of their size."""

_SEPARATORS: Final = re.compile(r"[-_/:@\s]+")
_FAMILY: Final = re.compile(r"(?P<family>[a-z]{2,})(?P<version>\d{1,3})?(\.\d{1,3})?\Z")
_SIZE: Final = re.compile(r"(?P<size>\d{1,4}(\.\d{1,3})?)b\Z")
_ACTIVE: Final = re.compile(r"a(?P<size>\d{1,4}(\.\d{1,3})?)b\Z")
_EXPERTS: Final = re.compile(r"(?P<experts>\d{1,3})x(?P<size>\d{1,3}(\.\d{1,3})?)b\Z")
_LONGEST: Final = 512
_SHARED: Final = 0.82
"""Parameters of a model of 8 experts, relative to those of 8 models: they share the other layers."""

_USED: Final = 0.28
"""Share of its parameters that one token uses, with 2 of 8 experts."""

_MANY_EXPERTS: Final = (128, 8)
"""Experts of a model whose name says how many parameters a token uses."""

_LEAST_ALIKE: Final = 0.8
_MOST_ALIKE: Final = 1.25
"""Ratios of a shape's parameters to the size in a name between which it is that of the model."""


def words_of(name: str) -> frozenset[str]:
    """Return the words of a model's ID in lower case, also those without a version: `qwen2.5` and `qwen`."""
    return frozenset(_words(name[:_LONGEST].lower()))


def _words(name: str) -> Iterator[str]:
    for word in _SEPARATORS.split(name):
        yield word
        if match := _FAMILY.match(word):
            yield match["family"]
            if version := match["version"]:
                yield match["family"] + version
                yield version
        elif re.fullmatch(r"\d\.\d{1,2}", word):
            yield word[0]


def shape_named(name: str) -> ModelShape | None:
    """Return the dimensions of a model by its ID; None if neither the table nor a size in the name tells.

    A size stands for the dimensions of a usual model of that size: `70b`, `8x7b`, `30b-a3b`.
    """
    words = words_of(name)
    sizes = [float(match["size"]) for word in words if (match := _SIZE.match(word))]
    shapes = [key for key in SHAPES if words.issuperset(key.split()) and _has_size(SHAPES[key], sizes)]
    if shapes:
        return SHAPES[max(shapes, key=lambda key: len(key.split()))]
    for word in sorted(words):
        if match := _EXPERTS.match(word):
            experts = int(match["experts"])
            total, used = _SHARED * experts * float(match["size"]), (experts, min(2, experts))
            return _of_size(total, active=_USED * total, experts=used) if total else None
    parameters = max(sizes, default=0.0)
    if not parameters:
        return None
    active = min([float(match["size"]) for word in words if (match := _ACTIVE.match(word))], default=0.0)
    if 0 < active < parameters:
        return _of_size(parameters, active=active, experts=_MANY_EXPERTS)
    return _of_size(parameters)


def _has_size(shape: ModelShape, sizes: Sequence[float]) -> bool:
    """Return whether a shape has one of the sizes in a name: a distilled model has two families' names."""
    numbers = (shape.parameters, shape.active)
    return not sizes or any(
        _LEAST_ALIKE * size < number < _MOST_ALIKE * size for number in numbers for size in sizes
    )


def _of_size(parameters: float, *, active: float = 0.0, experts: tuple[int, int] = (0, 0)) -> ModelShape:
    """Return dimensions like those of the model whose attention has the most similar size."""
    size = parameters if not active else math.sqrt(parameters * active)
    alike = min(_COMMON, key=lambda item: abs(math.log(item.parameters / size)))
    return replace(
        alike,
        name=f"a model of {parameters:.3g} billion parameters",
        parameters=parameters,
        active=active,
        experts=experts,
        is_exact=False,
    )
