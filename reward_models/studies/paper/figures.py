"""The figures of a benchmark's report: samples, heat maps and learning curves, drawn without a display.

Each function returns a matplotlib figure, or None where no row has what it shows; ``png`` turns it into bytes, the same
for the same rows and version of matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.measuring.heat_map import draw_heat_map
from reward_models.studies.paper.protocol import title
from reward_models.studies.paper.runs import GROUPS
from reward_models.studies.paper.summary import Cells
from reward_models.studies.paper.tables import DISCRIMINATION, IDENTIFICATION, cells_of
from reward_models.studies.paper.work import PaperRow
from reward_models.tables import blank_figure
from spatialsim_env.arrangements.pictures import picture
from spatialsim_env.arrangements.scene import ARENA, POSITION, SIZE, present
from spatialsim_env.arrangements.tasks import Identification

N_OBJECTS = 5  # in the scenes of Figures 1 and 2
BAND = (10, 90)  # percentiles of the runs between which a learning curve's band lies
_COLORS = {model: f"C{k}" for k, model in enumerate(dict.fromkeys((*DISCRIMINATION, *IDENTIFICATION)))}
_MARGIN = 2.0  # units around the objects of Figure 1
_LEAST_ACCURACY = 0.45  # lower end of the learning curves; chance is 0.5


def samples(seed: int = 0) -> Any:
    """Figure 1: the reference scene of Identification with five objects, a positive and a negative of it.

    Raises:
        ImportError: pygame-ce is not installed.
    """
    drawn = Identification(N_OBJECTS, reference_seed=0).sample(100, np.random.default_rng(seed))
    scenes = {
        "reference": drawn.reference[0],
        "positive": drawn.target[drawn.label == 1][0],
        "negative": drawn.target[drawn.label == 0][0],
    }
    window = _window(list(scenes.values()))
    figure = blank_figure(10, 3.9)
    for axes, (name, scene) in zip(figure.subplots(1, len(scenes)), scenes.items(), strict=True):
        axes.imshow(picture(scene, 600, window), extent=(*window[0], *window[1]), interpolation="antialiased")
        axes.add_patch(_arena())
        axes.set_title(name, fontsize=10)
        axes.tick_params(labelsize=8)
    figure.supxlabel(
        "Positive: noise on every feature, then moved, turned and scaled; negative: positions drawn anew before that.\n"
        "Units; dashed: the arena, 20 x 20.",
        fontsize=9,
    )
    return figure


def _window(scenes: Sequence[NDArray[Any]]) -> tuple[tuple[float, float], tuple[float, float]]:
    """The smallest square around the arena and all objects, with a margin."""
    objects = np.concatenate([scene[present(scene)] for scene in scenes])
    low = np.minimum((objects[:, POSITION] - objects[:, SIZE, None]).min(axis=0), 0) - _MARGIN
    high = np.maximum((objects[:, POSITION] + objects[:, SIZE, None]).max(axis=0), ARENA) + _MARGIN
    center, half = (low + high) / 2, float((high - low).max()) / 2
    (x_lo, y_lo), (x_hi, y_hi) = (center - half).tolist(), (center + half).tolist()
    return (x_lo, x_hi), (y_lo, y_hi)


def _arena() -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((0, 0), ARENA, ARENA, fill=False, linestyle="--", linewidth=0.8, edgecolor="0.4")


def heat_maps(results: Cells, task: str) -> Any | None:
    """Figure 2 for a task: what each model says of a scene whose one object is displaced over the arena.

    All panels share one symmetric scale, linear within ±1 and logarithmic beyond, because networks differ by orders of
    magnitude in their logits; a line marks where the verdict changes.
    """
    scenes = f"n{N_OBJECTS}" if task == "identification" else GROUPS[0]
    models = IDENTIFICATION if task == "identification" else DISCRIMINATION
    cells = {"truth": f"rules/truth/{scenes}", "matching": f"{task}/matching/{scenes}"}
    cells |= {model: f"{task}/{model}/{scenes}" for model in models if model != "matching"}
    maps = {model: _first_map(results.cells.get(cell, ())) for model, cell in cells.items()}
    shown = {model: row for model, row in maps.items() if row is not None}
    if not shown:
        return None
    lines = 1 + (len(shown) > 3)
    columns = math.ceil(len(shown) / lines)
    figure = blank_figure(2.9 * columns + 1, 3.1 * lines + 1)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes, (model, row) in zip(grid.flat, shown.items(), strict=False):
        image = draw_heat_map(axes, row.heat_map or {})
        logits = axes.images[0].get_array()
        low, high = np.min(logits), np.max(logits)
        name = "truth: 1 - distance" if model == "truth" else title(model)
        axes.set_title(f"{name}\n{_number(low)} to {_number(high)}", fontsize=9)
    bar = figure.colorbar(image, ax=grid, shrink=0.85, extend="both")
    bar.set_label("logit of “same” minus logit of “different”:\nlinear within ±1, logarithmic beyond", fontsize=9)
    trained = "Identification, n = 5" if task == "identification" else f"Discrimination, trained on {scenes}"
    figure.suptitle(
        f"{trained}: one object (star: its true place) displaced over the arena\n"
        "same scale in all panels; line: 0, where the verdict changes",
        fontsize=10,
    )
    return figure


def _first_map(rows: Iterable[PaperRow]) -> PaperRow | None:
    return next((row for row in rows if row.heat_map is not None), None)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def curves(results: Cells, task: str) -> Any | None:
    """Validation accuracy and training loss of a task by epoch, a column a group, with the stages of the curriculum."""
    models = IDENTIFICATION if task == "identification" else DISCRIMINATION
    from matplotlib.ticker import MaxNLocator

    logs = {(model, group): _logs(results.runs(cells_of(task, model, group))) for model in models for group in GROUPS}
    if not any(len(log) for log in logs.values()):
        return None
    figure = blank_figure(12, 6.5)
    grid = figure.subplots(2, len(GROUPS), sharex=True, sharey="row")
    for column, group in enumerate(GROUPS):
        accuracy, loss = grid[:, column]
        for model in models:
            log = logs[model, group]
            if len(log):
                _curve(accuracy, log[..., 1], model)
                _curve(loss, log[..., 0], model)
        accuracy.set_title(f"{group} objects", fontsize=10)
        accuracy.set_ylim(_LEAST_ACCURACY, 1.01)
        loss.set_yscale("log")
        loss.set_xlabel("epoch", fontsize=9)
        for axes in (accuracy, loss):
            axes.grid(alpha=0.25)
            axes.tick_params(labelsize=8)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if task == "discrimination":
            _mark_stages(
                accuracy, loss, [row for model in models for row in results.runs(cells_of(task, model, group))]
            )
    grid[0, 0].set_ylabel("validation accuracy", fontsize=9)
    grid[1, 0].set_ylabel("training loss, all rounds", fontsize=9)
    lines = {line.get_label(): line for axes in grid[0] for line in axes.get_lines() if line.get_gid() == "model"}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=5, fontsize=9, frameon=False)
    band = f"line: mean over runs, band: {BAND[0]}th to {BAND[1]}th percentile"
    stages = "; dashed: stages of the curriculum, with their limit of rotation" if task == "discrimination" else ""
    figure.suptitle(f"{task.capitalize()}: {band}{stages}", fontsize=10)
    return figure


def _logs(rows: Sequence[PaperRow]) -> NDArray[np.float64]:
    """Loss and validation accuracy (runs, epochs, 2) of runs of equal length; NaN for what is not finite."""
    logs = [[[math.nan if value is None else value for value in line[2:4]] for line in row.log] for row in rows]
    epochs = max(map(len, logs), default=0)
    return np.array([log for log in logs if log and len(log) == epochs], dtype=np.float64)


def _curve(axes: Any, values: NDArray[np.float64], model: str) -> None:
    known = np.isfinite(values).any(axis=0)
    epochs, values = 1 + np.flatnonzero(known), values[:, known]
    low, high = np.nanpercentile(values, BAND, axis=0)
    marker = "o" if len(epochs) <= 2 else None
    line = axes.plot(epochs, np.nanmean(values, axis=0), color=_COLORS[model], marker=marker, markersize=4)[0]
    line.set(label=title(model), gid="model", linewidth=1.5)
    axes.fill_between(epochs, low, high, color=_COLORS[model], alpha=0.15, linewidth=0)


def _mark_stages(accuracy: Any, loss: Any, rows: Sequence[PaperRow]) -> None:
    """A line before each stage of the curriculum and its rotation limit, from the first run that has one."""
    row = next((row for row in rows if len(row.settings["stages"]) > 1 and row.log), None)
    if row is None:
        return
    of_epoch = [line[0] for line in row.log]
    middles = {}
    for stage, limit in enumerate(row.settings["stages"], start=1):
        if stage not in of_epoch:
            continue
        start, length = of_epoch.index(stage) + 0.5, of_epoch.count(stage)
        middles[start + length / 2] = f"{limit / math.pi:.1f}π"
        if stage > 1:
            for axes in (accuracy, loss):
                axes.axvline(start, color="0.5", linestyle="--", linewidth=0.7)
    top = accuracy.secondary_xaxis("top")
    top.set_xticks(list(middles), list(middles.values()), fontsize=8, color="0.35")
    top.tick_params(length=0, pad=1)
