"""`stowplan profile`: print what running engines show, as YAML for the spec of a VariantAutoscaling.

run            the command
arguments      its command line
sources        reads engines: from the cluster, Prometheus, a URL or files
shown          the profile, in YAML and in words
"""
