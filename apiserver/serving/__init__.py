"""The runtime of every HTTPS process. It depends neither on Kubernetes' API nor on our kinds.

startup           starts a server subcommand; its configuration: `config`, `options`
process           runs an application with its health and metrics listeners, from start to graceful shutdown
listener          an application on a port, from the first connection to graceful shutdown
health            applications for probes and metrics
supervisor        background jobs that must never end by themselves
tls               server-side TLS, with certificate files that are reloaded without a restart
connections       limits open connections, and requests that never complete
bodies            limits on the memory of request bodies; `memory` returns it to the operating system
requests          the middleware: counts and measures requests, and closes connections while draining
readiness         named readiness checks
aside             imports the HTTP library in parallel with the rest of a start
process_metrics   Prometheus metrics of the process
authority         our own certificate authority and the certificates that it issues
"""
