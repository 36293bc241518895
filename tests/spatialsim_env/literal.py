"""One sample at a time, from the definitions alone: the slow twin of the generator and of the truth.

Nothing here is shared with the package but the names of the ten columns; numbers are float64, objects are visited in
loops, fits are written with explicit residual vectors. The tests equate the package with it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE

X, Y = POSITION.start, POSITION.start + 1
FOLDS = (4, None, 3)  # turns that map square, circle, triangle onto themselves; None: every turn does
SIGMA_POSITION, SIGMA_ORIENTATION, SIGMA_SIZE, SIGMA_COLOR = 0.2, 2 * math.pi / 100, 0.02, 0.01
TOLERANCES = (1.0, 5 * SIGMA_ORIENTATION, 0.1)

Scene = np.ndarray  # (n, 10) float64, present objects only


# --- one sample -----------------------------------------------------------------------------------------------------


def drop_padding(scene: np.ndarray) -> Scene:
    return np.array([row for row in scene if row[SHAPE].sum() > 0.5], np.float64)


def reference_scene(numbers: np.ndarray, n_objects: int) -> Scene:
    """A reference scene from uniform numbers: shape, size, three colours, orientation, x, y per object."""
    rows = []
    for u in np.asarray(numbers, np.float64)[:n_objects]:
        row = np.zeros(10)
        row[SHAPE.start + math.floor(3 * u[0])] = 1
        row[SIZE] = 0.5 + 1.5 * u[1]
        row[COLOR] = u[2:5]
        row[ORIENTATION] = 2 * math.pi * u[5]
        for column, number in ((X, u[6]), (Y, u[7])):
            row[column] = row[SIZE] + (20 - 2 * row[SIZE]) * number
        rows.append(row)
    return np.array(rows)


def perturbed(scene: Scene, noise: np.ndarray) -> Scene:
    """Gaussian noise on every feature but the shape: size, three colours, x, y, orientation per object."""
    out = scene.copy()
    for row, z in zip(out, np.asarray(noise, np.float64), strict=False):
        row[SIZE] += 0.02 * z[0]
        for channel in range(3):
            row[COLOR.start + channel] += 0.01 * z[1 + channel]
        row[X] += 0.2 * z[4]
        row[Y] += 0.2 * z[5]
        row[ORIENTATION] += 2 * math.pi / 100 * z[6]
    return out


def similarity_of(scene: Scene, numbers: np.ndarray, max_rotation: float, fixed: Any = None) -> Scene:
    """The benchmark's random similarity: scale, rotation, translation x, y; a part that is given is not drawn."""
    u = np.asarray(numbers, np.float64)
    scale, angle, shift = 0.5 + 1.5 * u[0], max_rotation * u[1], (40 * u[2] - 20, 40 * u[3] - 20)
    if fixed is not None:
        scale = scale if fixed.scale is None else fixed.scale
        angle = angle if fixed.rotation is None else fixed.rotation
        shift = shift if fixed.translation is None else fixed.translation
    return moved(scene, scale, angle, shift)


def moved(scene: Scene, scale: float, angle: float, translation: tuple[float, float]) -> Scene:
    """A similarity: scaled and turned about the barycentre, then translated; sizes and orientations follow."""
    center = np.mean([row[POSITION] for row in scene], axis=0)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    out = scene.copy()
    for row in out:
        row[POSITION] = center + scale * turn @ (row[POSITION] - center) + np.array(translation)
        row[SIZE] *= scale
        row[ORIENTATION] += angle
    return out


