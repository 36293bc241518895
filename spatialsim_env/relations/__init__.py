"""Spatial relations in 3D (Rel3D): scenes of two objects, 30 predicates as rules, data, views, an environment."""
