"""`stowplan doctor`: what prevents an installation from working, before and after it is installed.

run           the entry point
evidence      read the cluster with the user's permissions, once
rights        what each permission of our accounts is for
installation  checks of what is installed: definitions, webhooks, APIs, certificates, permissions
processes     checks of processes: ours, those of other controllers, and what a platform needs
workloads     checks of what is planned: settings, nodes, autoscalers, engines, Prometheus
"""
