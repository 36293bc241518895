"""Print the published Rel3D data: counts, odd records, a sample as a 3D scene, the scenes behind the pictures.

The data are not part of this project. Give the folder with the split files (and, if you have them, the annotation
CSVs of the renderer); without one, the small hand-made files of the tests are read, which have the same fields.
"""

import argparse
from pathlib import Path

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import solid_files
from spatialsim_env.relations.rel3d import published, scene_files

HAND_MADE = Path(__file__).parents[1] / "tests" / "data" / "rel3d"

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("folder", nargs="?", type=Path, default=HAND_MADE)
parser.add_argument("--split", default="", help="name of a split file; c_0.9_c_0.1.json if it is there, else the first")
parser.add_argument("--obj", type=Path, default=Path("runs/load_rel3d/scene.obj"), help="where to write a scene")
args = parser.parse_args()

there = sorted(path.name for path in args.folder.glob("*c_*_*c_*.json"))
name = args.split or (there[0] if there and published.MAIN not in there else published.MAIN)
split = published.load(args.folder / name)  # says which file to download where there is none

print(f"{name}: {len(split.predicates)} predicates, {len(split.objects)} objects, {len(split.problems)} odd records")
for problem in split.problems[:5]:
    print(f"  {problem}")
for part in published.SPLITS:
    samples = getattr(split, part)
    paired = (samples.pair >= 0).sum()
    print(f"{part:5}: {len(samples):6} samples, {samples.label.sum():6} hold, {paired:6} in pairs")

weights = published.loss_weights(split.train, len(split.predicates))
for (predicate, (train, valid, test)), weight in zip(split.counts().items(), weights, strict=True):
    if train + valid + test:
        print(f"  {predicate:26} {train:5} {valid:5} {test:5}   weight {weight:.3f}")

scenes, observers, rows = scene_files.scenes_of(split.train)
if len(rows):
    row = rows[0]
    subject, other = (split.objects[i] for i in (split.train.subject[row], split.train.object[row]))
    verdict = "holds" if split.train.label[row] else "does not hold"
    print(f"{subject!r} {split.predicates[split.train.predicate[row]]} {other!r}: {verdict}")
    for what, thing in zip((subject, other), scenes[0], strict=True):
        print(f"  {what!r}: centre {thing[scene.CENTER].round(2)}, full sizes {(2 * thing[scene.HALF]).round(2)}")
    solid_files.write_boxes(scenes[0], args.obj.with_suffix(".json"))
    solid_files.write_obj(scenes[0], args.obj)
    print(f"written: {args.obj}")

if (args.folder / scene_files.CSV_NAMES[0]).exists():
    annotations, odd = scene_files.read_annotations(args.folder)
    states = sum(len(annotation.rendered) for annotation in annotations)
    print(f"{len(annotations)} annotated pairs of scenes, {states} states drawn, {len(odd)} odd rows")
