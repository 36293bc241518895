"""Agents that another version wrote: they load, with a warning that names both."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

from reward_models.agents import training
from reward_models.agents.configs import AgentConfig
from reward_models.agents.run import Run, VersionWarning
from reward_models.agents.training import load_agent, train

CONFIG = AgentConfig("small", env_kwargs={"n_objects": 3, "max_turn": 0}, horizon=10, learning_starts=50, net=(16,),
                     total_steps=240, checkpoint_every=60, batch_size=32, gradient_steps=1, episodes=2)  # fmt: skip
OURS, SB3 = version("spatialsim-env"), version("stable-baselines3")
MAJOR, _, REST = SB3.partition(".")
NEXT = f"{int(MAJOR) + 1}.{REST}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("versions") / "agent"
    train(CONFIG, "sparse", out, progress=False).close()
    return out


def say(folder, versions):
    """Have the record of a run say other versions."""
    record = json.loads((folder / "agent.json").read_text())
    record["versions"] |= {"spatialsim-env": OURS, "stable-baselines3": SB3, "torch": "1.0", **versions}
    (folder / "agent.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"spatialsim-env": "0.0.7"}, f"written with spatialsim-env 0.0.7 and is read with {OURS};"),
        ({"stable-baselines3": NEXT}, f"written with stable-baselines3 {NEXT} and is read with {SB3};"),
        (
            {"spatialsim-env": "9.1", "stable-baselines3": NEXT},
            f"spatialsim-env 9.1 and is read with {OURS}, with stable-baselines3 {NEXT} and is read with {SB3};",
        ),
    ],
)
def test_another_version_is_named(folder, versions, said):
    say(folder, versions)
    with pytest.warns(VersionWarning) as warned:
        load_agent(folder).close()
    assert len(warned) == 1
    assert said in str(warned[0].message)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("versions", [{}, {"stable-baselines3": f"{MAJOR}.999"}, {"python": "3.1"}])
def test_versions_that_make_no_difference_are_none(folder, versions):
    say(folder, versions)
    load_agent(folder).close()


def test_a_checkpoint_of_another_version_is_named_too(tmp_path, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(CONFIG, "sparse", tmp_path, progress=False)
    monkeypatch.undo()
    assert list(tmp_path.glob("checkpoint-*"))
    say(tmp_path, {"spatialsim-env": "0.0.7"})
    envs = training.make_envs(CONFIG)
    with pytest.warns(VersionWarning, match=r"spatialsim-env 0\.0\.7"):
        Run.begin(tmp_path, CONFIG, "sparse", resume=True).restore(envs)
    envs.close()
