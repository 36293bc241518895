"""What the package promises to whoever installs it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text()
CORE = sorted((ROOT / "spatialsim_env").rglob("*.py"))
LEARNED = sorted((ROOT / "reward_models").rglob("*.py"))


def imported_names(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).split(".")[0])
    return names


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_the_world_never_imports_the_networks(path):
    assert not imported_names(path) & {"torch", "reward_models", "stable_baselines3"}


def run(code: str) -> str:
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_needs_neither_torch_nor_pygame():
    """Gymnasium#1512."""
    blocked = "import sys; sys.modules.update(dict.fromkeys(['torch', 'pygame', 'stable_baselines3', 'matplotlib']));"
    code = "import gymnasium, spatialsim_env; gymnasium.make('SpatialSim-Discrim-v0').reset(); print('made')"
    assert run(blocked + code) == "made"


def test_a_learned_reward_without_torch_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import gymnasium\n"
        "try: gymnasium.make('spatialsim_env:SpatialSim-Discrim-v0', reward='runs/none')\n"
        "except ImportError as error: print(error)"
    )
    assert 'pip install "spatialsim-env[learn]"' in run(code)


def test_a_misspelt_reward_without_torch_is_unknown():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import gymnasium\n"
        "try: gymnasium.make('spatialsim_env:SpatialSim-Discrim-v0', reward='spare')\n"
        "except ValueError as error: print(error)"
    )
    assert "'spare' is unknown; accepted are sparse, dense" in run(code)


def test_load_without_torch_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import reward_models\n"
        "try: reward_models.load\n"
        "except ImportError as error: print(error)"
    )
    assert 'pip install "spatialsim-env[learn]"' in run(code)


def test_importing_twice_is_quiet():
    code = "import importlib, spatialsim_env; importlib.reload(spatialsim_env); print('quiet')"
    assert run(code) == "quiet"


def test_modules_are_attributes():
    code = (
        "import numpy, spatialsim_env\n"
        "samples = spatialsim_env.tasks.Discrimination((3, 8)).sample(10, numpy.random.default_rng(0))\n"
        "print(spatialsim_env.goals.achieved(samples.reference, samples.target).shape)\n"
        "try: spatialsim_env.physics\n"
        "except AttributeError as error: print(error)"
    )
    assert run(code).splitlines() == ["(10,)", "module 'spatialsim_env' has no attribute 'physics'"]


def test_dir_lists_the_public_names_alone():
    import reward_models
    import spatialsim_env

    assert dir(reward_models) == ["LearnedModel", "LearnedReward", "audit", "load"]
    modules = {
        "datasets", "dynamics", "expert", "goals", "hard_suite", "negatives", "pictures", "play", "relations",
        "rewards", "rollouts", "scene", "shards", "similarities", "tasks", "testing", "text_format",
    }  # fmt: skip
    assert set(dir(spatialsim_env)) == {"ENV_IDS", "HORIZON", "RELATION_IDS", "__version__", *modules}


@pytest.mark.parametrize("package", ["spatialsim_env", "reward_models"])
def test_every_name_that_dir_lists_is_there(package):
    code = f"import {package} as package; print(*(getattr(package, name) is None for name in dir(package)))"
    assert set(run(code).split()) == {"False"}


def test_gym_finds_the_ids_by_module():
    code = "import gymnasium; print(gymnasium.make('spatialsim_env:SpatialSim-Ident-v0').spec.id)"
    assert run(code) == "SpatialSim-Ident-v0"


def test_requirements_have_lower_bounds_and_only_a_major_version_as_upper():
    """imitation#734."""
    block = re.search(r"^dependencies = \[(.*?)^\]", PYPROJECT, re.DOTALL | re.MULTILINE)
    optional = PYPROJECT.split("[project.optional-dependencies]")[1].split("\n[")[0]
    texts = [text for text in re.findall(r'"([^"]+)"', block[1] + optional) if not text.startswith("spatialsim-env")]
    assert len(texts) > 10
    for requirement in map(Requirement, texts):
        operators = {specifier.operator: specifier.version for specifier in requirement.specifier}
        assert ">=" in operators, requirement
        assert set(operators) <= {">=", "<"}, requirement
        assert operators.get("<", "1").isdigit(), requirement
    upper = {r.name: str(r.specifier) for r in map(Requirement, texts)}
    for name, major in (("gymnasium", "<2"), ("numpy", "<3"), ("torch", "<3"), ("stable-baselines3", "<3")):
        assert major in upper[name]
    assert all(Requirement(f"numpy{upper['numpy']}").specifier.contains(version) for version in ("1.26.0", "2.0.0"))


def requirements() -> list[Requirement]:
    """All that pyproject.toml asks for, extras included, apart from the package itself."""
    block = PYPROJECT.split("dependencies = [", 1)[1].split("\n[project.scripts]")[0]
    return [Requirement(text) for text in re.findall(r'"([^"]+)"', block) if not text.startswith("spatialsim-env")]


def test_constraints_pin_every_requirement_on_every_python():
    pins = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    needed = {requirement.name: requirement.specifier for requirement in requirements()}
    assert len(needed) > 15
    for python in ("3.10", "3.11", "3.13"):
        applying = [pin for pin in pins if pin.marker is None or pin.marker.evaluate({"python_version": python})]
        pinned = {pin.name: next(iter(pin.specifier)).version for pin in applying}
        assert len(pinned) == len(applying)
        assert needed.keys() - pinned.keys() == set()
        assert all(specifier.contains(pinned[name]) for name, specifier in needed.items())
