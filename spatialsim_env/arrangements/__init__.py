"""Arrangements of coloured shapes in the plane: scenes, truth, generators, dynamics, pictures."""
