"""Durations of webhook calls in the API server's metrics."""

from __future__ import annotations

from hack.controlplane.auditing import conversions


def test_conversion_metrics_of_the_api_server_are_read() -> None:
    """Buckets and other series are ignored; failures are also counted separately."""
    name = "apiserver_crd_conversion_webhook_duration_seconds"
    labels = 'crd_name="c",from_version="a",to_version="b",succeeded='
    exposition = (
        f'{name}_bucket{{{labels}"true",le="+Inf"}} 10\n{name}_sum{{{labels}"true"}} 0.5\n'
        f'{name}_count{{{labels}"true"}} 10\n{name}_sum{{{labels}"false"}} 0.25\n'
        f'{name}_count{{{labels}"false"}} 2\nother_count 99\n'
    )

    assert conversions(exposition) == (12, 0.75, 2)
