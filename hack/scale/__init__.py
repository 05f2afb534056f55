"""Measures the API requests caused by many VariantAutoscalings or many Models, from the audit log."""
