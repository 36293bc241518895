"""Models that come with the package, found as ``hub:NAME``: what they are, how they are made, and their checks."""
