"""The study of 3D relations: ids, the work of a run and its row, resume after a kill."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reward_models import models
from reward_models.measuring import boundaries, relation_accuracy
from reward_models.models import checkpoint
from reward_models.studies.engine import rows
from reward_models.studies.engine.run import DONE, FAILED, MISSING, run, states
from reward_models.studies.engine.select import select
from reward_models.studies.engine.study import as_json
from reward_models.studies.engine.sweep import Sweep
from reward_models.studies.rel3d import runs, test_set, work
from reward_models.studies.rel3d.report import REL3D
from reward_models.studies.rel3d.runs import RelationRun
from reward_models.studies.rel3d.work import RelationRow, pack_answers, unpack_answers
from reward_models.training import rel3d
from reward_models.training.folder import State
from spatialsim_env.relations import scene
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.predicates.predicates import REGISTRY
from spatialsim_env.relations.rel3d import published, records
from tests.reward_models.relation_splits import PREDICATES, samples, split

NETWORK = RelationRun.of("relational", "full", 0, {"epochs": 2})
WORDS = RelationRun.of("language_only", "full", 1, {"epochs": 1})


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "scenes.json"
    published.write(split(60, 12, 21, n_views=2), path)
    return path


@pytest.fixture
def here(tmp_path, file) -> Sweep:
    return Sweep(REL3D, tmp_path / "results", tmp_path / "work", data=file)


def row_of(unit, here):
    """The row of a run; None without one."""
    made = rows.of_unit(REL3D, here.results, unit)
    return None if made is None else made[0]


def test_ids_and_runs_are_the_same_thing():
    for name, unit in runs.units().items():
        settings = unit.settings(unit.id)
        assert unit.id == name
        assert name == f"rel3d/{unit.variant}/{unit.data}/seed{unit.seed}"
        assert settings["training"] == unit.config.to_json()
        assert settings == as_json(settings)
        assert (settings["subset"] is None) == (unit.data == "full")


def test_the_study_has_all_models_of_the_registry():
    assert {variant.model for variant in runs.VARIANTS.values()} == set(models.RELATIONS)
    whole = [run for run in select(REL3D) if run.data == "full"]
    for name in ("language_only", "boxes2d", "mlp_raw", "mlp_raw_noskip", "mlp_raw_6d", "relational"):
        assert [run.seed for run in whole if run.variant == name] == [0, 1, 2, 3, 4]


def test_curves_have_four_shares_of_both_kinds_and_five_seeds():
    for name in ("boxes2d", "mlp_raw", "mlp_aligned_512", "relational"):
        found = [run for run in select(REL3D) if run.variant == name and run.data != "full"]
        assert len(found) == 2 * 4 * 5
        assert {run.data for run in found} == {
            f"{kind}_{share}" for kind in ("c", "nc") for share in ("0.05", "0.10", "0.25", "0.40")
        }


def test_the_protocol_of_a_run():
    config = runs.units()["rel3d/boxes2d/full/seed2"].config
    assert (config.epochs, config.batch_size, config.learning_rate, config.seed) == (800, 128, 1e-3, 2)
    assert runs.units()["rel3d/mlp_raw_6d/full/seed0"].config.settings == {"encoding": "6d"}


@pytest.mark.parametrize(("name", "variant"), runs.VARIANTS.items())
def test_published_weights_are_those_of_our_networks(name, variant):
    """Ours, made for the published 30 predicates and 67 categories, have the published numbers."""
    from reward_models.studies.rel3d.tables import published_size

    if variant.weights is not None:
        assert published_size(name) == variant.weights


@pytest.mark.parametrize(
    ("filters", "number"),
    [(["rel3d/relational/full"], 5), (["rel3d/*/nc_0.05/seed0"], 4), (["rel3d/mlp_raw/full/seed3"], 1),
     (["rel3d/drnet"], 1), (["rel3d/drnet_64px"], 2), (["rel3d/*/full/seed0"], 9)],
)  # fmt: skip
def test_filters(filters, number):
    assert len(select(REL3D, filters)) == number


def test_long_runs_are_named_or_left_out():
    assert not any(run.long for run in select(REL3D))
    assert [run.id for run in select(REL3D, ["rel3d/mlp_aligned/full"])] == ["rel3d/mlp_aligned/full/seed0"]
    with pytest.raises(ValueError, match="no run matches 'rel3d/mlpraw'; 'mlpraw' is unknown"):
        select(REL3D, ["rel3d/mlpraw"])


def test_a_run_has_its_share_of_the_groups():
    """As many samples of both kinds; contrastive ones have pairs, the others do not; the test samples stay."""
    whole = split(90, 30, 12)
    one, other = (RelationRun.of("relational", data, 3).split(whole) for data in ("c_0.40", "nc_0.40"))
    assert len(one.train) == len(other.train) > 0
    assert len(records.members(one.train.pair)) > 0
    for found in (one, other):
        assert rel3d.fingerprint(found.test) == rel3d.fingerprint(whole.test)
        assert not set(found.train.group) & set(found.valid.group)
    labels: dict[int, set[bool]] = {}
    for group, label in zip(other.train.group.tolist(), other.train.label.tolist(), strict=True):
        labels.setdefault(group, set()).add(label)
    assert all(len(of_group) == 1 for of_group in labels.values())
    again = RelationRun.of("mlp_raw", "c_0.40", 3).split(whole)
    assert rel3d.fingerprint(again.train) == rel3d.fingerprint(one.train)
    assert rel3d.fingerprint(RelationRun.of("mlp_raw", "c_0.40", 4).split(whole).train) != rel3d.fingerprint(one.train)


def test_a_row_says_what_the_network_does(here):
    """Each figure again from the kept weights and the file."""
    here = replace(here, keep=True)
    outcome = run(NETWORK, here)
    assert (outcome.state, outcome.new) == (DONE, True)
    row = row_of(NETWORK, here)
    assert rows.to_json(row) == as_json(rows.to_json(outcome.rows[0]))
    data = published.load(here.data)
    folder = here.work / "kept" / NETWORK.id
    measured = relation_accuracy.of_folder(folder, data)
    assert row.accuracy["test"] == as_json(measured)
    assert set(row.accuracy) == {"train", "valid", "test"}
    right = unpack_answers(row)
    counts = relation_accuracy.accuracy(right, data.test.predicate, len(PREDICATES))
    assert counts.correct.tolist() == measured["correct"]
    assert row.n_weights == checkpoint.load(folder).model.n_weights
    assert row.data["samples"] == {"train": 240, "valid": 48, "test": 84}
    assert row.data["rules"] is True
    assert row.settings == NETWORK.settings(NETWORK.id)
    assert len(row.log) == 2
    assert row.error is None


def test_a_killed_run_is_resumed_to_the_same_row(here, tmp_path, monkeypatch):
    [whole] = run(NETWORK, replace(here, results=tmp_path / "whole")).rows
    monkeypatch.setattr(work, "KEEP_EVERY", 0.0)
    save = State.save

    def stopping(*arguments):
        save(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(State, "save", stopping)
        with pytest.raises(KeyboardInterrupt):
            run(NETWORK, here)
    assert states(NETWORK, here) == {NETWORK.id: MISSING}
    assert list(here.folder(NETWORK).glob("state.safetensors"))
    [resumed] = run(NETWORK, here).rows
    for key in ("accuracy", "right", "best_epoch", "n_weights", "data"):
        assert getattr(resumed, key) == getattr(whole, key)
    assert [line[:-1] for line in resumed.log] == [line[:-1] for line in whole.log]


def test_an_exception_is_a_row(here, monkeypatch):
    def failing(*arguments, **more):
        raise RuntimeError("the reason\nand more")

    with monkeypatch.context() as broken:
        broken.setattr(work, "train", failing)
        outcome = run(WORDS, here)
    assert (outcome.state, outcome.rows[0].error) == (FAILED, "RuntimeError: the reason")
    assert "in failing" in (here.folder(WORDS) / "error.txt").read_text()
    assert run(WORDS, here).new is False
    assert run(WORDS, replace(here, retry=True)).state == DONE
    assert not here.folder(WORDS).exists()


def test_damaged_state_is_begun_again(here):
    folder = here.folder(WORDS)
    folder.mkdir(parents=True)
    (folder / "state.safetensors").write_bytes(b"nothing")
    assert run(WORDS, here).state == DONE


def test_rows_of_other_data_are_refused(here, tmp_path):
    run(WORDS, here)
    published.write(split(60, 12, 12), tmp_path / "others.json")
    other = replace(here, data=tmp_path / "others.json")
    with pytest.raises(rows.RowError, match="is of another split file \\(scenes, SHA-256"):
        other.check([WORDS])


def test_rows_of_other_runs_are_refused(here):
    run(WORDS, here)
    longer = replace(WORDS, changes={"epochs": 2})
    with pytest.raises(rows.RowError, match="epochs is 1 there and 2 in the study"):
        row_of(longer, here)
    path = rows.path_of(REL3D, here.results, WORDS)
    path.write_text(path.read_text().replace('"version": 1', '"version": 99', 1))
    with pytest.raises(rows.RowError, match="is of version 99"):
        row_of(WORDS, here)
    path.write_text("{}\n")
    with pytest.raises(rows.RowError, match="lacks id"):
        row_of(WORDS, here)


def test_what_would_fail_everywhere_is_refused_first(here, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        replace(here, data=tmp_path / "nowhere.json").check([WORDS])
    with pytest.raises(ValueError, match="device is 'tpu'"):
        replace(here, device="tpu").check([WORDS])
    with pytest.raises(ValueError, match="drnet sees pictures; give their folder"):
        here.check([RelationRun.of("drnet", "full", 0)])
    with pytest.raises(FileNotFoundError, match="no folder of pictures"):
        replace(here, options={"pictures": str(tmp_path / "none")}).check([WORDS])


def test_answers_as_text():
    right = np.random.default_rng(0).random(77) < 0.5
    data = {"sha256": "", "predicates": [], "samples": {"test": 77}}
    row = RelationRow("x", REL3D.stamp(), {}, data, accuracy={"test": {}}, right=pack_answers(right))
    assert (unpack_answers(row) == right).all()
    with pytest.raises(rows.RowError, match="80 answers to 99 test samples"):
        unpack_answers(replace(row, data=data | {"samples": {"test": 99}}))


def test_positions_of_test_samples():
    """The observer looks along y from -4 m, so right is x; the subject is 0.6 m to a side and half turned away."""
    data = samples(30, 0)
    found = test_set.TestSet.of(data)
    right = data.predicate < 2
    side = np.where(data.label == (data.predicate == 0), 1, -1)[right]
    assert found.seen[right, 0] == pytest.approx(0.6 * side, abs=0.051)
    assert found.seen[:, 1:] == pytest.approx(np.zeros((60, 2)), abs=0.051)
    assert np.linalg.norm(found.own, axis=1) == pytest.approx(np.linalg.norm(found.seen, axis=1), rel=1e-5)
    assert (found.margin > 0).tolist() == data.label.tolist()


def test_positions_are_written_once_and_read(tmp_path):
    data = samples(3, 0)
    test_set.keep(tmp_path, "ab" * 32, data)
    test_set.keep(tmp_path, "ab" * 32, samples(5, 1))
    found = test_set.read(tmp_path, "ab" * 32)
    assert (found.pair == data.pair).all()
    assert (found.own == test_set.TestSet.of(data).own).all()
    with pytest.raises(FileNotFoundError, match="spatialsim study run rel3d writes it"):
        test_set.read(tmp_path, "cd" * 32)


def test_boundaries_have_both_sides():
    """Each place of the grid is one of the scenes, and each rule holds somewhere and fails elsewhere."""
    for height, names in ((False, boundaries.PLANE), (True, boundaries.HEIGHT)):
        shown, observers, first, second = boundaries.scenes(height)
        scene.validate(shown, observers)
        across = shown[:, scene.SUBJECT, scene.CENTER].reshape(boundaries.N, boundaries.N, 3)
        assert (across[0, :, 0] == first).all()
        assert (across[:, 0, 2 if height else 1] == second).all()
        found = predicates.margins(shown, observers, names)
        assert ((found > 0).any(axis=0) & (found < 0).any(axis=0)).all()
        assert set(names) <= set(REGISTRY)


def test_boundaries_are_kept_for_models_that_can_have_them(here):
    run(NETWORK, here)
    run(RelationRun.of("language_only", "full", 0, {"epochs": 1}), here)
    found = boundaries.read(here.results, ["relational", "language_only"])
    assert list(found) == ["relational"]
    known = [name for name in (*boundaries.PLANE, *boundaries.HEIGHT) if name in PREDICATES]
    assert found["relational"].names.tolist() == known
    assert found["relational"].logits.shape == (len(known), boundaries.N, boundaries.N)
