"""The study of agents: what agents learn from each reward."""
