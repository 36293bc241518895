"""Rel3D as published: split files, vectors, scene files, subsets."""
