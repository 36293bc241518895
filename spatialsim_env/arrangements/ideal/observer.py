"""The best possible decision: the likelihood ratio of the generator's two hypotheses.

Reference R (known): n objects with size s_i, colour c_i, position r_i and orientation o_i; rho_i = r_i - mean r.
Target T (seen): sizes z_j, colours g_j, orientations f_j, positions q_j with mean m and offsets u_j = q_j - m. The
generator (``tasks``) arranges positions p, perturbed or made wrong, with mean b, and sets, for an unknown matching
j -> i, scale S in U[0.5, 2], angle t in U[0, max_rotation) and m - b in U[-20, 20]^2,

    u_j = S e^{it} (p_i - b),  z_j = S (s_i + 0.02 N),  f_j = o_i + 0.0628 N + t,  g_j = c_i + 0.01 N.

Positions are complex numbers, N standard normals, sigma = 0.2, a = 0.02, w = 0.0628. With l = 1 / S the map from
(p, m - b) to (q, b) has the Jacobian l^(2n - 2), the sizes bring l^n, dS = dl / l^2, hence, up to a factor that all
hypotheses share,

    p(T | R, hypothesis) = (1 / n!) sum over matchings of prod N(g_j; c_i, 0.01^2)
        x integral dl dt / max_rotation  l^(3n - 4) exp(-sum (l z_j - s_i)^2 / 2a^2) prod N(f_j - t; o_i, w^2) F(l, t),
    F(l, t) = integral db [m - b in [-20, 20]^2] p(arrangement = b + l e^{-it} u | R, z).

The answer is log p(T | R, same) - log p(T | R, negative). With y_i = l e^{-it} u_j, C = sum conj(rho_i) u_j,
U = sum |u_j|^2, P = sum |rho_i|^2, c = 1 - 1/n, and W(x) the probability that m - x - N sigma / sqrt n lies in the
translation's square:

    same         F0 = W(mean r) (2 pi sigma^2)^(1 - n) / n  exp(-(l^2 U + P - 2 l Re e^{-it} C) / 2 sigma^2)
    redrawn      area of the b with all b + y_i in [l z_j, 20 - l z_j]^2, a rectangle, times prod (20 - 2 l z_j)^-2
    poses        likewise; prod N(f_j - t) is replaced by prod [0 <= f_j - t < 2 pi] / 2 pi
    displaced    F0 x mean over the objects k and the distance d of
                 exp(-c d^2 / 2 sigma^2) I0(d |y_k - rho_k| / sigma^2), the mean over the direction; W(mean r)
                 becomes the mean of W(mean r + v / n) over the displacement v given y_k - rho_k, taken at the
                 mean of (l, t)
    mirrored     F0 with -conj(rho) for rho; with the orientations, N(f_j - t; pi - o_i) wrapped onto [0, 2 pi)
    twisted      F0 at t + alpha; the integral over t is normal, so a difference of error functions is left
    mis_scaled   F0 at l / f, with the Jacobian f^-(2n - 2), for log f uniform on both ranges
    swapped      mean of F0 over the admissible pairs, read from the target's colours, with rho_a and rho_b exchanged
    spread_matched  prod (20 - 2 l z_j)^-2 p(D) D^(1 - h) integral dr r^(h - 1) area(r y / D) with h = 2n - 2,
                 D = |y| and p(D) the noncentral chi density: D^2 / sigma^2 has h degrees and the centre P / sigma^2
    radius_matched  n <= 3: mirrored with exp replaced by I0(l |C| / sigma^2), the mean over a free turn. n >= 4:
                 W(mean r) n^-2 p(|y_1|, ..., |y_n|) x density of the chain's angles x |sin| of the angle between the
                 last two links / product of the other lengths. Approximate: the distances are taken as jointly
                 normal, each along its own ray, which is wrong for objects within a few sigma of the barycentre
    mixture      the mean over its parts

Two changes of the target are covered, with redrawn negatives. Of what follows, "just drawn" objects say nothing but
[0.5 <= l z_j <= 2] and [0 <= f_j - t < 2 pi].

    distractors  n of the target's N objects are matched, by any injection; the others are just drawn, and their
                 positions add prod (20 - 2 l z_j)^-2. u, m and the exponent of l are those of all N objects, so same
                 is F0 of the matched ones, W(mean r) replaced by the probability that their barycentre, normal about
                 mean r, leaves every distractor in its square and the translation in its own
    abstract     all objects are just drawn, and nothing tells one matching from another but the positions. Same is
                 the mean of F0 over all n! matchings; redrawn the integral over b of the share of matchings by which
                 b + y_j lies in the square of s_i, whose noise is left out. Up to eight objects

The density of a few displaced objects is not known: their displacements move the barycentre together. Nor are those of
larger abstract scenes, and of abstract scenes with distractors.

A certified task draws negatives, references included, again while the truth calls them achieved: then p(T | negative)
is 0 where it is achieved and otherwise divided by the share that is kept, which is estimated from samples.

*Matchings*: all those within exp(-60) of the likeliest by shape and colour are summed, up to 7! of them; what is left
out can matter only to ratios that are beyond doubt. Where more are open the one of ``alignment`` is taken alone, and
``exact`` is False. *Integrals*: Gauss-Legendre, 24 x 24 nodes on the window of (l, t) that holds the mass; errors are
below 0.01 in the logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.ideal import terms as kinds
from spatialsim_env.arrangements.ideal.densities import log_ratios
from spatialsim_env.arrangements.ideal.terms import RING_STEP, ring
from spatialsim_env.arrangements.ideal.variants import MOST_ABSTRACT, log_ratios_of_variants
from spatialsim_env.arrangements.negatives import Negative, by_name
from spatialsim_env.arrangements.scene import SceneError
from spatialsim_env.arrangements.tasks import Task

Truth = Callable[[Any, NDArray[Any], NDArray[Any]], NDArray[np.float64]]  # task, targets, references -> distances (B,)
LEAST_RANGE = 1e-3  # radians, or of a log factor: a narrower range is widened to it
CERTIFICATION_SAMPLES = 2048  # negatives from which the share that certification keeps is estimated


class Part(NamedTuple):
    """One part of a negative: a kind of ``ideal_densities``, its two numbers, and its probability."""

    kind: int
    low: float = 0.0
    high: float = 0.0
    probability: float = 1.0


@dataclass(frozen=True)
class Ratio:
    """Log likelihood ratios of B pairs: log p(target | same, reference) - log p(target | negative, reference)."""

    value: NDArray[np.float64]  # (B,) positive says the same configuration
    exact: NDArray[np.bool_]  # (B,) False where more matchings are open than are summed: the best one was taken alone


class Tally(NamedTuple):
    """How often the decision was right."""

    correct: int
    total: int
    exact: int  # pairs whose ratio is exact

    @property
    def value(self) -> float:
        """The share right, in 0..1."""
        return self.correct / self.total


def _both_signs(kind: int, low: float, high: float) -> list[Part]:
    missing = max(LEAST_RANGE - (high - low), 0.0) / 2
    low, high = low - missing, high + missing
    return [Part(kind, low, high, 0.5), Part(kind, -high, -low, 0.5)]


def _displaced(negative: Any) -> list[Part]:
    return [Part(kinds.DISPLACED, negative.low, negative.high)]


def _mirrored(negative: Any) -> list[Part]:
    return [Part(kinds.MIRRORED_PICTURE if negative.reflect_orientation else kinds.MIRRORED)]


def _mixture(negative: Any) -> list[Part]:
    share = 1 / len(negative.parts)
    return [part._replace(probability=share * part.probability) for each in negative.parts for part in parts_of(each)]


DENSITIES: dict[str, Callable[[Any], list[Part]]] = {
    "redrawn": lambda negative: [Part(kinds.REDRAWN)],
    "poses": lambda negative: [Part(kinds.POSES)],
    "displaced": _displaced,
    "mirrored": _mirrored,
    "twisted": lambda negative: _both_signs(kinds.TWISTED, negative.low, negative.high),
    "mis_scaled": lambda negative: _both_signs(kinds.MIS_SCALED, np.log(negative.low), np.log(negative.high)),
    "swapped": lambda negative: [Part(kinds.SWAPPED)],
    "spread_matched": lambda negative: [Part(kinds.SPREAD)],
    "radius_matched": lambda negative: [Part(kinds.RADIUS)],
    "mixture": _mixture,
}


def parts_of(negative: str | Negative) -> list[Part]:
    """What a negative is made of.

    Raises:
        ValueError: its density is not known.
    """
    found = by_name(negative)
    if found.name not in DENSITIES:
        raise ValueError(f"negative is {found.name!r}, whose density is not known; accepted are {', '.join(DENSITIES)}")
    return DENSITIES[found.name](found)


def log_likelihood_ratio(
    task: Task, target: NDArray[Any], reference: NDArray[Any] | None = None, truth: Truth | None = None
) -> Ratio:
    """How much likelier each target is if it shows its reference's configuration than if it is a negative.

    Args:
        task: says the negative and the similarities.
        target: (B, n, 10) transformed scenes, with distractors more rows.
        reference: (B, n, 10) or (n, 10); None: the reference of an Identification task.
        truth: what certified the negatives where the task itself does not; None: nothing did.

    Raises:
        ValueError: a task whose densities are not known.
        SceneError: a pair that does not hold the same objects.
    """
    _check(task)
    if reference is None:
        reference = getattr(task, "reference", None)
        if reference is None:
            raise ValueError("reference is None; accepted is None only with an Identification task")
    t = np.ascontiguousarray(target, np.float64)
    r = np.ascontiguousarray(np.broadcast_to(reference, (len(t), *np.shape(reference)[-2:])), np.float64)
    out = _of_variants(task, t, r) if task.abstract or task.distractors else _of_negatives(task, t, r)
    truth = _similarity if task.certified else truth
    if truth is not None:
        achieved = truth(task, t, r) <= 1
        out.value[:] = np.where(achieved, np.inf, out.value + np.log(_kept(task, truth)))
    return out


def _of_negatives(task: Task, t: NDArray[Any], r: NDArray[Any]) -> Ratio:
    out = Ratio(np.full(len(t), np.nan), np.ones(len(t), np.bool_))
    parts, rings = _tables(tuple(parts_of(task.negative)), max(t.shape[1], r.shape[1]))
    codes = np.array([part[:3] for part in parts], np.float64)
    weights = np.log([part.probability for part in parts])
    arrays = (codes, weights, float(task.max_rotation), rings)
    _run(t, r, np.empty((len(t), 0), np.int64), arrays, out, np.arange(len(t)))
    left = np.flatnonzero(np.isnan(out.value))
    if len(left):
        some = Ratio(np.empty(len(left)), np.zeros(len(left), np.bool_))
        matching = Criterion().align(t[left], r[left]).matching[:, : t.shape[1]]
        _run(t[left], r[left], np.ascontiguousarray(matching), arrays, some, left)
        out.value[left] = some.value
    return out


def _of_variants(task: Task, t: NDArray[Any], r: NDArray[Any]) -> Ratio:
    out = Ratio(np.full(len(t), np.nan), np.ones(len(t), np.bool_))
    _refuse(log_ratios_of_variants(t, r, task.abstract, float(task.max_rotation), out.value), np.arange(len(t)))
    if np.isnan(out.value).any():
        raise ValueError(
            f"pair {np.isnan(out.value).argmax()} has distractors, and more matchings than are summed by appearance; "
            "accepted are fewer objects that look alike"
        )
    return out


def _similarity(task: Task, target: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.float64]:
    """The distance by which certified tasks draw again."""
    return Criterion().align(reference, target).distance


def decide(task: Task, target: NDArray[Any], reference: NDArray[Any] | None = None) -> NDArray[np.bool_]:
    """Whether each target shows the same configuration, the best possible answer; arguments and errors as above."""
    return log_likelihood_ratio(task, target, reference).value > 0


def accuracy(task: Task, size: int, seed: int) -> Tally:
    """How often the best possible decision is right on samples of a task, a function of the seed.

    Args:
        size: number of samples.
        seed: of the samples.
    """
    samples = task.sample(size, np.random.default_rng(seed))
    ratio = log_likelihood_ratio(task, samples.target, samples.reference)
    return Tally(int(((ratio.value > 0) == (samples.label > 0.5)).sum()), size, int(ratio.exact.sum()))


def _check(task: Task) -> None:
    if task.fixed.names:
        raise ValueError(f"the task fixes {', '.join(task.fixed.names)}; accepted are tasks that draw the similarity")
    if task.abstract and (task.distractors or task.n_max > MOST_ABSTRACT):
        raise ValueError(
            "the task is abstract, and has distractors or too many objects to sum over all matchings; accepted are "
            f"abstract tasks of up to {MOST_ABSTRACT} objects without distractors"
        )
    name = by_name(task.negative).name
    if (task.abstract or task.distractors) and name != "redrawn":
        raise ValueError(
            f"negative is {name!r}, and the task abstract or with distractors; accepted is redrawn for such tasks"
        )


def _run(
    t: NDArray[Any], r: NDArray[Any], given: NDArray[np.int64], arrays: tuple[Any, ...], out: Ratio, rows: NDArray[Any]
) -> None:
    _refuse(log_ratios(t, r, given, *arrays, out.value, out.exact), rows)


def _refuse(row: int, rows: NDArray[Any]) -> None:
    if row >= 0:
        raise SceneError(f"pair {rows[row]}: target and reference do not hold the same objects, by number and shapes")


@lru_cache(maxsize=32)
def _tables(parts: tuple[Part, ...], n_max: int) -> tuple[tuple[Part, ...], NDArray[np.float64]]:
    """The parts, and their tables of the displaced object by number of objects, (P, n_max + 1, entries)."""
    far = max([part.high for part in parts if part.kind == kinds.DISPLACED], default=0.0)
    entries = int((far + 4) / RING_STEP) + 4
    out = np.zeros((len(parts), n_max + 1, entries))
    for index, part in enumerate(parts):
        if part.kind == kinds.DISPLACED:
            for n in range(1, n_max + 1):
                out[index, n] = ring(n, part.low, part.high, entries)
    return parts, out


@lru_cache(maxsize=32)
def _kept(task: Task, truth: Truth) -> float:
    """Share of the uncertified negatives that certification keeps."""
    samples = replace(task, certified=False).sample(CERTIFICATION_SAMPLES, np.random.default_rng(0))
    wrong = samples[samples.label < 0.5]
    return float((truth(task, wrong.target, wrong.reference) > 1).mean())
