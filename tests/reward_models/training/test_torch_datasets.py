"""Sets for other people's training loops."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.torch
import torch
from torch.utils.data import DataLoader

from reward_models.training import torch_datasets
from reward_models.training.torch_datasets import from_set, load, write
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.datasets.named import DataSetError


@pytest.mark.parametrize(
    "name", ["identification/n5/test", "discrimination/3-8/test", "discrimination-distractors/3-8/test"]
)
def test_items_are_those_of_the_set(name, tmp_path):
    samples = named.sample(name, seed=1, size=300)
    named.generate(name, tmp_path, seed=1, size=300)
    written = write(samples, tmp_path / "set.safetensors")
    for found in (from_set(samples), load(tmp_path / name), load(written)):
        assert len(found) == 300
        for k in (0, 17, 299):
            target, reference, label = found[k]
            assert np.array_equal(target.numpy(), samples.target[k])
            assert np.array_equal(reference.numpy(), samples.reference[k])
            assert label.item() == samples.label[k]
            assert (target.dtype, label.dtype) == (torch.float32, torch.int64)
    sizes = [len(label) for _, _, label in DataLoader(load(written), batch_size=128)]
    assert sizes == [128, 128, 44]


def test_what_is_no_set(tmp_path):
    with pytest.raises(DataSetError, match="does not exist; spatialsim generate"):
        load(tmp_path / "none")
    path = tmp_path / "set.safetensors"
    with pytest.raises(DataSetError, match="does not exist; spatialsim export"):
        load(path)
    samples = named.sample("identification/n3/test", seed=0, size=5)
    whole = write(samples, path).read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(DataSetError, match="is cut or no safetensors file"):
        load(path)
    safetensors.torch.save_file({"weights": torch.zeros(2)}, path)
    with pytest.raises(DataSetError, match=r"holds weights \(2,\); accepted are target, reference, label"):
        load(path)
    safetensors.torch.save_file({part: torch.zeros(k + 1) for k, part in enumerate(torch_datasets.PARTS)}, path)
    with pytest.raises(DataSetError, match="of one length"):
        load(path)
    with pytest.raises(ValueError, match=r"ends in '.pt'; accepted is .safetensors"):
        write(samples, tmp_path / "set.pt")
