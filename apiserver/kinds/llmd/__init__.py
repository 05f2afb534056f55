"""The API group llmd.ai: VariantAutoscaling, as the union of its released shapes and in its hub version."""
