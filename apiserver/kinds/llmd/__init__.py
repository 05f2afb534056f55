"""The API group llmd.ai: VariantAutoscaling, as the union of its released shapes and in its hub version.

- versions: `v1alpha1`, and the hub `v1alpha2`; names, columns and warnings: `variantautoscaling`
- conversion between them: `conversion`; the identity of a variant: `identity`
- shapes of releases: `shapes`, of `shapes_released`, from known properties: `shapes_facts`
"""
