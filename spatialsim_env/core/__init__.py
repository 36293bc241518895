"""Common parts of every world: the environment, single and vectorised, rewards, the verdict."""
