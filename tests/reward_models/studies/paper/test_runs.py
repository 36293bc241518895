"""The study as data: ids, settings, tables and what is accepted as a filter."""

from __future__ import annotations

import pytest

from reward_models import models
from reward_models.studies.engine.select import select as select_units
from reward_models.studies.paper import runs
from reward_models.studies.paper.runs import CELLS, TABLES, RuleCell, TrainedCell
from reward_models.studies.paper.study import STUDY
from reward_models.training.config import TrainingConfig
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.scene import TURN
from spatialsim_env.arrangements.tasks import STAGES
from tests.reward_models.studies.paper.synthetic import settings_of

TRAINED = [cell for cell in CELLS.values() if isinstance(cell, TrainedCell)]
SHORT = [cell for cell in CELLS.values() if not cell.long]
TEN, THREE = tuple(range(10)), tuple(range(3))
OF_OBJECTS = {kind: model for kind, model in models.REGISTRY.items() if not model.sees_pictures}
SINGLE = [kind.removesuffix("_single") for kind, model in OF_OBJECTS.items() if not model.two_inputs]
MODELS = [*SINGLE, "matching"]  # of Identification, apart from pictures


def select(filters=()):
    return select_units(STUDY, filters)


def names(cells) -> list[str]:
    return [cell.id for cell in cells]


def test_identification_is_all_models_on_all_28_sets():
    found = names(select(["identification"]))
    assert len(found) == len(MODELS) * 28 + 1
    for model in MODELS:
        cells = select([f"identification/{model}"])
        assert names(cells) == [f"identification/{model}/n{n}" for n in range(3, 31)]
        assert all(cell.seeds == TEN for cell in cells)
        assert all(cell.tests == {f"identification/n{n}/test": 5_000} for n, cell in enumerate(cells, start=3))


def test_discrimination_is_three_ranges_tested_on_all():
    every = {f"discrimination/{group}/test": 10_000 for group in ("3-8", "9-20", "21-30")}
    for model in (kind for kind, of_model in OF_OBJECTS.items() if of_model.two_inputs):
        cells = select([f"discrimination/{model}"])
        assert names(cells) == [f"discrimination/{model}/{group}" for group in ("3-8", "9-20", "21-30")]
        ten = model in ("mpgnn", "conditioned_mpgnn", "matching")
        assert all(cell.seeds == (TEN if ten else THREE) for cell in cells)
        if model != "mlp":
            assert all(cell.tests == every for cell in cells)
    assert list(CELLS["discrimination/mlp/9-20"].tests) == ["discrimination/3-8/test", "discrimination/9-20/test"]


@pytest.mark.parametrize("cell", TRAINED, ids=names(TRAINED))
def test_settings_are_those_of_a_configuration(cell):
    """``settings`` builds no network; ``config`` checks everything."""
    if "resnet18" in cell.id:
        pytest.importorskip("torchvision")
    for scale in (cell, cell.quick()):
        assert scale.config(3).to_json() == scale.settings(scale.run(3))
        assert scale.differences(scale.settings(scale.run(3)), scale.run(3)) == []


@pytest.mark.parametrize("n", [3, 8, 9, 20, 21, 30])
def test_identification_is_the_papers_protocol(n):
    assert CELLS[f"identification/mpgnn/n{n}"].config(4) == TrainingConfig.identification(n, seed=4, data_seed=0)
    low, high = next(pair for pair in ((3, 8), (9, 20), (21, 30)) if pair[0] <= n <= pair[1])
    assert CELLS[f"identification/mlp/n{n}"].config(0).settings == {"n_min": low, "n_max": high}


def test_discrimination_is_the_papers_protocol_but_for_the_matching_network():
    assert CELLS["discrimination/rds/9-20"].config(2) == TrainingConfig("rds", n_objects=(9, 20), seed=2, data_seed=0)
    assert CELLS["discrimination/matching/3-8"].config(0) == TrainingConfig.plain("matching", data_seed=0)


def test_weights_are_those_of_the_papers_models():
    expected = {"identification/mpgnn/n5": 2_208, "discrimination/mpgnn/3-8": 4_366, "identification/mlp/n25": 138_502,
                "discrimination/conditioned_mpgnn/3-8": 4_686, "discrimination/mlp/9-20": 191_522}  # fmt: skip
    for name, n_weights in expected.items():
        config = CELLS[name].config(0)
        assert models.create(config.model, config.settings).n_weights == n_weights


