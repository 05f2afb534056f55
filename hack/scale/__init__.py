"""Measures the API requests caused by many VariantAutoscalings or many Models, from the audit log.

- a run: `campaign`, with a `fleet` and its `engines`; memory of serving processes: `memory`; Models: `models`
"""
