"""Picture files of sets of scenes, and a pair side by side. Needs mujoco and pillow.

A sample's files lie in one folder: its RGB picture under the name in the split file, and beside it ``... depth.png``
(16 bits, millimetres along the view; 0 where it is further than 65 m) and ``... mask.png`` (0 background, 1 subject,
2 object). All views of a pair, and both members, share one appearance, which is drawn from the seed and the pair's
number; of the things around the scene a view shows those that hide no part of either member.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.files import replace_file
from spatialsim_env.relations import rendering, vocabulary
from spatialsim_env.relations.geometry.solid_files import ROLES
from spatialsim_env.relations.pairs import categories, scene_sets
from spatialsim_env.relations.pairs.pairs import AXES, N_SHIFTS
from spatialsim_env.relations.pairs.scene_sets import SceneSet
from spatialsim_env.relations.rel3d.records import RelationDataError
from spatialsim_env.relations.rendering import Appearance, Picture, Renderer

MILLIMETRES = 1000
CHUNK = 32  # pairs that a process draws at a time
CAPTION = 28  # pixels of height


def appearance(pairs: SceneSet, row: int, view: int, seed: int, number: int | None = None) -> Appearance:
    """Draw the appearance of a pair from one of its views; ``number`` is its number in the set, by default its row."""
    rng = np.random.default_rng([seed, 3, row if number is None else number])
    look = rendering.draw_appearance(pairs.scenes[row], rng)
    return rendering.clear_context(look, pairs.scenes[row], pairs.observers[row, view])


def render(pairs: SceneSet, folder: str | os.PathLike[str], size: tuple[int, int], seed: int, jobs: int = 1) -> None:
    """Write the pictures of all samples into a folder; files that are there are left as they are.

    Raises:
        ImportError: mujoco or pillow is missing.
        rendering.RenderingError: there is no OpenGL without a screen.
        RoomError: a size that is not 16 to 9.
        RelationDataError: the folder holds a picture of another size.
    """
    numbers = np.arange(len(pairs))
    chunks = [numbers[start : start + CHUNK] for start in range(0, len(pairs), CHUNK)]
    tasks = [(pairs[chunk], chunk, Path(folder), size, seed) for chunk in chunks]
    if jobs == 1 or len(tasks) < 2:
        with Renderer(size) as renderer:
            for task in tasks:
                _render(renderer, *task)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for future in [pool.submit(_render_apart, *task) for task in tasks]:
            future.result()


def _render_apart(pairs: SceneSet, numbers: NDArray[np.int64], folder: Path, size: tuple[int, int], seed: int) -> None:
    with Renderer(size) as renderer:
        _render(renderer, pairs, numbers, folder, size, seed)


def _render(
    renderer: Renderer, pairs: SceneSet, numbers: NDArray[np.int64], folder: Path, size: tuple[int, int], seed: int
) -> None:
    names = scene_sets.picture_names(pairs, numbers)
    for name, row, view, member in zip(names, *scene_sets.sample_rows(pairs), strict=True):
        if (folder / name).is_file():
            _check_size(folder / name, size)
            continue
        look = appearance(pairs, row, view, seed, int(numbers[row]))
        write(renderer.picture(pairs.scenes[row, member], pairs.observers[row, view], look), folder / name)


def _check_size(path: Path, size: tuple[int, int]) -> None:
    with _pillow().open(path) as there:
        if there.size != size:
            raise RelationDataError(f"{path} has {there.size} pixels; accepted are {size}, or remove the folder")


def write(picture: Picture, path: str | os.PathLike[str]) -> None:
    """Write the three files of a picture; ``path`` is that of the RGB one and ends in ``rgb.png``. It comes last."""
    path = Path(path)
    if not path.name.endswith("rgb.png"):
        raise ValueError(f"path is {path}; accepted is a name that ends in rgb.png")
    depth = np.round(picture.depth * MILLIMETRES)
    depth = np.where(depth < 1 << 16, depth, 0).astype(np.uint16)
    for ending, pixels in (("depth.png", depth), ("mask.png", picture.mask), ("rgb.png", picture.rgb)):
        _save(pixels, path.with_name(path.name[: -len("rgb.png")] + ending))


def _save(pixels: NDArray[Any], path: Path) -> None:
    image = _pillow()
    with replace_file(path) as temporary:
        image.fromarray(pixels).save(temporary, format="PNG")


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('pillow is missing; it comes with: pip install "spatialsim-env[render]"') from error
    return Image


def caption(pairs: SceneSet, row: int, member: int) -> str:
    """Words for one member of a pair."""
    triple = (
        f"{categories.NAMES[pairs.subject[row]]} {vocabulary.PREDICATES[pairs.predicate[row]]} "
        f"{categories.NAMES[pairs.object[row]]}"
    )
    if member == 0:
        return f"{triple}: holds"
    axis, amount = int(pairs.axis[row]), float(pairs.amount[row])
    mover = ROLES[pairs.mover[row]]
    how = f"{amount:+.2f} m along {AXES[axis]}" if axis < N_SHIFTS else f"{np.degrees(amount):+.0f} deg {AXES[axis]}"
    return f"{triple}: fails ({mover} {how})"


def draw_pairs(
    pairs: SceneSet,
    rows: list[int],
    path: str | os.PathLike[str],
    *,
    seed: int = 0,
    view: int = 0,
    size: tuple[int, int] = (480, 270),
) -> None:
    """Write a PNG of the members of pairs side by side, with captions, one pair under the other.

    Raises:
        ImportError: mujoco or pillow is missing.
        rendering.RenderingError: there is no OpenGL without a screen.
    """
    image = _pillow()
    from PIL import ImageDraw, ImageFont

    width, height = size
    sheet = image.new("RGB", (2 * width + 2, len(rows) * (height + CAPTION)), (255, 255, 255))
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(CAPTION // 2)
    with Renderer(size, samples=8, shadows=4096) as renderer:
        for place, row in enumerate(rows):
            look = appearance(pairs, row, view, seed)
            for member in range(2):
                picture = renderer.picture(pairs.scenes[row, member], pairs.observers[row, view], look)
                corner = (member * (width + 2), place * (height + CAPTION))
                sheet.paste(image.fromarray(picture.rgb), corner)
                pen.text((corner[0] + 6, corner[1] + height + 5), caption(pairs, row, member), (20, 20, 20), font)
    with replace_file(path) as temporary:
        sheet.save(temporary, format="PNG")
