"""How many requests many VariantAutoscalings, and many Models, cost the API server, by its own audit log."""
