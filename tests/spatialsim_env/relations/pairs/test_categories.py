"""Categories of our own scenes and what is admissible."""

import numpy as np
import pytest

from spatialsim_env.relations import scene
from spatialsim_env.relations.pairs import categories
from spatialsim_env.relations.vocabulary import DIRECTIONAL, PREDICATES


def test_all_kinds_occur_and_names_are_unique():
    assert {category.shape for category in categories.CATEGORIES} == set(scene.KIND_NAMES)
    assert len(set(categories.NAMES)) == len(categories.NAMES)


def test_sizes_are_ranges_that_fit_in_the_room():
    assert (categories.LOW > 0).all()
    assert (categories.LOW < categories.HIGH).all()
    assert (np.hypot(*categories.HIGH[:, :2].T) < 2 * scene.ROOM[0]).all()
    assert (categories.HIGH[:, 2] < scene.ROOM[2]).all()


def test_drawn_sizes_lie_in_their_ranges():
    which = np.tile(np.arange(len(categories.NAMES)), 50)
    sizes = categories.draw_sizes(which, np.random.default_rng(0))
    assert (sizes >= categories.LOW[which]).all()
    assert (sizes <= categories.HIGH[which]).all()


@pytest.mark.parametrize("predicate", PREDICATES)
def test_every_predicate_has_triples_of_different_things(predicate):
    triples = categories.triples(predicate)
    assert len(triples) >= 10
    assert (triples[:, 0] != triples[:, 1]).all()
    assert len(np.unique(triples, axis=0)) == len(triples)
    with pytest.raises(ValueError, match="read-only"):
        triples[0] = 0


@pytest.mark.parametrize("name", [*DIRECTIONAL, *(f"{name} (wrt you)" for name in DIRECTIONAL), "near", "aligned to"])
def test_anything_can_be_beside_anything(name):
    assert len(categories.triples(name)) == len(categories.NAMES) * (len(categories.NAMES) - 1)


@pytest.mark.parametrize(
    ("subject", "predicate", "object_", "expected"),
    [
        ("apple", "in", "bowl", True),
        ("bowl", "in", "apple", False),  # no cavity
        ("fridge", "in", "bowl", False),  # too large
        ("book", "on", "table", True),
        ("table", "on", "book", False),  # no room to stand
        ("book", "on", "cloud", False),  # nothing stands on what flies
        ("cloud", "over", "book", True),
        ("crate", "under", "cloud", True),
        ("cloud", "under", "crate", False),
        ("arrow", "passing through", "window", True),
        ("pole", "passing through", "hula hoop", True),
        ("book", "passing through", "window", False),  # no stick
        ("broom", "leaning against", "cabinet", True),
        ("cabinet", "leaning against", "broom", False),
        ("hoop", "around", "apple", True),
        ("apple", "around", "hoop", False),
        ("bottle", "points towards", "book", True),
        ("book", "points towards", "bottle", False),  # no tip
        ("bird", "outside", "bucket", True),
        ("book", "near", "book", False),  # one and the same
    ],
)
def test_admissible(subject, predicate, object_, expected):
    assert categories.admissible(subject, predicate, object_) is expected


def test_what_points_has_a_tip():
    for name in ("points towards", "points away"):
        assert all(categories.CATEGORIES[s].kind.tip is not None for s, _ in categories.triples(name))


@pytest.mark.parametrize("names", [("cat", "on", "table"), ("book", "upon", "table"), ("book", "on", "sofa")])
def test_unknown_names_are_refused(names):
    with pytest.raises(ValueError, match="accepted are"):
        categories.admissible(*names)
