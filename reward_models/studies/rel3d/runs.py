"""Runs of the study of 3D relations as data: an id, as ``rel3d/relational/full/seed3``, says what is run.

- ``rel3d/MODEL/full/seedK``: a model trained on all training samples of a split file;
- ``rel3d/MODEL/c_0.10/seedK``: on a tenth of the groups, contrastive: samples of both labels;
- ``rel3d/MODEL/nc_0.10/seedK``: on as many samples, of twice as many groups with one label each.

A group is all samples of one (predicate, subject, object). Shares are of the groups of training and validation
together; a tenth more, of the same kind, is validated on. Which groups they are is drawn anew for each seed, and a
smaller share is part of a larger one. The test samples are the same in all runs. An id is the same for published data
and for ours; a folder of results holds the runs of one split file.

Models that see pictures are too long for two processors on all samples; with small pictures a quarter of the groups
is within reach, and they stand beside the other models on it. Variants of a model are data here: a wider or narrower
one, another encoding of angles, smaller pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from reward_models import models
from reward_models.studies.engine.study import Json, Unit
from reward_models.training.rel3d import RelationConfig
from spatialsim_env.relations.rel3d import subsets
from spatialsim_env.relations.rel3d.published import Split
from spatialsim_env.streams import stream

VERSION = 1  # raised whenever a change of the code alters results; rows of two versions are never mixed

STUDY, FULL = "rel3d", "full"
SEEDS = tuple(range(5))
ONE_SEED = (0,)
SHARES = (0.05, 0.1, 0.25, 0.4)  # of the groups
VALIDATED = 0.1  # share of the groups, where a share is trained on
KINDS = {"c": "contrastive", "nc": "non-contrastive"}
SMALL_PICTURES, FEW_EPOCHS = 64, 8  # pixels; epochs at most with them: what two processors can do
QUARTER = "c_0.25"  # what models of small pictures are trained on, too, beside those that have curves
QUICK: dict[str, Any] = {"epochs": 2}


@dataclass(frozen=True)
class Variant:
    """A model as the study trains it."""

    title: str
    model: str  # name in models.RELATIONS
    settings: dict[str, Any] = field(default_factory=dict)
    weights: int | None = None  # published, of the same network; None where there is none
    pixels: int | None = None  # of pictures, for models that see them
    epochs: int | None = None  # at most; None for the published number
    seeds: tuple[int, ...] = SEEDS
    curves: bool = False  # whether it is also trained on shares
    long: bool = False  # too long for two processors: run where a filter names it

    def config(self, seed: int, **changes: Any) -> RelationConfig:
        """The configuration of a run."""
        own = {name: value for name in ("pixels", "epochs") if (value := getattr(self, name)) is not None}
        return RelationConfig.published(self.model, settings=self.settings, seed=seed, **(own | changes))


def _pictures(model: str, title: str, weights: int) -> dict[str, Variant]:
    """A model that sees pictures, as published and with small ones."""
    whole = Variant(f"{title}, 224 pixels", model, {}, weights, pixels=224, seeds=ONE_SEED, long=True)
    title = f"{title}, {SMALL_PICTURES} pixels, {FEW_EPOCHS} epochs"
    small = replace(whole, title=title, pixels=SMALL_PICTURES, epochs=FEW_EPOCHS)
    return {f"{model}_{SMALL_PICTURES}px": small, model: whole}


VARIANTS: dict[str, Variant] = {
    "language_only": Variant("language only", "language_only", weights=77_569),
    "boxes2d": Variant("2D boxes", "boxes2d", weights=45_313, curves=True),
    "mlp_raw": Variant("MLP, raw features", "mlp_raw", curves=True),
    "mlp_raw_noskip": Variant("MLP, raw features, no skips", "mlp_raw", {"skips": False}, 820_254),
    "mlp_raw_sincos": Variant("MLP, raw features, sine and cosine", "mlp_raw", {"encoding": "sincos"}),
    "mlp_raw_6d": Variant("MLP, raw features, 6D rotations", "mlp_raw", {"encoding": "6d"}),
    "mlp_aligned_512": Variant("MLP, aligned features, width 512", "mlp_aligned", {"width": 512}, curves=True),
    "mlp_aligned_512_6d": Variant(
        "MLP, aligned features, width 512, 6D rotations", "mlp_aligned", {"width": 512, "encoding": "6d"}
    ),
    "relational": Variant("relational", "relational", curves=True),
    "mlp_aligned": Variant("MLP, aligned features", "mlp_aligned", seeds=ONE_SEED, long=True),
    "mlp_aligned_noskip": Variant(
        "MLP, aligned features, no skips", "mlp_aligned", {"skips": False}, 12_705_822, seeds=ONE_SEED, long=True
    ),
    "mlp_aligned_6d": Variant(
        "MLP, aligned features, 6D rotations", "mlp_aligned", {"encoding": "6d"}, seeds=ONE_SEED, long=True
    ),
    **_pictures("drnet", "DRNet", 11_892_542),
    **_pictures("vtranse", "VTransE", 19_204_065),
    **_pictures("vip_cnn", "Vip-CNN", 65_778_914),
    **_pictures("ppr_fcn", "PPR-FCN", 11_396_346),
}


@dataclass(frozen=True)
class RelationRun(Unit):
    """One model trained on one set of samples, from one seed."""

    variant: str  # name in VARIANTS
    data: str  # "full", or kind and share, as "c_0.10"
    seed: int
    changes: dict[str, Any] = field(default_factory=dict)  # to the configuration

    @classmethod
    def of(cls, variant: str, data: str, seed: int, changes: dict[str, Any] | None = None) -> RelationRun:
        """Make the run with the id of its parts."""
        return cls(f"{STUDY}/{variant}/{data}/seed{seed}", variant, data, seed, changes or {})

    @property
    def long(self) -> bool:
        return VARIANTS[self.variant].long

    @property
    def sees_pictures(self) -> bool:
        """True where the model needs a folder of pictures."""
        return "picture" in models.RELATIONS[VARIANTS[self.variant].model].needs

    @property
    def config(self) -> RelationConfig:
        """The configuration of its training."""
        return VARIANTS[self.variant].config(self.seed, **self.changes)

    def settings(self, run: str) -> Json:
        subset = None
        if self.data != FULL:
            kind, share = parse_data(self.data)
            subset = {"kind": KINDS[kind], "train": share, "valid": VALIDATED, "seed": self.seed}
        return {"training": self.config.to_json(), "subset": subset}

    def split(self, whole: Split) -> Split:
        """Select its training, validation and test samples of a split file."""
        if self.data == FULL:
            return whole
        kind, share = parse_data(self.data)
        rng = stream(self.seed, "relations/subset")
        contrastive, other = subsets.both_kinds(whole, share, VALIDATED, rng)
        return contrastive if kind == "c" else other


def parse_data(data: str) -> tuple[str, float]:
    """Read kind and share of "c_0.10"."""
    kind, _, share = data.partition("_")
    return kind, float(share)


def name_of(kind: str, share: float) -> str:
    """Invert ``parse_data``."""
    return f"{kind}_{share:.2f}"


def units(quick: bool = False) -> dict[str, RelationRun]:
    """List all runs by id, in the order worth having, the long ones last; ``quick`` trains two epochs."""
    changes = QUICK if quick else {}
    short = {name: variant for name, variant in VARIANTS.items() if not variant.long}
    small = [name for name, variant in VARIANTS.items() if variant.pixels == SMALL_PICTURES]
    parts = [(name, FULL, seed) for seed in SEEDS for name, variant in short.items() if seed in variant.seeds]
    parts += [
        (name, name_of(kind, share), seed)
        for seed in SEEDS
        for share in SHARES
        for name, variant in short.items()
        if variant.curves
        for kind in KINDS
    ]
    parts += [(name, QUARTER, seed) for name in small for seed in VARIANTS[name].seeds]
    parts += [(name, FULL, seed) for name, variant in VARIANTS.items() if variant.long for seed in variant.seeds]
    return {run.id: run for run in (RelationRun.of(*part, changes) for part in parts)}
