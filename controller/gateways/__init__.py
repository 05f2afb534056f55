"""What ModelRoutes become for Gateways with the Inference Extension, and what cannot be said there. Pure."""
