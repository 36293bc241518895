"""Minimally contrastive pairs of our own: proposals, movements, data sets, pictures."""
