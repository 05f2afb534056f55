"""Translation of ModelRoutes for Gateways with the Inference Extension, with notes about its limits. Pure."""
