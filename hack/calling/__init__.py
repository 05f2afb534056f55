"""Server processes on loopback ports, and requests as kube-apiserver sends them, for benchmarks and tests.

- a process: `server_process`, with its core, CPU time and memory: `cores`
- requests: `connection`, `load`; their bodies: `reviews`, `conversion_reviews`
- objects of each released shape: `variants`
"""