def wrong(negative: Any, scene: Scene, numbers: np.ndarray, n_max: int) -> Scene:
    """What a negative does, by its name; the parameters of its range come with it."""
    u = np.asarray(numbers, np.float64)
    out = scene.copy()
    center = np.mean([row[POSITION] for row in scene], axis=0)
    if negative.name in ("redrawn", "poses"):
        for k, row in enumerate(out):
            for axis, column in enumerate((X, Y)):
                row[column] = row[SIZE] + (20 - 2 * row[SIZE]) * u[2 * k + axis]
            if negative.name == "poses":
                row[ORIENTATION] = 2 * math.pi * u[2 * n_max + k]
    elif negative.name == "displaced":
        row = out[math.floor(u[0] * len(out))]
        distance, direction = negative.low + (negative.high - negative.low) * u[1], 2 * math.pi * u[2]
        row[X] += distance * math.cos(direction)
        row[Y] += distance * math.sin(direction)
    elif negative.name == "displaced_few":
        keys, distances, directions = (u[1 + part * n_max :] for part in range(3))
        chosen = sorted(range(len(out)), key=lambda k: keys[k])[: 1 + math.floor(u[0] * negative.most)]
        for k in chosen:
            distance = negative.low + (negative.high - negative.low) * distances[k]
            out[k][X] += distance * math.cos(2 * math.pi * directions[k])
            out[k][Y] += distance * math.sin(2 * math.pi * directions[k])
    elif negative.name == "mirrored":
        for row in out:
            row[X] = center[0] - (row[X] - center[0])
            if negative.reflect_orientation:
                row[ORIENTATION] = (math.pi - row[ORIENTATION]) % (2 * math.pi)
    elif negative.name in ("twisted", "mis_scaled"):
        sign = -1 if u[1] < 0.5 else 1
        if negative.name == "twisted":
            factor, angle = 1.0, sign * (negative.low + (negative.high - negative.low) * u[0])
        else:
            factor, angle = (negative.low * (negative.high / negative.low) ** u[0]) ** sign, 0.0
        for row, place in zip(out, moved(scene, factor, angle, (0, 0)), strict=True):
            row[POSITION] = place[POSITION]
    elif negative.name == "swapped":
        pairs = [(i, j) for i in range(len(out)) for j in range(i + 1, len(out)) if not same_look(scene[i], scene[j])]
        if pairs:
            i, j = pairs[math.floor(u[0] * len(pairs))]
            out[i][POSITION], out[j][POSITION] = scene[j][POSITION], scene[i][POSITION]
    elif negative.name == "spread_matched":
        for k, row in enumerate(out):
            for axis, column in enumerate((X, Y)):
                row[column] = row[SIZE] + (20 - 2 * row[SIZE]) * u[2 * k + axis]
        if len(out) > 1:
            ratio = rms_spread(scene) / rms_spread(out)
            out[:, POSITION] = moved(out, ratio, 0.0, (0, 0))[:, POSITION]
    elif negative.name == "radius_matched":
        out[:, POSITION] = center + closed_chain(scene[:, POSITION] - center, u)
    elif negative.name == "mixture":
        part = negative.parts[math.floor(u[0] * len(negative.parts))]
        out = wrong(part, scene, u[1:], n_max)
    else:
        raise AssertionError(f"no literal version of the negative {negative.name!r}")
    return out


def same_look(one: np.ndarray, other: np.ndarray) -> bool:
    """One shape, and colours that differ by at most 0.05 a channel."""
    return bool((one[SHAPE] == other[SHAPE]).all() and np.abs(one[COLOR] - other[COLOR]).max() <= 0.05)


def rms_spread(scene: Scene) -> float:
    """Root mean square distance to the barycentre."""
    center = np.mean([row[POSITION] for row in scene], axis=0)
    return math.sqrt(np.mean([np.sum((row[POSITION] - center) ** 2) for row in scene]))


