"""The environment of relations: episodes, dynamics, goals, rewards, viewer."""
