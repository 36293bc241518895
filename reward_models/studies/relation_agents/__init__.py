"""Agents of 3D relations."""
