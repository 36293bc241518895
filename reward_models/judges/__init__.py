"""Trained networks as judges of scenes and as rewards, by name or folder."""
