"""Name the engine of a metrics page that has no series of vLLM or SGLang."""

from __future__ import annotations

from typing import Final

_PREFIXES: Final = {
    "ray_vllm_": "vLLM in Ray Serve, which are those of a Ray node and not of one engine",
    "tgi_": "Text Generation Inference",
    "te_": "Text Embeddings Inference",
    "trtllm_": "TensorRT-LLM",
    "nv_inference_": "Triton Inference Server",
    "lmdeploy:": "LMDeploy",
    "llamacpp:": "llama.cpp",
}
"""Engines by the beginning of their metrics."""

NO_SERIES: Final = (
    "name the container port of the engine `metrics` or `http`, start vLLM without --disable-log-stats, and"
    " SGLang with --enable-metrics"
)
"""What to do without series of an engine."""


def no_engine(text: str) -> str:
    """Return why a page cannot be read that has no series of vLLM or SGLang."""
    for prefix, engine in _PREFIXES.items():
        if text.startswith(prefix) or f"\n{prefix}" in text:
            return f"metrics of {engine}: only vLLM and SGLang are read, so let another autoscaler scale it"
    return f"no series of vLLM or SGLang: {NO_SERIES}"
