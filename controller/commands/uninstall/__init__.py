"""`stowplan uninstall`: removes an installation from a cluster, and its traces from objects of others.

installed     the kinds that manifests install, in the order of removal, and how to find their objects
gather        the state of the cluster, read once
plan          what stands against the removal, what stays, and the remaining steps
uninstall     execution of the steps
"""
