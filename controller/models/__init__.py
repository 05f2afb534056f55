"""What a Model becomes: workloads, Services, routes, policies and autoscalers. Pure."""
