"""Everything learned and everything measured: networks that judge arrangements, their training, and their use.

>>> import reward_models
>>> model = reward_models.load("runs/demo/matching")
>>> model.score(achieved, desired)

Importing this package is cheap: torch comes with the first name taken from it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reward_models.auditing.audit import audit
    from reward_models.judges.learned import LearnedModel, LearnedReward, load

__all__ = ["LearnedModel", "LearnedReward", "audit", "load"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = import_module("reward_models.auditing.audit" if name == "audit" else "reward_models.judges.learned")
    except ImportError as error:
        extra = "audit" if name == "audit" else "learn"
        raise ImportError(f'{name} needs the networks: pip install "spatialsim-env[{extra}]" ({error})') from error
    return getattr(home, name)


def __dir__() -> list[str]:
    """List the names for users alone."""
    return sorted(__all__)
