"""The command line, ``spatialsim``."""
