"""`stowplan expand`: what a Model becomes, without a cluster."""