def test_ablations_change_one_thing():
    def changed(name):
        usual, ours = settings_of(CELLS[f"discrimination/mpgnn/{name.split('/')[-1]}"], 0), settings_of(CELLS[name], 0)
        return {key: ours[key] for key in ours if ours[key] != usual[key]}

    assert changed("ablation/no_curriculum/3-8") == {"stages": [TURN] * len(STAGES)}
    assert changed("ablation/no_rotations/3-8") == {"stages": [0.0] * len(STAGES)}
    assert changed("ablation/n3_only/3-8") == {"n_objects": 3}
    assert changed("ablation/one_round/3-8") == {"settings": {"rounds": 1}}
    assert changed("ablation/width16/21-30") == {"settings": {"width": 16}}
    assert list(CELLS["ablation/n3_only/3-8"].tests)[-1] == "discrimination/n3/test"
    unrotated = named.find(list(CELLS["ablation/no_rotations/3-8"].tests)[-1])
    assert (unrotated.task.object_range, unrotated.task.fixed.rotation) == ((3, 8), 0)


def test_pictures_are_one_seed_on_few_samples_unless_asked_for():
    cell = CELLS["identification/resnet18_64px/n5"]
    said = cell.settings(cell.run(0))
    assert (cell.seeds, said["samples_per_stage"], said["settings"]) == ((0,), 2_000, {"pixels": 64})
    [whole] = select(["identification/resnet18/n5"])
    assert whole.long
    said = whole.settings(whole.run(4))
    assert (whole.seeds, said["samples_per_stage"], said["settings"]) == (TEN, 10_000, {})
    assert whole not in select(["identification", "*/n5"])


def test_tables_are_lists_of_runs():
    ids = {run for cell in SHORT for run in cell.runs}
    assert ids == {run for of_table in TABLES.values() for run in of_table}
    assert all(len(set(of_table)) == len(of_table) for of_table in TABLES.values())
    assert "identification/mpgnn/n30/seed9" in TABLES["table1"]
    maps = {run.rpartition("/")[0] for run in TABLES["figure2"]}
    assert maps == {cell.id for cell in SHORT if cell.heat_map}
    wanted = {"identification/matching/n5", "discrimination/mpgnn/3-8", "rules/truth/n5", "rules/truth/3-8"}
    assert wanted <= maps


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("identification/mpgnn/n3", ["identification/mpgnn/n3"]),  # and not n30
        ("identification/mpgnn/n3/", ["identification/mpgnn/n3"]),
        ("identification/mpgnn/n3/seed7", ["identification/mpgnn/n3"]),
        ("rules/truth", [f"rules/truth/{part}" for part in ("n3", "3-8", "9-20", "21-30", "n5")]),
        ("identification/*/n3", [f"identification/{model}/n3" for model in MODELS]),
        ("*/21-30", [cell.id for cell in SHORT if cell.id.endswith("/21-30")]),
    ],
)
def test_filters(pattern, expected):
    assert names(select([pattern])) == expected


def test_filters_add_up_and_tables_are_groups():
    assert names(select(["rules/spread/n3", "rules/truth/n3"])) == ["rules/spread/n3", "rules/truth/n3"]
    assert names(select(["table1"])) == [cell.id for cell in SHORT if cell.id.startswith("identification/")]
    assert select() == SHORT


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("recognition/mpgnn/n5", "accepted are identification, discrimination, ablation, rules"),
        ("identification/transformer/n5", "'transformer' is unknown: accepted after identification are mpgnn"),
        ("identification/mpgnn/n31", "'n31' is unknown: accepted after identification/mpgnn are n3, n4"),
        ("discrimination/mpgnn/3-9", "'3-9' is unknown: accepted after discrimination/mpgnn are 3-8, 9-20, 21-30"),
        ("discrimination/mpgnn/3-8/seed10", "accepted after discrimination/mpgnn/3-8 are seed0, seed1"),
        ("rules/truth/n5/seed0/more", "accepted after rules/truth/n5/seed0 are no further parts"),
        ("*/transformer/*", "'transformer' is unknown"),
        ("", "'' is unknown"),
    ],
)
def test_unknown_filters_say_what_is_accepted(pattern, message):
    with pytest.raises(ValueError, match="no run matches") as error:
        select([pattern])
    assert message in str(error.value)


def test_quick_cells_have_the_same_names_and_other_settings():
    for name, cell in runs.cells(quick=True).items():
        full = CELLS[name]
        assert cell.id == name
        assert set(cell.runs) <= set(full.runs)
        assert full.differences(cell.settings(cell.run(0)), cell.run(0))
        assert cell.differences(full.settings(full.run(0)), cell.run(0))


def test_settings_that_a_row_lacks_had_their_default():
    cell = CELLS["discrimination/mpgnn/3-8"]
    older = {key: value for key, value in cell.settings(cell.run(1)).items() if key != "negative"}
    assert cell.differences(older, cell.run(1)) == []
    assert cell.differences(older | {"batch_size": 64}, cell.run(1)) == ["batch_size is 64 there and 128 in the study"]
    assert cell.differences(older | {"data": "elsewhere"}, cell.run(1)) == []
    assert len(cell.differences(older, cell.run(2))) == 1


def test_rules_are_cells_of_one_run():
    rules = [cell for cell in CELLS.values() if isinstance(cell, RuleCell)]
    assert len(rules) == 4 * 4 + 1
    assert all(cell.seeds == (0,) and cell.samples == 20_000 for cell in rules)
