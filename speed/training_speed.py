"""Speed of training: ten seeds in one pass, side by side with the definition, and how near the pair part comes to what
arithmetic alone would take.

    python speed/training_speed.py            measures, and writes training_speed.json beside this file
    python speed/training_speed.py --print    prints the tables of the last run

An epoch is 10,000 samples in batches of 128, with Adam, on one thread; seconds are per seed. *Plain* is one seed alone
with the definition of the pair part (``pairs.plain``) in the same run; the authors' figures are from a run of their
published code on two shared cores, one thread. The bound counts the vector instructions that a pair of objects cannot
do without (16 numbers each) and divides them by the rate at which this processor adds, measured in the same run; it
leaves out every load, store and loop.
"""

from __future__ import annotations

import recording

# isort: split
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import njit
from recording import ROOT, least

from reward_models import models
from reward_models.measuring.evaluation import loss_of
from reward_models.models import mpgnn
from reward_models.models.batch import Batch, for_model
from reward_models.models.kernels import pairs
from reward_models.models.kernels.lanes import LANES, add, load, store
from reward_models.models.stack import Stack
from spatialsim_env.arrangements.pictures import pictures
from spatialsim_env.arrangements.tasks import Discrimination, Identification, Task

SEEDS, BATCH, EPOCH = 10, 128, 10_000
STEPS = -(-EPOCH // BATCH)
PACKAGES = ("numpy", "numba", "torch")

# vector instructions per pair: what the formulas of pairs.py and their derivatives contain, and no more
FIRST_ROUND = 3 + 4  # add, ReLU, sum; again add, gate, two sums
SECOND_ROUND = (5 + LANES) + (9 + 3 * LANES)  # with one 16 x 16 product; with that again, the one back, outer products

# work, model, task, target and authors' seconds an epoch
CASES = (
    ("MPGNN, Identification n = 5", "mpgnn_single", Identification(5), 0.04, 0.80),
    ("MPGNN, Identification n = 20", "mpgnn_single", Identification(20), 0.15, 2.03),
    ("MPGNN, Discrimination 3-8", "mpgnn", Discrimination((3, 8)), 0.15, 1.74),
    ("MPGNN, Discrimination 9-20", "mpgnn", Discrimination((9, 20)), 0.7, 4.31),
    ("MPGNN, Discrimination 21-30", "mpgnn", Discrimination((21, 30)), None, None),
)


def samples(kind: str, task: Task, size: int = EPOCH) -> Batch:
    """Samples as the model takes them."""
    return for_model(models.create(kind), task.sample(size, np.random.default_rng(0)))


def epoch(kind: str, data: Batch, seeds: int, steps: int) -> Callable[[], None]:
    """``steps`` steps of training, each seed in its own order."""
    stack = Stack([models.create(kind, seed=seed) for seed in range(seeds)])
    optimizer = torch.optim.Adam(stack.weights.values(), lr=1e-3, fused=True)
    order = torch.from_numpy(np.array([np.random.default_rng(s).permutation(len(data)) for s in range(seeds)]))

    def run() -> None:
        for step in range(steps):
            batch = data.at(order[:, step * BATCH : (step + 1) * BATCH])
            loss = loss_of(stack(batch.target, batch.reference), batch.label)
            optimizer.zero_grad(set_to_none=True)
            loss.sum().backward()
            optimizer.step()

    return run


def training(name: str, kind: str, task: Task, target: float | None, authors: float | None) -> dict[str, Any]:
    """Seconds an epoch and seed: ten seeds together; one alone with the definition; of the first, the pair part."""
    data = samples(kind, task)
    ours = least(epoch(kind, data, SEEDS, STEPS), 2) / SEEDS
    mpgnn.pair_sums = pairs.plain
    few = 8
    plain = least(epoch(kind, data, 1, few), 2) * STEPS / few
    mpgnn.pair_sums = pairs.pair_sums
    measured, bound = pair_part(data, rounds=1 if data.reference is None else 2)
    return {
        "work": name,
        "seconds": ours,
        "plain": plain,
        "ratio": plain / ours,
        "authors": authors,
        "target": target,
        "met": None if target is None else ours <= target,
        "pair_part": measured,
        "bound": bound,
    }


def pair_part(data: Batch, rounds: int) -> tuple[float, float]:
    """Seconds an epoch and seed in the kernel, and the bound."""
    seconds = instructions = 0.0
    for scenes in (data.target, data.reference):
        if scenes is None:
            continue
        held = (scenes[: SEEDS * BATCH].transpose(0, 1)[..., :3].sum(-1, keepdim=True) > 0.5).expand(-1, -1, 1)
        held = held.unflatten(1, (SEEDS, BATCH)).transpose(0, 1).contiguous()
        for so_far in range(1, rounds + 1):
            seconds += least(work_of(pairs.pair_sums, held, so_far)) / SEEDS * STEPS
        count = held.sum(1).double()
        per_pair = FIRST_ROUND + (SECOND_ROUND if rounds == 2 else 0)
        instructions += float((count * (count - 1)).sum()) / SEEDS * STEPS * per_pair
    return seconds, instructions * seconds_an_instruction()


def work_of(function: Callable[..., Any], held: torch.Tensor, rounds: int) -> Callable[[], Any]:
    """Values and gradients of the pair part of all seeds."""
    shape = (*held.shape[:-1], LANES)
    links = [tuple(torch.randn(shape, requires_grad=True) for _ in range(2)) for _ in range(rounds)]
    mix = torch.randn(len(held), LANES, LANES, requires_grad=True)
    leaves = [x for link in links for x in link] + ([mix] if rounds > 1 else [])
    weight = torch.randn(shape)
    return lambda: torch.autograd.grad(function(links, mix, held), leaves, weight)


@njit
def _additions(values, count):  # type: ignore[no-untyped-def]
    """Eight chains of additions that never leave the registers."""
    step = load(values, 0)
    a, b, c, d = load(values, 0), load(values, 1), load(values, 2), load(values, 3)
    e, f, g, h = load(values, 4), load(values, 5), load(values, 6), load(values, 7)
    for _ in range(count):
        a, b, c, d = add(a, step), add(b, step), add(c, step), add(d, step)
        e, f, g, h = add(e, step), add(f, step), add(g, step), add(h, step)
    store(values, 0, add(add(add(a, b), add(c, d)), add(add(e, f), add(g, h))))


def seconds_an_instruction(count: int = 1_000_000) -> float:
    """Seconds of one vector addition at the processor's best."""
    values = np.ones(2 * LANES, np.float32)
    return least(lambda: _additions(values, count)) / (8 * count)


@njit
def _loops_back(received, sent, held, gradient, d_received, d_sent):  # type: ignore[no-untyped-def]
    """The derivatives of ``_loops``."""
    for s in range(received.shape[0]):
        for b in range(received.shape[2]):
            for j in range(received.shape[1]):
                for i in range(received.shape[1]):
                    if i != j and held[s, j, b, 0] and held[s, i, b, 0]:
                        for k in range(received.shape[3]):
                            if received[s, j, b, k] + sent[s, i, b, k] > 0:
                                d_received[s, j, b, k] += gradient[s, j, b, k]
                                d_sent[s, i, b, k] += gradient[s, j, b, k]


@njit
def _loops(received, sent, held, out):  # type: ignore[no-untyped-def]
    """The first round as loops that the compiler is left to vectorise."""
    for s in range(received.shape[0]):
        for b in range(received.shape[2]):
            for j in range(received.shape[1]):
                for i in range(received.shape[1]):
                    if i != j and held[s, j, b, 0] and held[s, i, b, 0]:
                        for k in range(received.shape[3]):
                            out[s, j, b, k] += max(received[s, j, b, k] + sent[s, i, b, k], np.float32(0))


def ways(n: int = 20) -> list[dict[str, Any]]:
    """The pair part of one batch in each way that was tried, in ms per seed, values and gradients."""
    held = torch.ones(SEEDS, n, BATCH, 1, dtype=torch.bool)
    rows = []
    for rounds in (1, 2):
        ways: dict[str, Callable[[], Any]] = {
            "kernel": work_of(pairs.pair_sums, held, rounds),
            "broadcasting": work_of(pairs.plain, held, rounds),
        }
        try:
            ways["torch.compile"] = work_of(torch.compile(pairs.plain), held, rounds)
            ways["torch.compile"]()
        except Exception as error:
            print(f"torch.compile: {type(error).__name__}, left out", file=sys.stderr)
            ways.pop("torch.compile", None)
        rows += [{"round": rounds, "way": name, "ms": 1e3 * least(work, 3) / SEEDS} for name, work in ways.items()]
    rng = np.random.default_rng(0)
    received, sent, gradient, *out = (rng.standard_normal((SEEDS, n, BATCH, LANES), np.float32) for _ in range(6))

    def loops() -> None:
        _loops(received, sent, held.numpy(), out[0])
        _loops_back(received, sent, held.numpy(), gradient, out[1], out[2])

    rows.append({"round": 1, "way": "numba loops", "ms": 1e3 * least(loops, 3) / SEEDS})
    return rows


def memory() -> float:
    """Peak GB of a process that trains MPGNNs with ten seeds on a stage of 100,000 samples of 21-30 objects."""
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'speed')!r}); import training_speed as t; t.train_large()"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(process.stdout) / 1e9


