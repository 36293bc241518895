"""Minimally contrastive pairs of 3D scenes: made, looked at, and written as a picture where MuJoCo is installed.

Both members of a pair show the same two objects to the same observer. One object was moved along one axis, past the
place where the relation breaks. The labels are rules, not human judgements.
"""

import argparse
from pathlib import Path

from spatialsim_env.relations.pairs import categories, generation, picture_files, scene_sets
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.vocabulary import PREDICATES

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("runs/generate_pairs"), help="folder; run again to go on")
parser.add_argument("--predicate", nargs="+", default=["on", "near", "in front of (wrt you)"], help="relations")
parser.add_argument("--pairs", type=int, default=300, help="pairs of scenes, in all")
parser.add_argument("--draw", type=int, default=3, help="pairs to draw; 0 for none")
options = parser.parse_args()

generation.generate(options.out, options.pairs, seed=0, predicates=options.predicate, halves=False)
pairs = scene_sets.load(options.out / generation.SCENES)

for row in range(min(5, len(pairs))):
    holds, fails = predicates.margin_of(
        pairs.predicate[[row, row]], pairs.scenes[row], pairs.observers[row, [0, 0]]
    )  # by the rule, of the two members
    subject, other = (categories.NAMES[k] for k in (pairs.subject[row], pairs.object[row]))
    print(f"{subject} {PREDICATES[pairs.predicate[row]]} {other}: margins {holds:+.2f} and {fails:+.2f}")

if options.draw:
    picture_files.draw_pairs(pairs, list(range(options.draw)), options.out / "pairs.png")
    print(f"drawn: {options.out / 'pairs.png'}")
