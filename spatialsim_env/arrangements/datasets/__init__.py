"""Data sets of pairs of scenes: by name, in shards, as text, from rollouts, for Minari."""
