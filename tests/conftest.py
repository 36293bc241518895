from __future__ import annotations

import os

from hypothesis import settings

# Locally every run tries new examples; where a verdict is passed, the same ones every time.
settings.register_profile("verdict", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("verdict")
