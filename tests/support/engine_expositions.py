"""Metrics pages of engines for tests: two engines in a vLLM pod, and one SGLang server."""

from __future__ import annotations

VLLM = """\
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 3.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 1.0
vllm:num_requests_running{engine="1",model_name="m"} 1.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="0"} 1.0
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="1"} 1.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 5000.0
vllm:prompt_tokens_total{engine="1",model_name="m"} 3000.0
vllm:generation_tokens_total{engine="0",model_name="m"} 900.0
vllm:generation_tokens_total{engine="1",model_name="m"} 700.0
vllm:request_success_total{engine="0",model_name="m",finished_reason="stop"} 8.0
vllm:request_success_total{engine="0",model_name="m",finished_reason="length"} 1.0
vllm:request_success_total{engine="1",model_name="m",finished_reason="stop"} 7.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.5
vllm:time_to_first_token_seconds_sum{engine="1",model_name="m"} 0.5
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 10.0
vllm:time_to_first_token_seconds_count{engine="1",model_name="m"} 8.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 9.0
vllm:inter_token_latency_seconds_sum{engine="1",model_name="m"} 7.0
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 890.0
vllm:inter_token_latency_seconds_count{engine="1",model_name="m"} 692.0
vllm:request_prompt_tokens_bucket{le="500.0",engine="0",model_name="m"} 4.0
vllm:request_prompt_tokens_bucket{le="1000.0",engine="0",model_name="m"} 9.0
vllm:request_prompt_tokens_bucket{le="+Inf",engine="0",model_name="m"} 9.0
vllm:request_prompt_tokens_bucket{le="500.0",engine="1",model_name="m"} 6.0
vllm:request_prompt_tokens_bucket{le="1000.0",engine="1",model_name="m"} 7.0
vllm:request_prompt_tokens_bucket{le="+Inf",engine="1",model_name="m"} 7.0
vllm:request_prompt_tokens_sum{engine="0",model_name="m"} 4500.0
vllm:request_prompt_tokens_sum{engine="1",model_name="m"} 2600.0
vllm:request_prefill_kv_computed_tokens_sum{engine="0",model_name="m"} 4000.0
vllm:request_prefill_kv_computed_tokens_sum{engine="1",model_name="m"} 2000.0
# TYPE some_other_series counter
some_other_series_total 7.0
"""

SGLANG = """\
sglang:num_running_reqs{model_name="m",tp_rank="0",pp_rank="0"} 4.0
sglang:num_running_reqs{model_name="m",tp_rank="1",pp_rank="0"} 4.0
sglang:num_queue_reqs{model_name="m",tp_rank="0",pp_rank="0"} 2.0
sglang:num_queue_reqs{model_name="m",tp_rank="1",pp_rank="0"} 2.0
sglang:token_usage{model_name="m",tp_rank="0",pp_rank="0"} 0.28
sglang:token_usage{model_name="m",tp_rank="1",pp_rank="0"} 0.28
sglang:max_total_num_tokens{model_name="m",tp_rank="0",pp_rank="0"} 144000.0
sglang:max_total_num_tokens{model_name="m",tp_rank="1",pp_rank="0"} 144000.0
sglang:prompt_tokens_total{model_name="m"} 8000.0
sglang:cached_tokens_total{model_name="m"} 1500.0
sglang:generation_tokens_total{model_name="m"} 1600.0
sglang:num_requests_total{model_name="m"} 16.0
sglang:time_to_first_token_seconds_sum{model_name="m"} 2.0
sglang:time_to_first_token_seconds_count{model_name="m"} 18.0
sglang:inter_token_latency_seconds_sum{model_name="m"} 16.0
sglang:inter_token_latency_seconds_count{model_name="m"} 1582.0
"""


def without(text: str, *beginnings: str) -> str:
    """Return an exposition without the lines that have one of the prefixes."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(beginnings))
