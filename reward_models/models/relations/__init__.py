"""Models that say whether a spatial relation between two objects holds; ``reward_models.models.RELATIONS``."""
