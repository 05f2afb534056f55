"""How many requests many VariantAutoscalings cost the API server, by its own audit log."""
