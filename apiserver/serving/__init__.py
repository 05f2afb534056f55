"""The runtime of every HTTPS process. It depends neither on Kubernetes' API nor on our kinds.

config            configuration of a server subcommand, and its start
process           runs an application, with readiness checks, probes and metrics, until its graceful shutdown
listener          an application on a port, from the first connection to graceful shutdown
connections       limits open connections, and requests that never complete
bodies            limits on the memory of request bodies
tls               server-side TLS, with certificate files that are reloaded without a restart
process_metrics   Prometheus metrics of the process
authority         our own certificate authority and the certificates that it issues
"""
