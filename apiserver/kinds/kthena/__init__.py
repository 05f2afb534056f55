"""The kinds of Kthena, in the API groups registry.volcano.sh and networking.volcano.sh."""
