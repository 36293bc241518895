"""Independent streams of random numbers, each from a seed and a name or numbers that say its purpose.

The names and numbers are hashed into the stream, so a change of one of them changes data and training.
"""

from __future__ import annotations

import zlib

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """Make the generator of one purpose, as "relations/subset"; a data set has the stream of its name."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def stream_of(*keys: int) -> np.random.Generator:
    """Make the generator of a seed and the numbers of a purpose, whose order counts."""
    return np.random.default_rng(keys)
