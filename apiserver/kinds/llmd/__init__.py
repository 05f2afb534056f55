"""The group llmd.ai: VariantAutoscaling, in the union of all its historic shapes and in its hub version."""
