"""An engine that says what it is told to, on a pod's own address: load without a load generator."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

EXPOSITION = """\
vllm:kv_cache_usage_perc{{model_name="{model}"}} {usage}
vllm:num_requests_waiting{{model_name="{model}"}} {waiting}
vllm:num_requests_running{{model_name="{model}"}} 8
vllm:cache_config_info{{block_size="16",num_gpu_blocks="1000"}} 1
vllm:time_to_first_token_seconds_sum{{model_name="{model}"}} 20
vllm:time_to_first_token_seconds_count{{model_name="{model}"}} 100
vllm:prompt_tokens_total{{model_name="{model}"}} 100000
vllm:generation_tokens_total{{model_name="{model}"}} 20000
vllm:request_success_total{{model_name="{model}",finished_reason="stop"}} 100
vllm:inter_token_latency_seconds_sum{{model_name="{model}"}} 398
vllm:inter_token_latency_seconds_count{{model_name="{model}"}} 19900
vllm:request_prompt_tokens_bucket{{model_name="{model}",le="500.0"}} 0
vllm:request_prompt_tokens_bucket{{model_name="{model}",le="1000.0"}} 100
vllm:request_prompt_tokens_bucket{{model_name="{model}",le="+Inf"}} 100
"""
"""A KV cache of 16,000 tokens; requests of 1,000 tokens in and 200 out."""


class StubEngine:
    """Serves `/metrics` on one address from `__enter__` to `__exit__`."""

    def __init__(self, address: str, *, model: str, usage: float, waiting: int = 0, port: int = 8000) -> None:
        self._text = EXPOSITION.format(model=model, usage=usage, waiting=waiting).encode()
        engine = self

        class Handler(BaseHTTPRequestHandler):
            """Answers every GET with the exposition."""

            def do_GET(self) -> None:
                """Answer."""
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(engine._text)))
                self.end_headers()
                self.wfile.write(engine._text)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class names it so)
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
