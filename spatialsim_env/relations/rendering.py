"""Pictures of scenes by mujoco, without a screen: RGB, depth and masks.

One scene gives any number of pictures: colours, textures, floor, walls, lights and the things around it are an
``Appearance``, drawn from a random generator. A patch on an object marks its front, a cap of another shade its tip:
boxes would not tell otherwise where they face and point. The camera is that of ``views``. Walls between the observer
and the room are left out. Within one process and one version of mujoco and its OpenGL, equal input gives equal bits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from types import ModuleType, TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import views
from spatialsim_env.relations.geometry.settling import import_mujoco
from spatialsim_env.relations.scene import MOST_PARTS, ROOM, Floats, RoomError

BACKENDS = ("egl", "osmesa")
N_CONTEXT = 6  # things around the two objects, at most
N_TEXTURES = 6
N_LIGHTS = 3
DISTANCE = 0.25  # metres that context keeps from the objects
NEAR, FAR = 0.05, 60.0  # metres that are seen
BACKGROUND, SUBJECT_MASK, OBJECT_MASK = 0, 1, 2  # values of a mask

_FRONT_PART = (0, 0, 0, 1, 0, 2, 0)  # of each kind, the part whose front face bears the patch
_PATCH = 0.65  # size of the patch, of that face
_CAP = 0.95  # of the tip's
_RAISED = 1e-3  # metres that marks stand out
_MARKS = 2  # of each object: front and tip
_GEOMS = MOST_PARTS + _MARKS

_TEXTURES = ("flat", "flat", "checker", "gradient", "speckled", "rough")


class RenderingError(RuntimeError):
    """Rendering is not possible here; the message says which part is missing."""


@dataclass(frozen=True, eq=False)
class Appearance:
    """Everything in a picture besides the scene."""

    colors: NDArray[np.float64]  # (2, 3), of subject and object
    floor: NDArray[np.float64]  # (3,)
    walls: NDArray[np.float64]  # (3,)
    textures: NDArray[np.int64]  # (4,): of subject, object, floor and walls
    lights: NDArray[np.float64]  # (N_LIGHTS, 6): place and colour; black ones are off
    ambient: float
    context: NDArray[np.float64]  # (n, 19), objects as in a scene
    context_colors: NDArray[np.float64]  # (n, 3)


@dataclass(frozen=True, eq=False)
class Picture:
    """Of height h and width w, rows from the top."""

    rgb: NDArray[np.uint8]  # (h, w, 3)
    depth: NDArray[np.float32]  # (h, w), metres along the view; FAR where nothing is
    mask: NDArray[np.uint8]  # (h, w): BACKGROUND, SUBJECT_MASK or OBJECT_MASK


def draw_appearance(scenes: Floats, rng: np.random.Generator, most_context: int = N_CONTEXT) -> Appearance:
    """A random appearance for scenes (k, 2, 19) that share it, such as a pair: context stands clear of all of them.

    Seen from some side it may still stand before them: see ``cleared``.
    """
    hue = (rng.random() + np.array([0, rng.uniform(0.25, 0.75)])) % 1
    colors = np.array([_color(h, rng.uniform(0.45, 0.95), rng.uniform(0.55, 1.0)) for h in hue])
    floor = _color(rng.random(), rng.uniform(0, 0.35), rng.uniform(0.35, 0.85))
    walls = _color(rng.random(), rng.uniform(0, 0.3), rng.uniform(0.5, 0.95))
    lights = np.zeros((N_LIGHTS, 6))
    for row in range(int(rng.integers(1, N_LIGHTS + 1))):
        lights[row, :3] = rng.uniform((-2.5, -2.5, 2.8), (2.5, 2.5, 3.9))
        lights[row, 3:] = rng.uniform(0.25, 0.6) * (1 - rng.uniform(0, 0.25, 3))
    context = _context(scenes, rng, most_context)
    return Appearance(
        colors, floor, walls, rng.integers(0, N_TEXTURES, 4), lights, float(rng.uniform(0.2, 0.4)), context,
        rng.uniform(0.2, 0.9, (len(context), 3)),
    )  # fmt: skip


def _context(scenes: Floats, rng: np.random.Generator, most: int) -> NDArray[np.float64]:
    """Up to ``most`` things on the floor beside all objects of the scenes."""
    n = int(rng.integers(0, most + 1))
    half = rng.uniform((0.08, 0.08, 0.08), (0.35, 0.35, 0.6), (n, 3))
    place = rng.uniform(-np.array(ROOM[:2]) + 0.4, np.array(ROOM[:2]) - 0.4, (n, 2))
    center = np.column_stack([place, half[:, 2]])
    things = scene.objects(
        center, scene.yaw_rotation(rng.uniform(0, 360, n)), half, rng.integers(0, len(scene.KINDS), n)
    )
    radius = np.hypot(half[:, 0], half[:, 1])
    clear = np.ones(n, bool)
    for thing in scenes.reshape(-1, scene.N_FEATURES):
        corners = scene.corners(thing)[:, :2] - thing[scene.FLOOR]
        apart = np.hypot(*(place - thing[scene.FLOOR]).T)
        clear &= apart > np.hypot(*corners.T).max() + radius + DISTANCE
    for row in range(n):
        before = np.flatnonzero(clear[:row])
        clear[row] &= bool((np.hypot(*(place[before] - place[row]).T) > radius[before] + radius[row]).all())
    return things[clear]


def _color(hue: float, saturation: float, value: float) -> NDArray[np.float64]:
    """RGB of hue, saturation and value, each 0 to 1."""
    shifted = (np.array([5.0, 3.0, 1.0]) + hue * 6) % 6
    return np.asarray(value - value * saturation * np.clip(np.minimum(shifted, 4 - shifted), 0, 1))


class Renderer:
    """Makes pictures of one size. Use it as a context manager, or ``close`` it.

    Args:
        size: width and height in pixels, as 16 to 9 up to rounding.
        samples: of each pixel, for smooth edges; 0 is faster.
        shadows: pixels of the shadow map's side; 0 is faster and without shadows.

    Raises:
        ImportError: mujoco is missing; the message says how to get it.
        RenderingError: neither EGL nor OSMesa works here.
        RoomError: a size of another shape.
    """

    def __init__(self, size: tuple[int, int] = (320, 180), *, samples: int = 4, shadows: int = 1024) -> None:
        width, height = size
        if min(size) < 1 or abs(width * views.HEIGHT - height * views.WIDTH) > views.WIDTH:
            raise RoomError(f"a picture of {width} x {height} pixels; accepted are 16 to 9, such as 320 x 180")
        self._mujoco = mujoco = import_mujoco()
        self._gl = _opengl(width, height)
        self._gl.make_current()
        self._model = _model(mujoco, size, samples, shadows)
        self._data = mujoco.MjData(self._model)
        mujoco.mj_forward(self._model, self._data)
        self._scene = mujoco.MjvScene(self._model, maxgeom=400)
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._camera.type, self._camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
        self._context: Any = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        if hasattr(mujoco, "mjtDepthMap"):
            self._context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self.size = size

    def __enter__(self) -> Renderer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the graphics memory back; the renderer is of no use afterwards."""
        if self._context is not None:
            self._gl.make_current()
            self._context.free()
            self._gl.free()
            self._context = None

    def picture(self, one: Floats, observer: Floats, appearance: Appearance) -> Picture:
        """The picture of one scene (2, 19) for an observer (9,).

        Raises:
            RoomError: an array that is no scene.
        """
        scene.validate(one[None], observer[None])
        if self._context is None:
            raise RenderingError("the renderer is closed; make another")
        self._gl.make_current()
        self._pose(one, observer, appearance)
        mujoco, flags = self._mujoco, self._mujoco.mjtRndFlag
        self._scene.flags[flags.mjRND_SEGMENT] = self._scene.flags[flags.mjRND_IDCOLOR] = False
        rgb, depth = self._read()
        mujoco.mjr_render(self._rect, self._scene, self._context)
        mujoco.mjr_readPixels(rgb, depth, self._rect, self._context)
        self._scene.flags[flags.mjRND_SEGMENT] = self._scene.flags[flags.mjRND_IDCOLOR] = True
        codes, near = self._read()
        mujoco.mjr_render(self._rect, self._scene, self._context)
        mujoco.mjr_readPixels(codes, near, self._rect, self._context)
        return Picture(rgb[::-1].copy(), _metres(near)[::-1].copy(), self._mask(codes)[::-1].copy())

    def _read(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        width, height = self.size
        return np.empty((height, width, 3), np.uint8), np.empty((height, width), np.float32)

    def _mask(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Masks (h, w) of segment numbers written as colours (h, w, 3)."""
        numbers = codes.astype(np.int64) @ np.array([1, 1 << 8, 1 << 16])
        values = np.zeros(self._scene.ngeom + 1, np.uint8)
        for shown in self._scene.geoms[: self._scene.ngeom]:
            part = shown.objid - _FIRST_PART
            if shown.segid >= 0 and 0 <= part < 2 * _GEOMS:
                values[shown.segid + 1] = SUBJECT_MASK + part // _GEOMS
        return np.asarray(values[np.minimum(numbers, self._scene.ngeom)])

    def _pose(self, one: Floats, observer: Floats, appearance: Appearance) -> None:
        """Put everything where it belongs in mujoco's own arrays, past its kinematics."""
        model, data = self._model, self._data
        model.geom_rgba[:, 3] = 0
        eye = observer[scene.EYE]
        facing = np.array([ROOM[0] + eye[0], ROOM[0] - eye[0], ROOM[1] + eye[1], ROOM[1] - eye[1]]) > 0
        model.geom_rgba[0] = [*appearance.floor, 1]
        for wall in range(4):
            model.geom_rgba[1 + wall] = [*appearance.walls * (0.94 if wall < 2 else 1.0), float(facing[wall])]
        model.geom_matid[:_FIRST_PART] = [appearance.textures[2], *[N_TEXTURES + appearance.textures[3]] * 4]
        for which in range(2):
            first = _FIRST_PART + which * _GEOMS
            self._place_parts(first, one[which], appearance.colors[which])
            self._mark(first + MOST_PARTS, one[which], appearance.colors[which])
            model.geom_matid[first : first + MOST_PARTS] = N_TEXTURES + appearance.textures[which]
        for row, thing in enumerate(appearance.context):
            self._place_parts(_FIRST_CONTEXT + row * MOST_PARTS, thing, appearance.context_colors[row])
        data.cam_xpos[0] = eye
        data.cam_xmat[0] = scene.eye_rotation(observer).reshape(-1)
        data.light_xpos[:], model.light_diffuse[:] = appearance.lights[:, :3], appearance.lights[:, 3:]
        data.light_xdir[:] = _unit(np.array([0.0, 0.0, 0.5]) - appearance.lights[:, :3])
        model.light_active[:] = appearance.lights[:, 3:].any(axis=1)
        model.vis.headlight.ambient[:] = appearance.ambient
        everything = self._mujoco.mjtCatBit.mjCAT_ALL
        self._mujoco.mjv_updateScene(model, data, self._option, None, self._camera, everything, self._scene)

    def _place_parts(self, first: int, thing: Floats, color: Floats) -> None:
        """Put the parts of an object (19,) in the geoms from ``first`` on."""
        kind = int(scene.kind(thing))
        for part, (place, size) in enumerate(scene.PARTS[kind, : scene.N_PARTS[kind]]):
            self._box(first + part, thing, place * thing[scene.HALF], size * thing[scene.HALF], color)

    def _mark(self, first: int, thing: Floats, color: Floats) -> None:
        """The patch on the front and the cap of the tip, thin plates of two other shades."""
        kind, half = int(scene.kind(thing)), thing[scene.HALF]
        place, size = scene.PARTS[kind, _FRONT_PART[kind]] * half
        bright = color.mean() > 0.5
        for mark, (axis, share) in enumerate(((0, _PATCH), (scene.KINDS[kind].tip, _CAP))):
            if axis is None:
                continue
            normal = np.eye(3)[axis]
            plate = np.where(normal > 0, _RAISED, share * size)
            shade = color * 0.25 if bright ^ (mark == 1) else 1 - (1 - color) * 0.25
            self._box(first + mark, thing, place + normal * size, plate, shade)

    def _box(self, geom: int, thing: Floats, place: Floats, size: Floats, color: Floats) -> None:
        """A box of an object, from its centre, along its axes."""
        turn = scene.rotation(thing)
        self._data.geom_xpos[geom] = thing[scene.CENTER] + turn @ place
        self._data.geom_xmat[geom] = turn.reshape(-1)
        self._model.geom_size[geom] = size
        self._model.geom_rgba[geom] = [*color, 1]


def clear_context(appearance: Appearance, scenes: Floats, observer: Floats) -> Appearance:
    """The appearance without the context that would hide a part of the scenes (k, 2, 19) from the observer (9,).

    Scenes that are to be compared, such as a pair, keep the same context if they are given together.
    """
    direction = -scene.eye_rotation(observer)[:, 2]
    ahead = (scene.corners(scenes) - observer[scene.EYE]) @ direction
    outlines = views.boxes(scenes, np.broadcast_to(observer, (len(scenes), scene.N_OBSERVER)))
    low, high = outlines[..., :2].min(axis=(0, 1)), (outlines[..., :2] + outlines[..., 2:]).max(axis=(0, 1))
    kept = []
    for thing in appearance.context:
        corners = scene.corners(thing)
        away = (corners - observer[scene.EYE]) @ direction
        if away.min() < views.NEAREST:
            kept.append(away.max() < 0)  # wholly behind the observer, or too near
            continue
        seen = views.pixels(corners, observer)
        apart = (seen.max(axis=0) < low).any() or (seen.min(axis=0) > high).any()
        kept.append(apart or away.min() > ahead.max())
    rows = np.array(kept, bool)
    return replace(appearance, context=appearance.context[rows], context_colors=appearance.context_colors[rows])


def _metres(buffer: NDArray[np.float32]) -> NDArray[np.float32]:
    """Depth along the view of mujoco's buffer, in which 1 is near and 0 is far."""
    near, far = np.float64(NEAR), np.float64(FAR)
    return (near * far / (near + buffer.astype(np.float64) * (far - near))).astype(np.float32)


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9))