def closed_chain(offsets: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Vectors of the same lengths with the sum 0: from the shortest on, each at an angle that the rest can close.

    The law of cosines gives the angle to the sum so far at which the new sum has the least and the greatest length
    that the rest can bring back to 0.
    """
    n = len(offsets)
    if n == 1:
        return np.zeros((1, 2))
    length = np.linalg.norm(offsets, axis=1)
    order = sorted(range(n), key=lambda k: round(length[k], 3))
    out, total = np.zeros((n, 2)), np.zeros(2)
    for step, k in enumerate(order):
        rest = [length[j] for j in order[step + 1 :]]
        longest, shortest = sum(rest), max(0.0, 2 * max(rest, default=0) - sum(rest))
        number = u[min(step, len(u) - 1)]
        if n == 3 and step == 1:  # the other side than in the scene
            a, b = (offsets[order[i]] for i in (1, 2))
            number = 0.5 if a[0] * b[1] - a[1] * b[0] > 0 else 0.0
        cosines = [(x**2 - total @ total - length[k] ** 2) / (2 * math.hypot(*total) * length[k]) if step else c
                   for x, c in ((longest, 1), (shortest, -1))]  # fmt: skip
        narrow, wide = (math.acos(min(max(c, -1), 1)) for c in cosines)
        angle = narrow + (2 * number) % 1 * (wide - narrow)
        angle = math.atan2(total[1], total[0]) + (angle if number < 0.5 else -angle)
        out[k] = length[k] * math.cos(angle), length[k] * math.sin(angle)
        total = total + out[k]
    return out


def target(
    reference: np.ndarray,
    draws: Any,
    row: int,
    negative: Any,
    max_rotation: float,
    abstract: bool = False,
    distractors: int = 0,
    fixed: Any = None,
) -> np.ndarray:
    """The target scene of one sample, padded to the rows of its task, from row ``row`` of ``tasks.Draws``."""
    scene = perturbed(drop_padding(reference), draws.noise[row])
    if draws.label[row] == 0:
        scene = wrong(negative, scene, draws.negative[row], len(reference))
    if abstract:
        numbers = [[*features, 0.0, 0.0] for features in draws.features[row]]
        others = reference_scene(np.array(numbers), len(scene))
        others[:, POSITION] = scene[:, POSITION]
        scene = others
    keys = list(draws.order[row][: len(scene)])
    if distractors:
        extra = math.floor((distractors + 1) * float(draws.extra[row][0]))
        if extra:
            objects = np.reshape(draws.extra[row][1:], (distractors, 8))
            scene = np.concatenate([scene, reference_scene(objects, extra)])
            keys += list(draws.order[row][len(reference) : len(reference) + extra])
    scene = scene[sorted(range(len(scene)), key=lambda k: keys[k])]
    scene = similarity_of(scene, draws.similarity[row], max_rotation, fixed)
    return np.concatenate([scene, np.zeros((len(reference) + distractors - len(scene), 10))])


# --- the truth ------------------------------------------------------------------------------------------------------


class DifferentObjects(Exception):
    """The two scenes do not hold the same objects."""


def cost(one: np.ndarray, other: np.ndarray) -> float:
    """Of taking two objects for the same: 1e6 [shapes differ] + sum over channels (difference / 0.01)^2."""
    colors = sum((a - b) ** 2 for a, b in zip(one[COLOR], other[COLOR], strict=True)) / 0.01**2
    return 1e6 * any(one[SHAPE] != other[SHAPE]) + colors


def assignment(achieved: Scene, desired: Scene) -> tuple[int, ...]:
    """The partner in ``desired`` of each object of ``achieved``, by least total cost."""
    if len(achieved) != len(desired):
        raise DifferentObjects
    table = np.array([[cost(a, g) for g in desired] for a in achieved])
    partner = linear_sum_assignment(table)[1]
    if any((achieved[i][SHAPE] != desired[j][SHAPE]).any() for i, j in enumerate(partner)):
        raise DifferentObjects
    return tuple(int(j) for j in partner)


def alike(desired: Scene) -> list[list[int]]:
    """Classes of objects of one shape that chains of colour differences of at most 0.05 a channel connect."""
    classes: list[list[int]] = []
    for j, row in enumerate(desired):
        near = [
            c
            for c in classes
            if any(
                (desired[k][SHAPE] == row[SHAPE]).all() and np.abs(desired[k][COLOR] - row[COLOR]).max() <= 0.05
                for k in c
            )
        ]
        classes = [c for c in classes if c not in near] + [[j, *itertools.chain(*near)]]
    return classes


def matchings(achieved: Scene, desired: Scene) -> Iterator[tuple[int, ...]]:
    """Every matching that differs from the best one by interchangeable objects only."""
    base = assignment(achieved, desired)
    groups = [[i for i, j in enumerate(base) if j in members] for members in alike(desired)]
    for choice in itertools.product(*(itertools.permutations(group) for group in groups)):
        out = list(base)
        for group, order in zip(groups, choice, strict=True):
            for i, k in zip(group, order, strict=True):
                out[i] = base[k]
        yield tuple(out)


def wrapped(angle: float, period: float | None) -> float:
    """Into [-period / 2, period / 2); None: all angles look the same."""
    return 0.0 if period is None else (angle + period / 2) % period - period / 2


def periods(scene: Scene, orientation: str) -> list[float | None]:
    if orientation == "number":
        return [2 * math.pi] * len(scene)
    folds = [FOLDS[int(np.argmax(row[SHAPE]))] for row in scene]
    return [None if fold is None else 2 * math.pi / fold for fold in folds]


def umeyama(to: np.ndarray, points: np.ndarray) -> tuple[float, float]:
    """Scale and angle of the least-squares proper similarity from ``points`` to ``to``, (n, 2) each (Umeyama 1991)."""
    a, g = to - to.mean(axis=0), points - points.mean(axis=0)
    u, d, vt = np.linalg.svd(a.T @ g / len(a))
    s = np.diag([1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    rotation = u @ s @ vt
    scale = np.trace(np.diag(d) @ s) / (g**2).sum() * len(g)
    return float(scale), math.atan2(rotation[1, 0], rotation[0, 0])


def likeliest(achieved: Scene, desired: Scene, orientation: str = "number", starts: int = 0) -> tuple[float, float]:
    """Scale and angle of the maximum-likelihood similarity under the benchmark's noise: Gauss-Newton on (log s, theta).

    Angles known up to a symmetry leave several maxima. The starts are then the angle of the positions and, for each
    shape, its mean turn with every symmetry of it; or ``starts`` angles around the circle. The likeliest end counts.
    """
    period = periods(desired, orientation)
    ratios = [math.log(a[SIZE] / g[SIZE]) for a, g in zip(achieved, desired, strict=True)]
    weights = [(a[SIZE] / SIGMA_SIZE) ** 2 for a in achieved]
    log_scale = sum(w * r for w, r in zip(weights, ratios, strict=True)) / sum(weights)
    turns = [a[ORIENTATION] - g[ORIENTATION] for a, g in zip(achieved, desired, strict=True)]
    if starts:
        angles = [2 * math.pi * k / starts for k in range(starts)]
    elif orientation == "number":
        angles = [math.atan2(sum(math.sin(t) for t in turns), sum(math.cos(t) for t in turns))]
    else:
        angles = [umeyama(achieved[:, POSITION], desired[:, POSITION])[1] if spread(desired) > 0 else 0.0]
        for fold in (4, 3):
            own = [fold * t for t, p in zip(turns, period, strict=True) if p == 2 * math.pi / fold]
            if own:
                mean = math.atan2(sum(map(math.sin, own)), sum(map(math.cos, own))) / fold
                angles += [mean + 2 * math.pi * k / fold for k in range(fold)]
    ends = [gauss_newton(achieved, desired, period, np.array([log_scale, angle])) for angle in angles]
    best = min(ends, key=lambda end: float((stacked(achieved, desired, period, end)[0] ** 2).sum()))
    return math.exp(best[0]), float(best[1])


def gauss_newton(achieved: Scene, desired: Scene, period: list[float | None], start: np.ndarray) -> np.ndarray:
    """Five steps; a step in log s is at most 1."""
    parameters = start.astype(np.float64)
    for _ in range(5):
        residuals, jacobian = stacked(achieved, desired, period, parameters)
        step = np.linalg.lstsq(jacobian, residuals, rcond=None)[0]
        parameters += [min(max(step[0], -1.0), 1.0), step[1]]
    return parameters


def stacked(
    achieved: Scene, desired: Scene, period: list[float | None], parameters: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the similarity leaves unexplained, in noise deviations, and the model's derivatives in (log s, theta)."""
    scale, theta = math.exp(parameters[0]), parameters[1]
    turn = scale * np.array([[math.cos(theta), -math.sin(theta)], [math.sin(theta), math.cos(theta)]])
    quarter = scale * np.array([[-math.sin(theta), -math.cos(theta)], [math.cos(theta), -math.sin(theta)]])
    center_a, center_g = achieved[:, POSITION].mean(axis=0), desired[:, POSITION].mean(axis=0)
    residuals, rows = [], []
    for a, g, p in zip(achieved, desired, period, strict=True):
        point_a, point_g = a[POSITION] - center_a, g[POSITION] - center_g
        residuals += list((point_a - turn @ point_g) / SIGMA_POSITION)
        rows += [list(column) for column in zip(turn @ point_g, quarter @ point_g, strict=True)]
        rows[-2:] = [[value / SIGMA_POSITION for value in row] for row in rows[-2:]]
        if p is not None:
            residuals.append(wrapped(a[ORIENTATION] - g[ORIENTATION] - theta, p) / SIGMA_ORIENTATION)
            rows.append([0.0, 1 / SIGMA_ORIENTATION])
        weight = a[SIZE] / SIGMA_SIZE
        residuals.append(weight * (math.log(a[SIZE] / g[SIZE]) - parameters[0]))
        rows.append([weight, 0.0])
    return np.array(residuals), np.array(rows)


def spread(scene: Scene) -> float:
    """Root mean square distance to the barycentre, units."""
    center = scene[:, POSITION].mean(axis=0)
    return math.sqrt(np.mean([((row[POSITION] - center) ** 2).sum() for row in scene]))


def residuals_of(
    achieved: Scene, desired: Scene, scale: float, theta: float, orientation: str
) -> list[tuple[float, float, float]]:
    """Position, orientation and size left over per object, in the frame of ``achieved``."""
    turn = scale * np.array([[math.cos(theta), -math.sin(theta)], [math.sin(theta), math.cos(theta)]])
    translation = achieved[:, POSITION].mean(axis=0) - turn @ desired[:, POSITION].mean(axis=0)
    out = []
    for a, g, p in zip(achieved, desired, periods(desired, orientation), strict=True):
        gap = a[POSITION] - turn @ g[POSITION] - translation
        angle = wrapped(a[ORIENTATION] - g[ORIENTATION] - theta, p)
        out.append((math.hypot(*gap), abs(angle), abs(a[SIZE] - scale * g[SIZE])))
    return out


def matched_distance(
    achieved: Scene,
    desired: Scene,
    criterion: str,
    tolerances: tuple[float, float, float] = TOLERANCES,
    orientation: str = "number",
    starts: int = 0,
) -> float:
    """Largest residual / tolerance of two scenes whose objects correspond row by row."""
    if criterion == "similarity":
        scale, theta = likeliest(achieved, desired, orientation, starts)
        left = residuals_of(achieved, desired, scale, theta, orientation)
        return max(value / tolerance for row in left for value, tolerance in zip(row, tolerances, strict=True))
    if len(achieved) == 1:
        return 0.0
    if min(spread(achieved), spread(desired)) <= 1e-6:
        return math.inf
    scale, theta = umeyama(achieved[:, POSITION], desired[:, POSITION])
    if scale <= 0:
        return math.inf
    ratios = [math.log(a[SIZE] / g[SIZE]) for a, g in zip(achieved, desired, strict=True)]
    factor = max(1.0, math.exp(sum(ratios) / len(ratios)) / scale)
    return max(factor * row[0] for row in residuals_of(achieved, desired, scale, theta, orientation)) / tolerances[0]


def distance(
    achieved: np.ndarray,
    desired: np.ndarray,
    criterion: str = "similarity",
    tolerances: tuple[float, float, float] = TOLERANCES,
    orientation: str = "number",
    starts: int = 0,
) -> float:
    """The truth about one pair of scenes; padding is ignored.

    Raises:
        DifferentObjects: they do not hold the same objects.
    """
    a, g = drop_padding(achieved), drop_padding(desired)
    return min(
        matched_distance(a, g[list(matching)], criterion, tolerances, orientation, starts)
        for matching in matchings(a, g)
    )
