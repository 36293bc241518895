"""The figures of the report on 3D relations, drawn without a display, from rows and the files beside them.

Each function returns a matplotlib figure, or None where nothing that it shows is there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.measuring.boundaries import Boundaries
from reward_models.studies.rel3d.runs import FULL, KINDS, SHARES, VARIANTS, name_of
from reward_models.studies.rel3d.tables import Measured, margin_bins, values
from reward_models.tables import blank_figure
from spatialsim_env.relations import vocabulary

HOLDS, FAILS = "#2166ac", "#b2182b"
STYLES = {"c": "-", "nc": "--"}
VERTICAL = (  # what is drawn from the side: distance along the floor, and height
    "on", "on top of", "over", "under", "below", "in", "inside", "outside", "covering", "around", "leaning against",
    "passing through",
)  # fmt: skip
FARTHEST = 2.5  # metres shown of positions
BOUNDED = ("boxes2d", "mlp_raw", "mlp_raw_6d", "mlp_aligned_512", "mlp_aligned_512_6d", "relational")
_MOST_LOGIT = 4.0  # end of the scale of boundaries


def efficiency(results: Measured) -> Any | None:
    """Accuracy by number of training samples, contrastive and not, a line a model, with the deviation over runs."""
    lines = {}
    for name, variant in VARIANTS.items():
        for kind in KINDS if variant.curves else ():
            cells = [name_of(kind, share) for share in SHARES] + ([FULL] if kind == "c" else [])
            runs = [found for cell in cells if (found := results.runs(name, cell))]
            if len(runs) > 1:
                lines[name, kind] = runs
    if not lines:
        return None
    colors = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(name for name, _ in lines))}
    figure, ticks = blank_figure(10, 4.4), set[int]()
    for axes, key, chance, title in zip(
        figure.subplots(1, 2), ("mean", "pair_mean"), (0.5, 0.25), ("accuracy", "both of a pair right"), strict=True
    ):
        for (name, kind), runs in lines.items():
            sizes = [np.mean([row.data["samples"]["train"] for row in found]) for found in runs]
            means = np.array([np.mean(values(found, key)) for found in runs])
            deviations = np.array([np.std(values(found, key)) for found in runs])
            label = f"{VARIANTS[name].title}, {KINDS[kind]}"
            axes.plot(sizes, means, STYLES[kind], marker="o", markersize=3, color=colors[name], label=label)
            low, high = means - deviations, means + deviations
            axes.fill_between(sizes, low, high, color=colors[name], alpha=0.12, linewidth=0)
            ticks.update(round(float(size)) for size in sizes)
        axes.axhline(chance, color="0.5", linewidth=0.8)
        axes.set(xscale="log", xlabel="training samples", ylabel=title)
        axes.set_xticks(sorted(ticks), [f"{tick:,}" for tick in sorted(ticks)], rotation=45, fontsize=7)
        axes.minorticks_off()
        axes.grid(alpha=0.25)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.suptitle(
        "Equal numbers of samples: both labels of a group (line), or one label of twice as many (dashed).\n"
        "Last point of a line: all groups. Bands: a deviation over runs. Grey: guessing.",
        fontsize=9,
    )
    return figure


def positions(results: Measured) -> Any | None:
    """Draw the subject's offset from the object in the test samples, in the predicate's own frame, by label."""
    tests = results.tests
    shown = [k for k in range(len(results.predicates)) if (tests.predicate == k).any()]
    if not shown:
        return None
    columns = min(6, len(shown))
    lines = math.ceil(len(shown) / columns)
    figure = blank_figure(2.3 * columns, 2.3 * lines + 0.9)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes, k in zip(grid.flat, shown, strict=False):
        name, rows = results.predicates[k], tests.predicate == k
        places, (across, along) = _places(name, tests.own[rows], tests.seen[rows])
        for held, color in ((False, FAILS), (True, HOLDS)):
            dots = places[tests.label[rows] == held]
            axes.plot(*dots.T, ".", color=color, markersize=2.5, alpha=0.6)
        axes.plot(0, 0, "+", color="black", markersize=7)
        reach = min(FARTHEST, float(np.abs(places).max()) * 1.05)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.set_title(name, fontsize=8)
        axes.set_xlabel(across, fontsize=7, labelpad=1)
        axes.set_ylabel(along, fontsize=7, labelpad=1)
        axes.tick_params(labelsize=6)
    source = "labels are rules" if results.rows[0].data["rules"] else "labels are human judgements"
    figure.suptitle(
        f"Test samples: centre of the subject from the object's (+), metres; blue where the predicate holds, red where "
        f"it fails; {source}",
        fontsize=9,
    )
    return figure


def _places(name: str, own: NDArray[Any], seen: NDArray[Any]) -> tuple[NDArray[Any], tuple[str, str]]:
    """Coordinates (n, 2) to draw and what they are called."""
    if name in VERTICAL:
        return np.stack([own[:, 0], seen[:, 2]], axis=1), ("to the object's front", "up")
    if name in vocabulary.INDEX and vocabulary.frame(name) == vocabulary.OBSERVER:
        return seen[:, :2], ("observer's right", "away")
    return np.stack([-own[:, 1], own[:, 0]], axis=1), ("object's right", "object's front")


def boundaries(found: Mapping[str, Boundaries], *, height: bool) -> Any | None:
    """Draw the models' boundaries over the subject's places, a line a model, a column a predicate; the rule's dashed.

    Args:
        height: the slab seen from its side, else the block on the floor seen from above.
    """
    chosen = {name: found[name] for name in BOUNDED if name in found and (found[name].heights == height).any()}
    if not chosen:
        return None
    first = next(iter(chosen.values()))
    names = [str(name) for name in first.names[first.heights == height]]
    figure = blank_figure(1.7 * len(names) + 1.6, 1.75 * (len(chosen) + 1) + 0.7)
    grid = figure.subplots(len(chosen) + 1, len(names), squeeze=False, sharex="col", sharey=True)
    for column, name in enumerate(names):
        _panel(grid[0, column], first, name, height, rule=True)
        grid[0, column].set_title(name.replace(" (wrt", "\n(wrt"), fontsize=8)
        for axes, file in zip(grid[1:, column], chosen.values(), strict=True):
            image = _panel(axes, file, name, height)
    for axes, title in zip(grid[:, 0], ["the rule", *(VARIANTS[name].title for name in chosen)], strict=True):
        axes.set_ylabel(title.replace(", ", ",\n"), fontsize=7)
    bar = figure.colorbar(image, ax=grid, shrink=0.6, extend="both")
    bar.set_label("logit; of the rule, margin times 4", fontsize=8)
    seen = (
        "from the side: a block at x, z around a slab at z = 0.9 m"
        if height
        else "from above: a block at x, y around one whose front is at 35 degrees; the observer is at the lower left"
    )
    figure.suptitle(f"Seed 0, {seen}. Dashed: boundary of the rule; line: of the model", fontsize=9)
    return figure


def _panel(axes: Any, file: Boundaries, name: str, height: bool, *, rule: bool = False) -> Any:
    place = int(np.flatnonzero((file.names == name) & (file.heights == height))[0])
    first, second, margin = file.first[place], file.second[place], file.margins[place]
    shown = _MOST_LOGIT * margin if rule else file.logits[place]
    step = (first[1] - first[0]) / 2
    extent = (first[0] - step, first[-1] + step, second[0] - step, second[-1] + step)
    image = axes.imshow(
        shown, origin="lower", extent=extent, cmap="RdBu", vmin=-_MOST_LOGIT, vmax=_MOST_LOGIT, aspect="equal"
    )
    for values_at, style in ((margin, "dashed"), (shown, "solid")):
        if values_at.min() < 0 < values_at.max():
            axes.contour(first, second, values_at, levels=[0], colors="black", linewidths=0.8, linestyles=style)
    axes.tick_params(labelsize=6)
    return image


def disagreement(results: Measured) -> Any | None:
    """Draw the share of contradictions of the rule by its margin, and each model's accuracy on each predicate."""
    names = results.variants
    if not names:
        return None
    found = margin_bins(results)
    figure = blank_figure(13, 0.32 * len(names) + 5.2)
    upper, lower = figure.subplots(2, 1, height_ratios=(3, 2.2))
    if found is None:
        upper.set_axis_off()
    else:
        edges, bins = found
        margin = np.abs(results.tests.margin)
        for k, name in enumerate(names):
            wrong = ~results.right(name)
            middle = [margin[bins == bin].mean() for bin in range(len(edges) - 1) if (bins == bin).any()]
            share = [wrong[:, bins == bin].mean() for bin in range(len(edges) - 1) if (bins == bin).any()]
            style = ("-", "--", ":")[k // 10 % 3]
            upper.plot(middle, share, style, marker="o", markersize=4, color=f"C{k % 10}", label=VARIANTS[name].title)
        upper.set(xlabel="|margin| of the rule", ylabel="share that contradicts the rule", ylim=(0, None))
        upper.grid(alpha=0.25)
        upper.legend(fontsize=7, ncols=2)
    table = np.stack([results.by_predicate(name) for name in names])
    shown = np.flatnonzero(~np.isnan(table).all(axis=0))
    image = lower.imshow(table[:, shown], vmin=0.5, vmax=1.0, cmap="viridis", aspect="auto")
    labels = [results.predicates[k] for k in shown]
    lower.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize=7)
    lower.set_yticks(range(len(names)), [VARIANTS[name].title for name in names], fontsize=7)
    figure.colorbar(image, ax=lower, label="accuracy", extend="min")
    return figure