_FIRST_PART = 5  # the floor and four walls come before
_FIRST_CONTEXT = _FIRST_PART + 2 * _GEOMS


def _model(mujoco: ModuleType, size: tuple[int, int], samples: int, shadows: int) -> Any:
    """A world with a place for everything that a picture can show."""
    spec = mujoco.MjSpec()
    box, plane = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_PLANE
    _add_materials(mujoco, spec)
    world = spec.worldbody
    x, y, z = ROOM
    world.add_geom(type=plane, size=[x, y, 1], rgba=[1, 1, 1, 1])
    thin = 0.02
    for sign in (-1, 1):
        world.add_geom(type=box, pos=[sign * (x + thin), 0, z / 2], size=[thin, y, z / 2])
    for sign in (-1, 1):
        world.add_geom(type=box, pos=[0, sign * (y + thin), z / 2], size=[x, thin, z / 2])
    for _ in range(2 * _GEOMS + N_CONTEXT * MOST_PARTS):
        world.add_geom(type=box, size=[1, 1, 1], rgba=[1, 1, 1, 0])
    for _ in range(N_LIGHTS):
        world.add_light(pos=[0, 0, 3], dir=[0, 0, -1], cutoff=75, exponent=2, castshadow=shadows > 0)
    world.add_camera(fovy=views.FIELD_OF_VIEW)
    spec.visual.global_.offwidth, spec.visual.global_.offheight = size
    spec.visual.quality.offsamples, spec.visual.quality.shadowsize = samples, shadows
    spec.stat.extent, spec.visual.map.znear, spec.visual.map.zfar = 1.0, NEAR, FAR
    spec.visual.headlight.diffuse[:], spec.visual.headlight.specular[:] = 0.15, 0.0
    return spec.compile()


