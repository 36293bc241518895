"""The pictures of an audit, from its report alone: paths, reliability curves, heat maps and the gallery."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.auditing.measures import BINS, label
from reward_models.measuring.heat_map import draw_heat_map
from reward_models.shares import format_value
from reward_models.tables import blank_figure
from spatialsim_env.arrangements.viewer import SceneViewer
from spatialsim_env.core.screen import tile

PATH_LIMITS = (0.05, 100.0)  # distances that are drawn, in tolerances
PATH_SCORES = 1e4  # ends of the scale of scores
_COLORS = {(True, True): "C2", (True, False): "C3", (False, True): "C0", (False, False): "0.6"}
_MEANINGS = {
    (True, True): "claim, true",
    (True, False): "claim, false",
    (False, True): "no claim, though true",
    (False, False): "no claim",
}

Report = dict[str, Any]


def paths(found: Report) -> Any:
    """Score along each optimiser's paths against the true distance; a column for each number of objects."""
    kinds = list(dict.fromkeys((row["optimiser"], row["moves"]) for row in found["rows"]))
    sizes = found["settings"]["n_objects"]
    figure = blank_figure(3.2 * len(sizes) + 0.6, 2.6 * len(kinds) + 1.3)
    grid = figure.subplots(len(kinds), len(sizes), sharex=True, sharey=True, squeeze=False)
    at = {(row["optimiser"], row["moves"], row["n_objects"]): row for row in found["rows"]}
    for line, (optimiser, moves) in zip(grid, kinds, strict=True):
        for axes, n in zip(line, sizes, strict=True):
            row = at.get((optimiser, moves, n))
            if row is None:
                axes.set_axis_off()
                continue
            _paths(axes, row["paths"])
            title = optimiser if moves == optimiser else f"{optimiser}, {moves}"
            axes.set_title(f"{title}, {n} objects: precision {format_value(row['precision'])}", fontsize=8)
    figure.supxlabel("the truth's distance; up to 1 is achieved", fontsize=9)
    figure.supylabel("score; above 0 says achieved", fontsize=9)
    marks = [_mark(color, _MEANINGS[ends]) for ends, color in _COLORS.items()]
    figure.legend(
        handles=marks, loc="outside upper center", ncols=4 if len(sizes) > 1 else 2, fontsize=8, frameon=False
    )
    return figure


def _mark(color: str, meaning: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, marker="o", markersize=5, linewidth=0.8, label=meaning)


def _paths(axes: Any, found: list[Report]) -> None:
    low, high = PATH_LIMITS
    for path in found:
        color = _COLORS[path["claimed"], path["achieved"]]
        points = [(high if far is None else min(max(far, low), high), score) for _, score, far in path["points"]]
        distance, score = zip(*points, strict=True)
        axes.plot(distance, score, color=color, linewidth=0.7, alpha=0.6)
        axes.plot(distance[-1], score[-1], "o", color=color, markersize=4)
    axes.axvline(1, color="black", linewidth=0.7, linestyle="--")
    axes.axhline(0, color="black", linewidth=0.7, linestyle="--")
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(-PATH_SCORES, PATH_SCORES)
    axes.set_yticks([-1e4, -1e2, -1, 0, 1, 1e2, 1e4])
    axes.tick_params(labelsize=7)


def reliability(found: Report) -> Any:
    """Share truly achieved against the model's probability, on fixed data and at the optimisers' ends."""
    sizes = found["settings"]["n_objects"]
    figure = blank_figure(3.1 * len(sizes) + 0.4, 5.2)
    for axes, n, fixed in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, found["fixed"], strict=True):
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle="--")
        curves = {("fixed data", ""): fixed["calibration"]}
        of_n = [row for row in found["rows"] if row["n_objects"] == n]
        curves |= {(row["optimiser"], row["moves"]): row["calibration"] for row in of_n}
        for (name, moves), curve in curves.items():
            curve_of = name if moves in ("", name) else f"{name}, {moves}"
            style = {"color": "black", "marker": "s"} if name == "fixed data" else {"marker": "o", "alpha": 0.8}
            probability, share = np.array(curve["bins"], np.float64)[:, 2:].T
            axes.plot(probability, share, linewidth=1, markersize=4, label=f"{curve_of}: {curve['ece']:.3f}", **style)
        axes.set_title(f"{n} objects", fontsize=9)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.tick_params(labelsize=7)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.08), "frameon": False}
        axes.legend(fontsize=7, title="calibration error", title_fontsize=7, **below)
    figure.supxlabel(f"the model's probability of “achieved”, {BINS} bins", fontsize=9)
    figure.supylabel("share that is", fontsize=9)
    return figure


def heat_maps(found: Report) -> Any:
    """Draw the model's scores of a scene whose one object is displaced, as in Figure 2 of the paper."""
    maps = found["heat_maps"]
    figure = blank_figure(2.9 * len(maps) + 1, 3.6)
    grid = figure.subplots(1, len(maps), squeeze=False)
    for axes, one in zip(grid[0], maps, strict=True):
        image = draw_heat_map(axes, one)
        axes.set_title(f"{one['n_objects']} objects", fontsize=9)
    bar = figure.colorbar(image, ax=grid, shrink=0.85, extend="both")
    bar.set_label("score: linear within ±1, logarithmic beyond", fontsize=8)
    figure.suptitle("one object (star: its true place) displaced\nover the arena; line: score 0", fontsize=9)
    return figure


def gallery(found: Report) -> NDArray[np.uint8] | None:
    """The worst false achievements beside their goals, as one picture; None where there is none."""
    frames = []
    for claim in found["gallery"]:
        said = f"{label(claim)}: score {claim['score']:.3g}"
        distance = math.inf if claim["distance"] is None else claim["distance"]
        viewer = SceneViewer("rgb_array", hint=said)
        goal, arena = (np.array(claim[name], np.float32) for name in ("desired", "achieved"))
        frame = viewer.draw(goal, arena, distance=distance, achieved=False, step=claim["evaluations"])
        viewer.close()
        assert frame is not None
        frames.append(frame)
    return tile(frames) if frames else None
