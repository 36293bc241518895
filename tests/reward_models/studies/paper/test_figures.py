"""Figures are drawn, and show what rows have."""

from __future__ import annotations

import io

import numpy as np
import pytest

from reward_models.measuring.heat_map import MOST_LOGIT
from reward_models.studies.paper import figures
from reward_models.studies.paper.summary import Cells
from reward_models.tables import png
from spatialsim_env.arrangements.scene import POSITION
from spatialsim_env.arrangements.tasks import reference_scene
from tests.reward_models.studies.paper.synthetic import cell, heat_map, row

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")


def pixels(figure) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png(figure))).convert("RGB"))


@pytest.fixture(scope="module")
def results():
    rows = [row("rules/truth/n5", 0), *cell("identification/matching/n5", 1.0, 0.9, heat_map=heat_map(300))]
    return Cells([*rows, *cell("identification/gcn/n5", 0.5, heat_map=heat_map(0.01))])


@pytest.mark.parametrize(
    "draw",
    [
        lambda results: figures.samples(),
        lambda results: figures.heat_maps(results, "identification"),
        lambda results: figures.curves(results, "identification"),
        lambda results: figures.curves(Cells(cell("discrimination/mpgnn/3-8", 0.9, 0.8)), "discrimination"),
    ],
)
def test_a_figure_has_a_size_and_shows_something(draw, results):
    image = pixels(draw(results))
    assert min(image.shape[:2]) > 300
    assert image.std() > 5
    assert png(draw(results)) == png(draw(results))


@pytest.mark.parametrize("draw", [figures.heat_maps, figures.curves])
def test_without_a_row_there_is_no_figure(draw):
    assert draw(Cells([]), "discrimination") is None


def test_heat_maps_share_one_symmetric_scale_and_mark_the_places(results):
    figure = figures.heat_maps(results, "identification")
    panels = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title().split("\n")[0] for axes in panels] == ["truth: 1 - distance", "matching network", "GCN"]
    assert {axes.images[0].get_clim() for axes in panels} == {(-MOST_LOGIT, MOST_LOGIT)}
    assert all(axes.images[0].norm(0) == pytest.approx(0.5) for axes in panels)
    positions = reference_scene(5, 0)[:, POSITION]
    for axes in panels:
        dots, star = (line.get_xydata() for line in axes.get_lines())
        np.testing.assert_allclose(star, positions[:1])
        np.testing.assert_allclose(dots, positions[1:])


def test_a_heat_map_is_not_upside_down():
    """Logits are listed from low y to high y, and the axis of y points up."""
    found = heat_map() | {"logits": np.repeat(np.linspace(-1, 1, 40)[:, None], 40, axis=1).tolist()}
    figure = figures.heat_maps(Cells([row("rules/truth/n5", 0, heat_map=found)]), "identification")
    axes = figure.axes[0]
    png(figure)
    assert axes.images[0].origin == "lower"
    assert axes.get_ylim()[0] < axes.get_ylim()[1]
    low, high = axes.transData.transform([(1, 1), (1, 19)])[:, 1]
    assert low < high


def test_curves_are_means_over_runs_and_stages_are_marked():
    rows = cell("discrimination/mpgnn/3-8", 0.9, 0.7)
    figure = figures.curves(Cells(rows), "discrimination")
    accuracy = figure.axes[0]
    line = next(line for line in accuracy.get_lines() if line.get_gid() == "model")
    expected = np.mean([[epoch[3] for epoch in one.log] for one in rows], axis=0)
    np.testing.assert_allclose(line.get_ydata(), expected)
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 26))
    stages = [line.get_xdata()[0] for line in accuracy.get_lines() if line.get_gid() != "model"]
    assert stages == [5.5, 10.5, 15.5, 20.5]
    labels = [text.get_text() for text in accuracy.child_axes[0].get_xticklabels()]
    assert labels == ["0.1π", "0.6π", "1.1π", "1.6π", "2.0π"]


def test_losses_that_are_not_finite_are_left_out():
    """A row has null there."""
    first, second = cell("identification/gcn/n5", 0.5, 0.5)
    for one in (first, second):
        one.log[0][2] = None
    first.log[1][2] = None
    figure = figures.curves(Cells([first, second]), "identification")
    line = next(line for line in figure.axes[3].get_lines() if line.get_gid() == "model")
    assert line.get_xdata()[0] == 2
    assert line.get_ydata()[0] == second.log[1][2]