def _add_materials(mujoco: ModuleType, spec: Any) -> None:
    """Textures in greys, which colours multiply: N_TEXTURES for planes, then as many for boxes."""
    kinds, marks = mujoco.mjtBuiltin, mujoco.mjtMark
    builtin = {"flat": kinds.mjBUILTIN_FLAT, "checker": kinds.mjBUILTIN_CHECKER, "gradient": kinds.mjBUILTIN_GRADIENT}
    for shape in (mujoco.mjtTexture.mjTEXTURE_2D, mujoco.mjtTexture.mjTEXTURE_CUBE):
        flat = shape == mujoco.mjtTexture.mjTEXTURE_2D
        for index, name in enumerate(_TEXTURES):
            texture = spec.add_texture(
                name=f"{'plane' if flat else 'box'}{index}",
                type=shape,
                builtin=builtin.get(name, kinds.mjBUILTIN_FLAT),
                rgb1=[1, 1, 1] if index else [0.9, 0.9, 0.9],
                rgb2=[0.72, 0.72, 0.72],
                mark=marks.mjMARK_RANDOM if name in ("speckled", "rough") else marks.mjMARK_NONE,
                markrgb=[0.6, 0.6, 0.6],
                random=0.02 if name == "speckled" else 0.3,
                width=128,
                height=128 if flat else 768,
            )
            material = spec.add_material(name=f"{'plane' if flat else 'box'}{index}", specular=0.2, shininess=0.3)
            material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = texture.name
            if flat:
                material.texrepeat[:] = [6, 6]
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=builtin["gradient"], width=64, height=384,
        rgb1=[0.85, 0.88, 0.92], rgb2=[0.55, 0.58, 0.62],
    )  # fmt: skip


def _opengl(width: int, height: int) -> Any:
    """An OpenGL context without a screen: by EGL, else by OSMesa; MUJOCO_GL chooses one of them."""
    asked = os.environ.get("MUJOCO_GL", "").lower()
    problems = []
    for name in (asked,) if asked in BACKENDS else BACKENDS:
        try:
            if name == "egl":
                from mujoco.egl import GLContext
            else:
                from mujoco.osmesa import GLContext
            return GLContext(width, height)
        except Exception as error:  # the libraries report what is missing in many ways
            problems.append(f"{name}: {type(error).__name__}: {error}")
    raise RenderingError(
        "no OpenGL without a screen; install libEGL (package libegl1) or OSMesa (package libosmesa6), MUJOCO_GL=egl or "
        f"osmesa chooses one. Tried {'; '.join(problems)}"
    )
