"""The matching network as a loop over rows; what is defined in matching.py, for use and not for training.

Attention that float64 cannot tell from zero is left out: colours are so much more precise than their range that each
object has one partner or two, whatever the number of objects.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray
from torch import nn

from reward_models.models.kernels.compiled import BIAS, FLAT, Scorer, flat, holds, linear
from reward_models.models.kernels.lanes import LANES, add, add_matrix, add_product, load, relu, store, zeros
from reward_models.models.matching import COARSE, LEAST_STRETCH, OTHER_SHAPE, Matching, MatchingConfig
from spatialsim_env.arrangements.scene import COLOR, NOISE, ORIENTATION, POSITION, SHAPE, SIZE

_NOTHING = 200.0  # nats below the greatest: a share of 1e-87
_S, _S_END, _C, _C_END = SHAPE.start, SHAPE.stop, COLOR.start, COLOR.stop
_X, _Y = POSITION.start, POSITION.start + 1
_COLOR, _POSITION, _ORIENTATION, _SIZE = NOISE.color, NOISE.position, NOISE.orientation, NOISE.size
_compiled = njit(cache=True, error_model="numpy")


class MatchingLayers(NamedTuple):
    """The judge's layers, the first one of ``all`` by its inputs."""

    each: Any
    each_2: Any
    mean: Any
    greatest: Any
    disagreement: Any
    last: Any


AT = MatchingLayers(*range(0, len(MatchingLayers._fields) * FLAT, FLAT))  # where they begin in one flat array


class SceneObjects(NamedTuple):
    """The objects of a scene one after the other; the plane as complex numbers, directions of length 1."""

    rows: Any
    points: Any
    directions: Any
    sizes: Any


class Guess(NamedTuple):
    """Hypothesis from one pair of objects: the target's turn, about the mean of the reference."""

    mean: complex
    turn: complex


class CompiledFit(NamedTuple):
    """Similarity still to apply to the target: the factor, its length and direction; and the reference's mean."""

    factor: complex
    length: float
    turn: complex
    mean: complex


