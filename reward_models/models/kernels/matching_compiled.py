"""The matching network as a loop over rows; what is defined in matching.py, for use and not for training.

Attention that float64 cannot tell from zero is left out: colours are so much more precise than their range that each
object has one partner or two, whatever the number of objects.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numba import njit
from numpy.typing import NDArray
from torch import nn

from reward_models.models.kernels.compiled import BIAS, FLAT, Scorer, flat, holds
from reward_models.models.kernels.lanes import LANES, add, add_matrix, add_product, load, store, where_positive, zeros
from reward_models.models.matching import COARSE, LEAST_STRETCH, OTHER_SHAPE, Matching, MatchingConfig
from spatialsim_env.arrangements.scene import COLOR, NOISE, ORIENTATION, POSITION, SHAPE, SIZE

_NOTHING = 200.0  # nats below the greatest: a share of 1e-87
_EACH, _EACH_2, _MEAN, _GREATEST, _DISAGREEMENT, _LAST = (place * FLAT for place in range(6))  # where layers begin
_S, _S_END, _C, _C_END = SHAPE.start, SHAPE.stop, COLOR.start, COLOR.stop
_X, _Y = POSITION.start, POSITION.start + 1
_COLOR, _POSITION, _ORIENTATION, _SIZE = NOISE.color, NOISE.position, NOISE.orientation, NOISE.size
_compiled = njit(cache=True, error_model="numpy")


def scorer(model: Matching) -> Scorer:
    """The score with the present weights, of a judge of at most 16 hidden units and features."""
    each, each_2 = cast(nn.Linear, model.each[0]), cast(nn.Linear, model.each[2])
    first, last = cast(nn.Linear, model.all[0]), cast(nn.Linear, model.all[2])
    features = each_2.out_features
    config = cast(MatchingConfig, model.config)
    mean, greatest, disagreement = first.weight.abs().split([features, features, 2 + config.counts], dim=1)
    layers = flat(
        [
            (each.weight.abs(), each.bias),
            (each_2.weight.abs(), each_2.bias),
            (mean, first.bias),
            (greatest, None),
            (disagreement, None),
            (-last.weight.abs().sum(0, keepdim=True), -last.bias.sum(0, keepdim=True)),
        ]
    )
    sharpness = model.log_sharpness.exp().item()
    matching = config.hypotheses, config.rematches, float(config.persistence)

    def score(target: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
        return _scores(target, reference, sharpness, matching, layers, config.counts)

    return score


@_compiled
def _scores(targets, references, sharpness, matching, layers, counts):  # type: ignore[no-untyped-def]
    hypotheses, rematches, persistence = matching
    size, m, n = len(targets), targets.shape[1], references.shape[1]
    scores = np.empty(size)
    likelihood, attention = np.empty((n, m)), np.empty((n, m))
    target = np.empty(targets.shape[1:]), np.empty(m, np.complex128), np.empty(m, np.complex128), np.empty(m)
    reference = np.empty(references.shape[1:]), np.empty(n, np.complex128), np.empty(n, np.complex128), np.empty(n)
    moved = np.empty(0), np.empty(m, np.complex128), np.empty(m, np.complex128), np.empty(m)
    residuals, disagreement = np.empty(3 * n), np.empty(2)
    for b in range(size):
        m, n = _take_apart(targets[b], *target), _take_apart(references[b], *reference)
        _likelihoods(target[0][:m], reference[0][:n], sharpness, likelihood)
        for j in range(n):
            attention[j, :m] = likelihood[j, :m]
            _softmax(attention[j, :m])
        certain = _is_certain(attention[:n, :m])
        if hypotheses > 0 and not certain:
            _by_hypotheses(target, reference, m, n, likelihood, attention, hypotheses, moved)
        factor = _fit(target, reference, m, n, attention, moved, disagreement)
        for _ in range(0 if certain else rematches):
            for j in range(n):
                _with_residuals(likelihood[j, :m], j, moved, reference, factor, persistence, attention[j, :m])
                _softmax(attention[j, :m])
            factor = _fit(target, reference, m, n, attention, moved, disagreement)
        residuals[: 3 * n] = 0
        for j in range(n):
            for i in range(m):
                if attention[j, i] > 0:
                    for k, residual in enumerate(_residuals(i, j, moved, reference, factor)):
                        residuals[3 * j + k] += attention[j, i] * residual
        scores[b] = _judged(residuals[: 3 * n], disagreement, layers, counts)
    return scores


@_compiled
def _take_apart(scene, rows, points, directions, sizes):  # type: ignore[no-untyped-def]
    """The objects of a scene one after the other, the plane as complex numbers; returns how many there are."""
    count = 0
    for i in range(len(scene)):
        if holds(scene, i):
            rows[count] = scene[i]
            points[count] = complex(scene[i, _X], scene[i, _Y])
            directions[count] = complex(np.cos(scene[i, ORIENTATION]), np.sin(scene[i, ORIENTATION]))
            sizes[count] = scene[i, SIZE]
            count += 1
    return count


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
def _is_certain(attention):  # type: ignore[no-untyped-def]
    """Whether each object has one partner and nothing beside it, which no residual changes."""
    for j in range(len(attention)):
        partners = 0
        for i in range(attention.shape[1]):
            partners += attention[j, i] > 0
        if partners > 1:
            return False
    return True


@_compiled
def _with_residuals(likelihood, j, moved, reference, factor, persistence, out):  # type: ignore[no-untyped-def]
    """The likelihoods of one object's partners by appearance and by what the fit leaves of them."""
    best = 0
    for i in range(1, len(likelihood)):
        best = i if likelihood[i] > likelihood[best] else best
    known = likelihood[best] - persistence * _cost(best, j, moved, reference, factor)
    for i in range(len(likelihood)):
        out[i] = likelihood[i]
        if not likelihood[i] < known - _NOTHING:  # else nothing, whatever its residuals
            out[i] = likelihood[i] - persistence * _cost(i, j, moved, reference, factor)


