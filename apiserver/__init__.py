"""What the API is, and serving it.

`schema` is the machine that knows no kind; `kinds` declares them, data only. `serving` is what any HTTPS
process of ours needs, `cluster` how any of them speaks to Kubernetes; neither knows the other. `metrics` is
the external metrics API, `cli` the command line.
"""
