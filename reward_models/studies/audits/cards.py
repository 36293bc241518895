"""Build a shipped model: train by its recipe, measure, and write a card of all figures.

The card, ``card.json``:

    name, about, command    what it is called, one sentence, and the command that made it
    kind, n_weights, seed   of the network, and of its training
    training                the recipe's settings, as ``TrainingConfig.to_json()``
    seconds                 of training, from its log; null without one
    trained, measured       {package, commit, versions, machine} of the code that trained and of the code that measured
    accuracy                {"3-8": {"correct": 9980, "total": 10000}, ...} on Discrimination, test stream of
                            ``accuracy_seed``
    microseconds            per pair of 8 objects on one thread, {"1": of a single pair, "4096": of one among so many};
                            best of several tries
    hard_suite              null, or {"seed", "accuracy": {task: {"3-8": {"correct", "total"}}}, "thresholds":
                            {"3-8": 4.1}}; certified where a task has both forms, correct null where scenes were
                            refused, thresholds in deviations of the noise, null for never
    audit                   null, or what ``auditing.targets.card_of`` keeps of the audit
    known_failures          sentences
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from reward_models import provenance
from reward_models.auditing.report import write_small
from reward_models.auditing.targets import card_of
from reward_models.hub.recipes import Recipe, recipe
from reward_models.judges import shipped
from reward_models.judges.judge import TRUTH
from reward_models.judges.learned import LearnedModel, load
from reward_models.measuring import hard_cases
from reward_models.measuring.evaluation import accuracy_by_range, truth_on
from reward_models.models import checkpoint
from reward_models.threads import one_thread
from reward_models.training.folder import LOG
from reward_models.training.protocol import read_log
from spatialsim_env.arrangements.tasks import RANGES, Discrimination
from spatialsim_env.checks import read_object, require_entries
from spatialsim_env.files import replace_file

Row = dict[str, Any]

TEST_SAMPLES, HARD_SAMPLES = 10_000, 1_000  # per range; per task and range
ACCURACY_SEED = HARD_SEED = 0
TIMED_OBJECTS, TIMED_BATCHES, TIMED_TRIES = 8, (1, 4_096), 7
AUDIT: Row = {"n_objects": (3, 5, 8, 20)}  # settings of the audit; the others as it has them
AUDITS, TRUTH_AGENTS = "audits", "truth_agents"  # folders among the trainings
MADE_BY = "made_by.json"  # beside the training: the code that began it
_MADE = {"package": str, "commit": (str, type(None)), "versions": dict, "machine": str}


def build(
    name: str,
    out: str | os.PathLike[str],
    work: str | os.PathLike[str],
    *,
    samples: int = TEST_SAMPLES,
    hard_samples: int = HARD_SAMPLES,
    audited: bool = True,
    agent: bool = True,
    pictures: str | os.PathLike[str] | None = None,
    say: Callable[[str], None] = print,
) -> Path:
    """Make a shipped model into ``out/NAME``, which is replaced as a whole when all of it is there.

    Args:
        name: of a recipe.
        work: folder of trainings; an interrupted one resumes, a finished one is measured again.
        samples: per range, of the card's accuracy.
        hard_samples: per task and range of the hard suite; 0 leaves it out.
        audited: whether the model is audited.
        agent: whether agents are trained for the audit; those on the truth are shared by all models of ``work``.
        pictures: folder that gets NAME, a few small pictures of the audit.

    Returns:
        The folder.

    Raises:
        ValueError: an unknown name, a training of other settings, or an unfinished one of another commit.
        ImportError: a package of the extra "audit" is not installed.
    """
    made, chosen = _read_provenance(), recipe(name)
    training = Path(work) / name
    trained = _begin(training, made)
    say(f"{name}: training in {training}")
    chosen.make(chosen.settings, training)
    model = load(training)
    say(f"{name}: measuring")
    card = _card(name, chosen, model, training) | {
        "trained": trained,
        "measured": made,
        "accuracy": {
            key: asdict(part) for key, part in accuracy_by_range(model.module, samples, ACCURACY_SEED).items()
        },
        "hard_suite": _hard_suite(model, hard_samples) if hard_samples else None,
        "audit": None,
    }
    if audited:
        found = _audit(training, Path(work), name, agent, say)
        card["audit"] = card_of(found)
        if pictures is not None:
            write_small(found, Path(pictures) / name)
    home = Path(out) / name
    with _replace_folder(home) as temporary:
        for file in (checkpoint.INFO, checkpoint.WEIGHTS):
            shutil.copyfile(training / file, temporary / file)
        card_of_name = {key: card[key] for key in shipped.CARD_ENTRIES}
        (temporary / shipped.CARD).write_text(json.dumps(card_of_name, indent=2) + "\n", encoding="utf-8", newline="\n")
        shipped.write_checksums(temporary)
    return home


def _card(name: str, chosen: Recipe, model: LearnedModel, training: Path) -> Row:
    return {
        "format": shipped.CARD_FORMAT,
        "name": name,
        "about": chosen.about,
        "command": f"spatialsim hub build {name}",
        "kind": model.kind,
        "n_weights": model.module.n_weights,
        "seed": chosen.settings.seed,
        "training": chosen.settings.to_json(),
        "seconds": round(sum(row.seconds for row in read_log(training)), 1) if (training / LOG).exists() else None,
        "accuracy_seed": ACCURACY_SEED,
        "microseconds": {str(size): microseconds(model, size) for size in TIMED_BATCHES},
        "known_failures": list(chosen.known_failures),
    }


def _hard_suite(model: LearnedModel, samples: int) -> Row:
    found = hard_cases.run(model, beside={}, size=samples, seed=HARD_SEED)
    shares: dict[str, Row] = {}
    for row in sorted(found, key=lambda row: row.certified):  # a certified form replaces the other
        shares.setdefault(row.task, {})[row.objects] = {"correct": row.correct, "total": row.total}
    sigmas = {objects: value for (_, objects), value in hard_cases.thresholds(found).items()}
    return {"seed": HARD_SEED, "accuracy": shares, "thresholds": sigmas}


def build_truth(
    out: str | os.PathLike[str],
    work: str | os.PathLike[str],
    *,
    samples: int = TEST_SAMPLES,
    agent: bool = True,
    say: Callable[[str], None] = print,
) -> Path:
    """Write what a card says of a model, of the truth: ``accuracy`` and ``audit``.

    Args:
        out: the file.
        work: folder of trainings, as of ``build``.
        samples: per range.
        agent: whether agents are trained.
    """
    found = {
        "name": TRUTH,
        "command": f"spatialsim hub truth --out {Path(out).as_posix()}",
        "measured": _read_provenance(),
        "accuracy_seed": ACCURACY_SEED,
        "accuracy": {
            f"{low}-{high}": asdict(truth_on(Discrimination((low, high)), samples, ACCURACY_SEED))
            for low, high in RANGES
        },
        "audit": card_of(_audit(TRUTH, Path(work), TRUTH, agent, say)),
    }
    with replace_file(Path(out)) as temporary:
        temporary.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8", newline="\n")
    return Path(out)


def _audit(model: Path | str, work: Path, name: str, agent: bool, say: Callable[[str], None]) -> Row:
    from reward_models.studies.audits.tables import resume

    say(f"{name}: audit")
    return resume(
        model,
        work / AUDITS / name,
        truth_agents=work / TRUTH_AGENTS,
        agent=agent,
        progress=lambda line: say(f"{name}: {line}"),
        **AUDIT,
    )


def microseconds(model: LearnedModel, size: int) -> float:
    """Time of a pair of 8 objects when ``size`` pairs are scored in one call on one thread."""
    pairs = Discrimination(TIMED_OBJECTS).sample(size, np.random.default_rng(0))
    calls = max(1, 64 // size)

    def score() -> None:
        model.score(pairs.reference, pairs.target)

    with one_thread():
        score()  # compiles what is compiled
        best = min(timeit.repeat(score, number=calls, repeat=TIMED_TRIES))
    return round(best / (calls * size) * 1e6, 2)


def _read_provenance() -> Row:
    return provenance.describe()


def _begin(training: Path, made: Row) -> Row:
    """The code that began a training; refuses to resume an unfinished one of another commit."""
    file = training / MADE_BY
    if not file.exists():
        with replace_file(file) as temporary:
            temporary.write_text(json.dumps(made, indent=2) + "\n")
        return made
    there = read_object(file)
    require_entries(file, there, _MADE, ValueError)
    if not (training / checkpoint.INFO).exists() and there["commit"] != made["commit"]:
        raise ValueError(
            f"{training} holds an unfinished training of commit {there['commit']}, and this is {made['commit']}; "
            "remove it, or give another --work"
        )
    return there


@contextmanager
def _replace_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that takes the place of ``target`` when the block ends well; else it is gone."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unique = f"{os.getpid()}-{secrets.token_hex(4)}"
    temporary, old = (target.with_name(f".{target.name}.{unique}.{ending}") for ending in ("tmp", "old"))
    temporary.mkdir()
    try:
        yield temporary
        if target.exists():
            target.rename(old)
        temporary.rename(target)
    finally:
        for left_over in (temporary, old):
            shutil.rmtree(left_over, ignore_errors=True)
