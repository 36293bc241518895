"""What every world is made of: the environment, single and vectorised, rewards, the verdict."""
