"""Two models of relations on contrastive pairs: one that knows the words alone, and one that sees oriented boxes.

In every pair the same words are once true and once false, so words alone are right half of the time, exactly. The
labels are rules, not human judgements. Published files are read in the same way: ``--data FOLDER``.
"""

import argparse
from pathlib import Path

from reward_models.measuring.relation_accuracy import of_folder
from reward_models.training.rel3d import RelationConfig, train
from spatialsim_env.relations.pairs import generation
from spatialsim_env.relations.rel3d import published

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("runs/train_relations"), help="folder of the runs")
parser.add_argument("--data", type=Path, help="folder of a split file; pairs are generated without one")
parser.add_argument("--pairs", type=int, default=1_500, help="pairs to generate")
parser.add_argument("--epochs", type=int, default=30, help="at most")
parser.add_argument("--model", nargs="+", default=["language_only", "relational"], help="models to train")
options = parser.parse_args()

data = options.data or generation.generate(options.out / "data", options.pairs, seed=0, halves=False)
split = published.load(data)
print(f"{len(split.train)} samples to learn from, {len(split.test)} to test on")
for name in options.model:
    config = RelationConfig.published(name, epochs=options.epochs)
    train(config, split, options.out / name, progress=False)
    found = of_folder(options.out / name, split)
    print(f"{name}: accuracy {found['mean']:.3f}, both of a pair right {found['pair_mean']:.3f}")