def train_large() -> None:
    """Train the process that ``memory`` measures."""
    torch.set_num_threads(1)
    data = samples("mpgnn", Discrimination((21, 30)), 100_000)
    epoch("mpgnn", data, SEEDS, 5)()
    print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def picture_rate(size: int = 3_000) -> float:
    """Pictures of 64 pixels a second, 3-8 objects."""
    scenes = Discrimination((3, 8)).sample(size, np.random.default_rng(0)).target
    return size / least(lambda: pictures(scenes, 64, on_outside="ignore"), 3)


def measure() -> dict[str, Any]:
    """All figures, with what they were measured on."""
    torch.set_num_threads(1)
    return recording.state_origin(PACKAGES) | {
        "settings": {"seeds": SEEDS, "batch": BATCH, "samples": EPOCH},
        "training": [training(*case) for case in CASES],
        "ways": ways(),
        "memory": {"gigabytes": memory(), "target": 2.0},
        "pictures": {"per_second": picture_rate(), "target": 3_000},
    }


def table(result: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = []
    for row in result["training"]:
        authors, target = (("-" if row[key] is None else f"{row[key]:.2f}") for key in ("authors", "target"))
        speeds = (f"{row['seconds']:.3f}", f"{row['plain']:.2f}", f"{row['ratio']:.0f}")
        pair_part = (f"{row['pair_part']:.4f}", f"{row['bound']:.4f}", f"{row['pair_part'] / row['bound']:.1f}")
        lines.append((row["work"], *speeds, authors, target, recording.format_met(row["met"]), *pair_part))
    columns = ["s per epoch and seed", "here", "plain", "ratio", "authors", "target", "met", "pair part", "its bound"]
    training = recording.markdown([*columns, "times"], lines)
    ms = {(row["way"], row["round"]): f"{row['ms']:.2f}" for row in result["ways"]}
    by_way = [(way, ms.get((way, 1), "-"), ms.get((way, 2), "-")) for way in dict.fromkeys(way for way, _ in ms)]
    ways = recording.markdown(("pair part of a batch, n = 20, ms per seed", "first round", "second round"), by_way)
    gigabytes, rate = result["memory"]["gigabytes"], result["pictures"]["per_second"]
    return (
        f"{training}\n\n{ways}\n\nPeak memory of a pass of ten seeds on 21-30 objects: {gigabytes:.2f} GB "
        f"(target: under {result['memory']['target']:g}). "
        f"Pictures of 64 pixels, 3-8 objects: {rate:,.0f} a second (target: {result['pictures']['target']:,})."
    )


if __name__ == "__main__":
    recording.main(__file__, measure, table)