def scorer(model: Matching) -> Scorer:
    """The score with the present weights, of a judge of at most 16 hidden units and features."""
    each, each_2 = cast(nn.Linear, model.each[0]), cast(nn.Linear, model.each[2])
    first, last = cast(nn.Linear, model.all[0]), cast(nn.Linear, model.all[2])
    features = each_2.out_features
    config = cast(MatchingConfig, model.config)
    mean, greatest, disagreement = first.weight.abs().split([features, features, 2 + config.counts], dim=1)
    layers = flat(
        MatchingLayers(
            each=(each.weight.abs(), each.bias),
            each_2=(each_2.weight.abs(), each_2.bias),
            mean=(mean, first.bias),
            greatest=(greatest, None),
            disagreement=(disagreement, None),
            last=(-last.weight.abs().sum(0, keepdim=True), -last.bias.sum(0, keepdim=True)),
        )
    )
    sharpness = model.log_sharpness.exp().item()
    search = config.hypotheses, config.rematches, float(config.persistence)

    def score(target: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
        return _scores(target, reference, sharpness, search, layers, config.counts)

    return score


@_compiled
def _scores(targets, references, sharpness, search, layers, counts):  # type: ignore[no-untyped-def]
    hypotheses, rematches, persistence = search
    size, m, n = len(targets), targets.shape[1], references.shape[1]
    scores = np.empty(size)
    likelihood, attention = np.empty((n, m)), np.empty((n, m))
    room, other_room, moved = _room(m, targets.shape[2]), _room(n, references.shape[2]), _room(m, 0)
    residuals, disagreement = np.empty(3 * n), np.empty(2)
    for b in range(size):
        target, reference = _take_apart(targets[b], room), _take_apart(references[b], other_room)
        _likelihoods(target.rows, reference.rows, sharpness, likelihood)
        certain = _by_appearance(target, reference, likelihood, attention)
        if hypotheses > 0 and not certain:
            _by_hypotheses(target, reference, likelihood, attention, hypotheses, moved)
        fit = _fit(target, reference, attention, moved, disagreement)
        for _ in range(0 if certain else rematches):
            _match_again(target, reference, fit, persistence, likelihood, attention, moved)
            fit = _fit(target, reference, attention, moved, disagreement)
        left = residuals[: 3 * len(reference.points)]
        _expect(target, reference, fit, attention, moved, left)
        scores[b] = _judged(left, disagreement, layers, counts)
    return scores


@_compiled
def _room(n, features):  # type: ignore[no-untyped-def]
    """Room for n objects."""
    return SceneObjects(np.empty((n, features)), np.empty(n, np.complex128), np.empty(n, np.complex128), np.empty(n))


@_compiled
def _take_apart(scene, room):  # type: ignore[no-untyped-def]
    """The objects of a scene."""
    rows, points, directions, sizes = room
    count = 0
    for i in range(len(scene)):
        if holds(scene, i):
            rows[count] = scene[i]
            points[count] = complex(scene[i, _X], scene[i, _Y])
            directions[count] = complex(np.cos(scene[i, ORIENTATION]), np.sin(scene[i, ORIENTATION]))
            sizes[count] = scene[i, SIZE]
            count += 1
    return SceneObjects(rows[:count], points[:count], directions[:count], sizes[:count])


@_compiled
def _likelihoods(target, reference, sharpness, likelihood):  # type: ignore[no-untyped-def]
    """Of taking two objects for the same one by appearance."""
    for j in range(len(reference)):
        for i in range(len(target)):
            color, same_shape = 0.0, 0.0
            for k in range(_C, _C_END):
                color += ((reference[j, k] - target[i, k]) / _COLOR) ** 2
            for k in range(_S, _S_END):
                same_shape += reference[j, k] * target[i, k]
            likelihood[j, i] = -sharpness * (color / 2 + OTHER_SHAPE * (1 - same_shape))


@_compiled
def _softmax(values):  # type: ignore[no-untyped-def]
    greatest = values.max()
    total = 0.0
    for i in range(len(values)):
        below = values[i] - greatest
        values[i] = 0.0 if below < -_NOTHING else np.exp(below)
        total += values[i]
    values /= total


@_compiled
def _by_appearance(target, reference, likelihood, attention):  # type: ignore[no-untyped-def]
    """Attend by appearance; returns whether each object has one partner alone, which no residual changes."""
    m = len(target.points)
    certain = True
    for j in range(len(reference.points)):
        attention[j, :m] = likelihood[j, :m]
        _softmax(attention[j, :m])
        partners = 0
        for i in range(m):
            partners += attention[j, i] > 0
        certain = certain and partners <= 1
    return certain


@_compiled
def _match_again(target, reference, fit, persistence, likelihood, attention, moved):  # type: ignore[no-untyped-def]
    """Attend by appearance and by what the fit leaves."""
    m = len(target.points)
    for j in range(len(reference.points)):
        values, out = likelihood[j, :m], attention[j, :m]
        best = 0
        for i in range(1, m):
            best = i if values[i] > values[best] else best
        known = values[best] - persistence * _cost(best, j, moved, reference, fit)
        for i in range(m):
            out[i] = values[i]
            if not values[i] < known - _NOTHING:  # else nothing, whatever its residuals
                out[i] = values[i] - persistence * _cost(i, j, moved, reference, fit)
        _softmax(out)


@_compiled
def _cost(i, j, moved, reference, fit):  # type: ignore[no-untyped-def]
    position, orientation, size = _residuals(i, j, moved, reference, fit)
    return np.log((1 + position) * (1 + orientation) * (1 + size))


@_compiled
def _by_hypotheses(target, reference, likelihood, attention, most, moved):  # type: ignore[no-untyped-def]
    """Sharpen an attention by the likeliest of the matchings that begin with one pair of objects."""
    points, directions = reference.points, reference.directions
    m, n = len(target.points), len(points)
    mean, anchor, farthest, bound = 0j, 0, -1.0, 0.0
    for j in range(n):
        mean += points[j] / n
        bound += likelihood[j, :m].max() + np.log(m)
    for j in range(n):
        if _squared(points[j] - mean) > farthest:
            anchor, farthest = j, _squared(points[j] - mean)
    _scale(target, reference, attention, moved)
    turn, likeliest, best = directions[anchor], 0, -np.inf
    for partner in np.argsort(-likelihood[anchor, :m])[:most]:
        own = likelihood[anchor, partner]
        if own + bound < best:  # whatever its residuals
            continue
        guess, total = Guess(mean, turn * target.directions[partner].conjugate()), own
        for j in range(n):
            total += _match_by(guess, j, target, reference, moved, likelihood, attention)
        if total > best:
            likeliest, best = partner, total
    guess = Guess(mean, turn * target.directions[likeliest].conjugate())
    for j in range(n):
        _match_by(guess, j, target, reference, moved, likelihood, attention)
        _softmax(attention[j, :m])


@_compiled
def _scale(target, reference, attention, moved):  # type: ignore[no-untyped-def]
    """Scale the target's points as its sizes say, about their mean, into ``moved``."""
    points, sizes = target.points, target.sizes
    m, n = len(points), len(reference.points)
    mean, by_sizes, squares = 0j, 0.0, 0.0
    for j in range(n):
        for i in range(m):
            weight = attention[j, i]
            if weight > 0:
                mean += weight * points[i] / n
                by_sizes += weight * sizes[i] * reference.sizes[j]
                squares += weight * sizes[i] ** 2
    for i in range(m):
        moved.points[i] = by_sizes / squares * (points[i] - mean)


@_compiled
def _match_by(guess, j, target, reference, moved, likelihood, out):  # type: ignore[no-untyped-def]
    """Match one object by a guess, into ``out``; returns the log of the sum over its partners."""
    point, direction, m = reference.points[j] - guess.mean, reference.directions[j], len(target.points)
    greatest = -np.inf
    for i in range(m):
        out[j, i] = likelihood[j, i]
        if not likelihood[j, i] < greatest - _NOTHING:  # else nothing, whatever its residuals
            far = _squared(point - guess.turn * moved.points[i]) / _POSITION**2
            turned = _squared(direction - guess.turn * target.directions[i]) / _ORIENTATION**2
            out[j, i] -= 2 * np.log((1 + far / COARSE) * (1 + turned / COARSE))
            greatest = max(greatest, out[j, i])
    total = 0.0
    for i in range(m):
        if not out[j, i] < greatest - _NOTHING:
            total += np.exp(out[j, i] - greatest)
    return greatest + np.log(total)


@_compiled
def _fit(target, reference, attention, moved, disagreement):  # type: ignore[no-untyped-def]
    """Bring the target into the reference's frame, in ``moved``; returns what is left to apply to it."""
    _, t_points, t_directions, t_sizes = target
    _, points, directions, sizes = reference
    _, moved_points, moved_directions, moved_sizes = moved
    m, n = len(t_points), len(points)
    count = float(n)
    mean, t_mean = 0j, 0j
    by_sizes, squares, turn = 0.0, 0.0, 0j
    for j in range(n):
        mean += points[j] / count
        for i in range(m):
            weight = attention[j, i]
            if weight > 0:
                t_mean += weight * t_points[i] / count
                by_sizes += weight * t_sizes[i] * sizes[j]
                squares += weight * t_sizes[i] ** 2
                turn += weight * directions[j] * t_directions[i].conjugate()
    scale = by_sizes / squares
    turn /= np.sqrt(_squared(turn) + 1e-12)
    for i in range(m):
        moved_points[i] = scale * turn * (t_points[i] - t_mean)
        moved_directions[i] = turn * t_directions[i]
        moved_sizes[i] = scale * t_sizes[i]
    cross, spread, by_size = 0j, 0.0, 0.0
    for j in range(n):
        for i in range(m):
            weight = attention[j, i]
            if weight > 0:
                cross += weight * (points[j] - mean) * moved_points[i].conjugate() / _POSITION**2
                spread += weight * _squared(moved_points[i]) / _POSITION**2
                by_size += weight * moved_sizes[i] ** 2 / _SIZE**2
    by_orientation = count / _ORIENTATION**2
    stretch = max((cross.real + by_size) / (spread + by_size), LEAST_STRETCH)
    disagreement[0] = ((cross.real - spread) / (spread + count)) ** 2 * by_size / count
    disagreement[1] = (cross.imag / (spread + count)) ** 2 / _ORIENTATION**2
    factor = complex(stretch, cross.imag / (spread + by_orientation))
    length = np.sqrt(_squared(factor))
    return CompiledFit(factor, length, factor / length, mean)


@_compiled
def _expect(target, reference, fit, attention, moved, out):  # type: ignore[no-untyped-def]
    """Fill in the residuals that the attention expects, three an object."""
    out[:] = 0
    for j in range(len(reference.points)):
        for i in range(len(target.points)):
            if attention[j, i] > 0:
                for k, residual in enumerate(_residuals(i, j, moved, reference, fit)):
                    out[3 * j + k] += attention[j, i] * residual


@_compiled
def _residuals(i, j, moved, reference, fit):  # type: ignore[no-untyped-def]
    """Of one pair of objects: position, orientation, size; squared, in noise variances."""
    return (
        _squared(reference.points[j] - fit.mean - fit.factor * moved.points[i]) / _POSITION**2,
        _squared(reference.directions[j] - fit.turn * moved.directions[i]) / _ORIENTATION**2,
        (reference.sizes[j] - fit.length * moved.sizes[i]) ** 2 / _SIZE**2,
    )


@_compiled
def _squared(z):  # type: ignore[no-untyped-def]
    return z.real**2 + z.imag**2


@_compiled
def _judged(residuals, disagreement, layers, counts):  # type: ignore[no-untyped-def]
    """The score from the residuals of all objects, of whatever kind, and the disagreement."""
    row, greatest, value = np.zeros(LANES), np.full(LANES, -np.inf), np.empty(1)
    total = zeros(layers)
    for residual in residuals:
        value[0] = np.log(1 + residual)
        before = add_product(load(layers, AT.each + BIAS), load(layers, AT.each), value, 0)
        store(row, 0, relu(before))
        feature = linear(layers, AT.each_2, row, 0)
        total = add(total, feature)
        store(row, 0, feature)
        for k in range(LANES):
            greatest[k] = max(greatest[k], row[k])
    store(row, 0, total)
    row /= len(residuals)
    before = add_matrix(linear(layers, AT.mean, row, 0), layers, AT.greatest, greatest, 0)
    for k in range(2):
        value[0] = np.log(1 + disagreement[k])
        before = add_product(before, load(layers, AT.disagreement + k * LANES), value, 0)
    if counts:
        value[0] = -np.log(len(residuals) / 3)
        before = add_product(before, load(layers, AT.disagreement + 2 * LANES), value, 0)
    store(row, 0, relu(before))
    store(row, 0, linear(layers, AT.last, row, 0))
    return row[0]
