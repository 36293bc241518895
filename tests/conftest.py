from __future__ import annotations

import os

from hypothesis import settings

# Locally every run tries new examples; where a verdict is passed, the same ones every time. A first call may compile.
settings.register_profile("explore", deadline=None)
settings.register_profile("verdict", deadline=None, derandomize=True)
settings.load_profile("verdict" if os.environ.get("CI") else "explore")
