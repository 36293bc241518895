"""Small splits of scenes: minimally contrastive pairs in which the subject lies right or left of the object."""

from __future__ import annotations

import numpy as np

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import cameras, views
from spatialsim_env.relations.rel3d import records, vectors
from spatialsim_env.relations.rel3d.published import RelationSamples, Split

PREDICATES = ("to the right of (wrt you)", "to the left of (wrt you)", "near")
OBJECTS = ("cup", "box", "lamp", "chair")


def samples(n_pairs: int, seed: int, n_views: int = 1, folder: str = "") -> RelationSamples:
    """``n_pairs`` pairs of scenes of ``n_views`` views each; true is right of the object, or left, or 0.4 m away.

    The numbers of pairs in pictures' names begin at 1000 times the seed.
    """
    rng = np.random.default_rng(seed)
    place, view, member = (x.ravel() for x in np.indices((n_pairs, n_views, 2)))
    predicate = np.arange(n_pairs)[place] % len(PREDICATES)
    label = member == 0
    side = np.where(label == (predicate != 1), 1.0, -1.0)
    shift = np.where(predicate == 2, np.where(label, 0.4, 1.5), 0.6 * side)
    center = np.zeros((len(place), 2, 3))
    center[:, scene.SUBJECT] = rng.uniform(-0.05, 0.05, (n_pairs, 3))[place]
    center[:, scene.SUBJECT, 0] += shift
    center[:, :, 2] += 0.3
    half = rng.uniform(0.05, 0.1, (n_pairs, 2, 3))[place]
    turn = scene.yaw_rotation(rng.uniform(0, 360, (n_pairs, 2)))[place]
    shown = scene.objects(center, turn, half, np.zeros((len(place), 2), int))
    eye = scene.observers(np.stack([0.1 * view, np.full(len(place), -4.0), 1.0 + 0.1 * view], axis=1), np.zeros(3))
    subject, other = rng.integers(0, len(OBJECTS), (2, n_pairs))[:, place]
    rgb = tuple(
        folder
        + records.picture_name(
            PREDICATES[predicate[k]],
            OBJECTS[subject[k]],
            f"{OBJECTS[other[k]]} {1000 * seed + place[k]}",
            records.STATES[member[k]],
            int(view[k]),
        )
        for k in range(len(place))
    )
    return RelationSamples(
        predicate=predicate,
        subject=subject,
        object=other,
        label=label,
        boxes=views.boxes(shown, eye).astype(np.float32),
        picture_size=np.tile(np.int32([views.WIDTH, views.HEIGHT]), (len(place), 1)),
        vectors=vectors.all_of(shown, eye),
        pair=place * n_views + view,
        rgb=rgb,
        depth=rgb,
        cameras=cameras.camera_infos(eye),
        extra={"margin": np.where(label, 0.5, -0.5), "kinds": scene.kind(shown)},
    )


def split(train: int = 60, valid: int = 12, test: int = 12, n_views: int = 1, folder: str = "") -> Split:
    """A split of numbers of pairs."""
    parts = [samples(n, seed, n_views, folder) for seed, n in enumerate((train, valid, test))]
    return Split(*parts, predicates=PREDICATES, objects=OBJECTS, name="c_0.9_c_0.1")
