"""What any HTTPS process of ours needs; it knows neither Kubernetes' API nor our kinds.

process           runs an application with its health and metrics listeners, from start to orderly end.
tls               the server's side of TLS; certificate files are replaced without a restart.
accepting         accepts connections, and counts each from then on.
connections       bounds what a client can hold on to: connections, and requests that it never finishes.
requests          the one middleware: counts, measures, and asks clients to leave while the process drains.
readiness         named checks: may traffic come, and if not, why not.
aside             has the HTTP library loaded beside the rest of a start.
log               one line per event, JSON or for people.
logger            for our own events; `structured` is for those that come through structlog.
process_metrics   what the process tells Prometheus about itself.
authority         our own certificate authority and the certificates that it issues.
"""
