"""An engine with given metrics on a pod's own address: load without a load generator."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

EXPOSITION = """\
vllm:kv_cache_usage_perc{{model_name="{model}"}} {usage}
vllm:num_requests_waiting{{model_name="{model}"}} {waiting}
vllm:num_requests_running{{model_name="{model}"}} 8
vllm:cache_config_info{{block_size="16",num_gpu_blocks="1000"}} 1
vllm:time_to_first_token_seconds_sum{{model_name="{model}"}} {first_token_seconds}
vllm:time_to_first_token_seconds_count{{model_name="{model}"}} {requests}
vllm:prompt_tokens_total{{model_name="{model}"}} {prompt_tokens}
vllm:generation_tokens_total{{model_name="{model}"}} {generation_tokens}
vllm:request_success_total{{model_name="{model}",finished_reason="stop"}} {requests}
vllm:inter_token_latency_seconds_sum{{model_name="{model}"}} {inter_token_seconds}
vllm:inter_token_latency_seconds_count{{model_name="{model}"}} {inter_tokens}
vllm:request_prompt_tokens_bucket{{model_name="{model}",le="500.0"}} 0
vllm:request_prompt_tokens_bucket{{model_name="{model}",le="1000.0"}} {requests}
vllm:request_prompt_tokens_bucket{{model_name="{model}",le="+Inf"}} {requests}
"""
"""A KV cache of 16,000 tokens; requests of 1,000 input and 200 output tokens, with 20 ms between tokens."""

_SERVED_BEFORE = 100


def exposition(*, model: str, usage: float, waiting: int, requests: int = _SERVED_BEFORE) -> str:
    """Return the metrics of an engine that has served a number of requests."""
    return EXPOSITION.format(
        model=model,
        usage=usage,
        waiting=waiting,
        requests=requests,
        first_token_seconds=0.2 * requests,
        prompt_tokens=1000 * requests,
        generation_tokens=200 * requests,
        inter_token_seconds=0.02 * 199 * requests,
        inter_tokens=199 * requests,
    )


class StubEngine:
    """Serves `/metrics` on one address during a `with` block; its counters grow at a constant rate."""

    def __init__(
        self,
        address: str,
        *,
        model: str,
        usage: float,
        waiting: int = 0,
        requests_per_second: float = 0.0,
        port: int = 8000,
    ) -> None:
        began = time.monotonic()

        def text() -> bytes:
            requests = _SERVED_BEFORE + int(requests_per_second * (time.monotonic() - began))
            return exposition(model=model, usage=usage, waiting=waiting, requests=requests).encode()

        class Handler(BaseHTTPRequestHandler):
            """Answers every GET with the exposition."""

            def do_GET(self) -> None:
                """Answer with the exposition."""
                body = text()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (as in the base class)
                """Write no access log."""

        self._server = ThreadingHTTPServer((address, port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