@_compiled
def _cost(i, j, moved, reference, factor):  # type: ignore[no-untyped-def]
    position, orientation, size = _residuals(i, j, moved, reference, factor)
    return np.log((1 + position) * (1 + orientation) * (1 + size))


@_compiled
def _by_hypotheses(target, reference, m, n, likelihood, attention, most, moved):  # type: ignore[no-untyped-def]
    """Sharpen an attention by the likeliest of the matchings that begin with one pair of objects."""
    _, points, _, _ = reference
    mean, anchor, farthest, bound = 0j, 0, -1.0, 0.0
    for j in range(n):
        mean += points[j] / n
        bound += likelihood[j, :m].max() + np.log(m)
    for j in range(n):
        if _squared(points[j] - mean) > farthest:
            anchor, farthest = j, _squared(points[j] - mean)
    _scaled(target, reference, m, n, attention, moved)
    likeliest, best = 0, -np.inf
    for partner in np.argsort(-likelihood[anchor, :m])[:most]:
        own = likelihood[anchor, partner]
        if own + bound < best:  # whatever its residuals
            continue
        total = own
        for j in range(n):
            total += _hypothesis(target, reference, m, j, likelihood, anchor, partner, mean, moved, attention)
        if total > best:
            likeliest, best = partner, total
    for j in range(n):
        _hypothesis(target, reference, m, j, likelihood, anchor, likeliest, mean, moved, attention)
        _softmax(attention[j, :m])


@_compiled
def _scaled(target, reference, m, n, attention, moved):  # type: ignore[no-untyped-def]
    """The target's points scaled as its sizes say, about their mean, in ``moved``."""
    _, t_points, _, t_sizes = target
    mean, by_sizes, squares = 0j, 0.0, 0.0
    for j in range(n):
        for i in range(m):
            weight = attention[j, i]
            if weight > 0:
                mean += weight * t_points[i] / n
                by_sizes += weight * t_sizes[i] * reference[3][j]
                squares += weight * t_sizes[i] ** 2
    for i in range(m):
        moved[1][i] = by_sizes / squares * (t_points[i] - mean)


@_compiled
def _hypothesis(target, reference, m, j, likelihood, anchor, partner, mean, moved, out):  # type: ignore[no-untyped-def]
    """The partners of one object if ``partner`` is the anchor's, in ``out``; returns the log of their sum."""
    _, points, directions, _ = reference
    turn = directions[anchor] * target[2][partner].conjugate()
    greatest = -np.inf
    for i in range(m):
        out[j, i] = likelihood[j, i]
        if not likelihood[j, i] < greatest - _NOTHING:  # else nothing, whatever its residuals
            far = _squared(points[j] - mean - turn * moved[1][i]) / _POSITION**2
            turned = _squared(directions[j] - turn * target[2][i]) / _ORIENTATION**2
            out[j, i] -= 2 * np.log((1 + far / COARSE) * (1 + turned / COARSE))
            greatest = max(greatest, out[j, i])
    total = 0.0
    for i in range(m):
        if not out[j, i] < greatest - _NOTHING:
            total += np.exp(out[j, i] - greatest)
    return greatest + np.log(total)


@_compiled
def _fit(target, reference, m, n, attention, moved, disagreement):  # type: ignore[no-untyped-def]
    """Bring the target into the reference's frame, in ``moved``; returns the factor that is left to apply to it, its
    length and direction, and the reference's mean.
    """
    _, t_points, t_directions, t_sizes = target
    _, points, directions, sizes = reference
    _, moved_points, moved_directions, moved_sizes = moved
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
    return factor, length, factor / length, mean


@_compiled
def _residuals(i, j, moved, reference, factor):  # type: ignore[no-untyped-def]
    """Of one pair of objects: position, orientation, size; squared, in noise variances."""
    f, length, turn, mean = factor
    _, points, directions, sizes = reference
    _, moved_points, moved_directions, moved_sizes = moved
    return (
        _squared(points[j] - mean - f * moved_points[i]) / _POSITION**2,
        _squared(directions[j] - turn * moved_directions[i]) / _ORIENTATION**2,
        (sizes[j] - length * moved_sizes[i]) ** 2 / _SIZE**2,
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
        before = add_product(load(layers, _EACH + BIAS), load(layers, _EACH), value, 0)
        store(row, 0, where_positive(before, before))
        feature = add_matrix(load(layers, _EACH_2 + BIAS), layers, _EACH_2, row, 0)
        total = add(total, feature)
        store(row, 0, feature)
        for k in range(LANES):
            greatest[k] = max(greatest[k], row[k])
    store(row, 0, total)
    row /= len(residuals)
    before = add_matrix(load(layers, _MEAN + BIAS), layers, _MEAN, row, 0)
    before = add_matrix(before, layers, _GREATEST, greatest, 0)
    for k in range(2):
        value[0] = np.log(1 + disagreement[k])
        before = add_product(before, load(layers, _DISAGREEMENT + k * LANES), value, 0)
    if counts:
        value[0] = -np.log(len(residuals) / 3)
        before = add_product(before, load(layers, _DISAGREEMENT + 2 * LANES), value, 0)
    store(row, 0, where_positive(before, before))
    store(row, 0, add_matrix(load(layers, _LAST + BIAS), layers, _LAST, row, 0))
    return row[0]
