"""The study of models of 3D relations."""
