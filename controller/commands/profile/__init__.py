"""`stowplan profile`: print what running engines show, as YAML for the spec of a VariantAutoscaling.

run            the command
arguments      its command line
profile        the profile: from the cluster, Prometheus, a URL or files, in YAML and in words
"""
