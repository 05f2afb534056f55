"""The group inference.networking.x-k8s.io of the Gateway API Inference Extension: `inferenceobjective`."""
