"""`stowplan convert`: the webhook's conversion offline, on files that keep their comments and order."""
