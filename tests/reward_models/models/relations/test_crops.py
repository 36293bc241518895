"""What is cut from pictures and maps: closed forms on maps that are linear, where means are values at the middle."""

from __future__ import annotations

import math

import pytest
import torch

from reward_models.models.relations import drnet, ppr_fcn, vtranse
from reward_models.models.relations.pictures import crop, union

BOXES = torch.tensor([[0.25, 0.75, 0.2, 0.6], [0.3, 0.4, 0.5, 0.9]], dtype=torch.float64)  # top, bottom, left, right


def ramps(side: int = 40) -> torch.Tensor:
    """(2, 2, side, side): each pixel's height and place across in shares of the side, for two samples."""
    middle = (torch.arange(side, dtype=torch.float64) + 0.5) / side
    down, across = torch.meshgrid(middle, middle, indexing="ij")
    return torch.stack([down, across]).expand(2, 2, side, side).contiguous()


@pytest.mark.parametrize("side", [1, 3, 7])
def test_crops_are_where_the_box_is(side):
    steps = (torch.arange(side, dtype=torch.float64) + 0.5) / side
    cut = crop(ramps(), BOXES, side)
    assert cut.shape == (2, 2, side, side)
    for row, (top, bottom, left, right) in enumerate(BOXES):
        down, across = top + steps * (bottom - top), left + steps * (right - left)
        assert torch.allclose(cut[row, 0], down[:, None].expand(side, side), atol=1e-12)
        assert torch.allclose(cut[row, 1], across.expand(side, side), atol=1e-12)


def test_union():
    assert torch.equal(union(BOXES[None]), torch.tensor([[0.25, 0.75, 0.2, 0.9]], dtype=torch.float64))


def test_masks_are_exact_shares():
    """The masks' means are the boxes' shares of their union's area; a box that is the union fills its mask."""
    masks = drnet.masks(BOXES[None])
    area = 0.5 * 0.7
    assert masks.shape == (1, 2, 32, 32)
    assert masks.amin() >= 0
    assert masks.amax() <= 1
    assert torch.allclose(masks.mean((2, 3))[0] * area, torch.tensor([0.5 * 0.4, 0.1 * 0.4]).double(), atol=1e-12)
    alike = drnet.masks(BOXES[:1, None].expand(1, 2, 4))
    assert torch.allclose(alike, torch.ones_like(alike), atol=1e-12)


def test_cells_of_a_box():
    cells = ppr_fcn.cells(torch.tensor([[0.0, 0.3, 0.3, 0.9]], dtype=torch.float64))
    assert torch.allclose(cells[0, 0], torch.tensor([0.0, 0.1, 0.3, 0.5]).double())
    assert torch.allclose(cells[0, 5], torch.tensor([0.1, 0.2, 0.7, 0.9]).double())  # second row, third column
    assert torch.allclose(cells[0, 8], torch.tensor([0.2, 0.3, 0.7, 0.9]).double())


def test_pooling_is_of_the_cells_own_channels():
    """A map with the number of the cell in its channels gives each cell its number; an empty cell gives 0."""
    numbers = torch.arange(9, dtype=torch.float64).repeat_interleave(9)[None, :, None, None].expand(1, 81, 7, 7) + 1
    cells = ppr_fcn.cells(BOXES[:1])
    expected = (torch.arange(9, dtype=torch.float64) + 1)[None, :, None].expand(1, 9, 9)
    assert torch.allclose(ppr_fcn.pool_cells(numbers, cells), expected)
    upper = torch.tensor([[[0.0, 0.25 + 0.5 / 3, 0.0, 1.0]]], dtype=torch.float64)  # the first row of cells
    shared = ppr_fcn.pool_cells(numbers, ppr_fcn.intersection(cells, upper))
    assert torch.allclose(shared[:, :3], expected[:, :3])
    assert torch.equal(shared[:, 3:], torch.zeros(1, 6, 9, dtype=torch.float64))


def test_a_box_as_the_other_sees_it():
    box = torch.tensor([[0.5, 0.7, 0.1, 0.5]], dtype=torch.float64)
    assert torch.equal(vtranse.relative(box, box), torch.zeros(1, 4, dtype=torch.float64))
    other = torch.tensor([[0.4, 0.5, 0.3, 0.5]], dtype=torch.float64)  # half as high, half as wide
    expected = torch.tensor([[1.0, -1.0, math.log(2), math.log(2)]], dtype=torch.float64)
    assert torch.allclose(vtranse.relative(box, other), expected, atol=2e-4)
