"""KEDA's operator and metrics adapter, built from its Go module, on a control plane."""
