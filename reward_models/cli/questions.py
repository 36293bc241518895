"""``spatialsim rel3d questions``: a split file in which every scene is asked about other predicates too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def questions(
    folder: Annotated[Path, typer.Argument(help="Folder of a generated set of scenes.")],
    out: Annotated[Path, typer.Option(help="The split file to write, as asked.json.")],
    times: Annotated[int, typer.Option(help="Questions added for each sample, on average.", min=1)] = 3,
    seed: Annotated[int, typer.Option(help="Seed of their choice.", min=0)] = 0,
) -> None:
    """Add questions far from the borders, which a model needs in order to be a goal; the rules label them."""
    from reward_models.training.questions import write
    from spatialsim_env.relations.rel3d import published

    split = published.load(write(folder, out, seed, times))
    print(f"wrote {out}: {len(split.train)} training, {len(split.valid)} validation, {len(split.test)} test samples")
