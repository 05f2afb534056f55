"""The kinds of Kthena: groups registry.volcano.sh and networking.volcano.sh."""
