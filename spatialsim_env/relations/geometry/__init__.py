"""Geometry of oriented boxes in a room: exact measures, gravity, views, files."""
