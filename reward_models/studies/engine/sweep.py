"""Settings of a sweep over a study."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Generic

from reward_models.provenance import Stamp, check_device
from reward_models.studies.engine import claims, rows
from reward_models.studies.engine.study import Json, R, Study, U, Unit, other_settings
from spatialsim_env.checks import read_object
from spatialsim_env.files import write_whole

CLAIMS = ".claims"  # in the folder of results
BEGUN = "begun.json"  # in a work folder: what was begun there, and by which code
QUICK = "runs/{}-quick"  # folder of the small study
_PLACES = ("results", "work", "data")


@dataclass(frozen=True)
class Sweep(Generic[U, R]):
    """Settings of a sweep over a study; paths become absolute, for workers that start in another folder."""

    study: Study[U, R]
    results: Path = Path()  # of rows, and of claims; by default the study's, or one in runs for the small study
    work: Path = Path()  # of what is not finished; by default in runs
    quick: bool = False  # the small study, for tests
    device: str = "cpu"
    data: Path | None = None  # what is read in place of what would be generated
    retry: bool = False  # run again what failed
    keep: bool = False  # copy the work folder of each unit that ends well to WORK/kept/ID
    options: Mapping[str, str] = field(default_factory=dict)  # of the study

    def __post_init__(self) -> None:
        small = Path(QUICK.format(self.study.name))
        results = small / "results" if self.quick else Path(self.study.files.results)
        work = small / "work" if self.quick else Path("runs") / self.study.name
        for name, default in zip(_PLACES, (results, work, None), strict=True):
            place = default if getattr(self, name) in (None, Path()) else Path(getattr(self, name))
            object.__setattr__(self, name, place and place.resolve())
        if unknown := [name for name in self.options if name not in self.study.options]:
            known = ", ".join(self.study.options) or "none"
            raise ValueError(f"option {unknown[0]!r} is unknown to the study {self.study.name}; accepted are {known}")

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}  # without the cached units

    @cached_property
    def units(self) -> Mapping[str, U]:
        """All units by id."""
        return self.study.units(self.quick)

    @property
    def stamp(self) -> Stamp:
        """Stamp of the code and the machine as they are now."""
        return self.study.stamp(self.device)

    def folder(self, unit: Unit) -> Path:
        """The work folder of a unit; another one for other settings, data, results or another device, unless kept."""
        if self.study.keeps_work:
            return self.work / unit.id
        places = [str(self.results), str(self.data), self.device, *map(list, sorted(self.options.items()))]
        text = json.dumps([*places, *(unit.settings(run) for run in unit.runs)], sort_keys=True)
        return self.work / f"v{self.study.version}" / unit.id / f"{zlib.crc32(text.encode()):08x}"

    def lock(self, name: str) -> Path:
        """The file whose lock is the claim on a unit, common to all who write to the same results."""
        return self.results / CLAIMS / f"{name}.lock"

    def claim(self, name: str, patience: float = 0.0) -> AbstractContextManager[Any]:
        """Hold the claim on a unit; raises ``filelock.Timeout`` if another process has it for ``patience`` seconds."""
        return claims.claim(self.lock(name), patience)

    def rows(self, unit: U) -> list[R] | None:
        """The rows of a unit, None if there are none yet; raises ``rows.RowError``."""
        return rows.of_unit(self.study, self.results, unit)

    def check(self, units: Sequence[U]) -> None:
        """Refuse what would fail in every unit, in these and in those they build on, before the first one.

        Raises:
            ValueError: the device is unknown or not there; a work folder holds another run; what the study refuses.
            rows.RowError: there are rows of other runs, or damaged ones.
        """
        check_device(self.device)
        left, seen = list(units), set()
        while left:
            unit = left.pop()
            if unit.id not in seen:
                seen.add(unit.id)
                left += [self.units[name] for name in unit.needs]
                self.rows(unit)
                self.check_folder(unit)
        if self.study.check is not None:
            self.study.check(units, self)

    def check_folder(self, unit: Unit) -> Json | None:
        """Read the settings of a run that was started in the work folder of a unit, None where there is none.

        Raises:
            ValueError: another run was; the message says how they differ.
        """
        file = self.folder(unit) / BEGUN
        if not file.exists():
            return None
        begun = read_object(file)
        for run in unit.runs:
            if wrong := other_settings(begun["settings"].get(run, {}), unit.settings(run)):
                raise ValueError(
                    f"{file.parent} holds another run: {'; '.join(wrong)}; remove it, or give another folder of work"
                )
        return begun

    def begin(self, unit: Unit) -> Path:
        """The work folder of a unit, made its own."""
        folder = self.folder(unit)
        if self.check_folder(unit) is None:
            settings = {run: unit.settings(run) for run in unit.runs}
            begun = {"settings": settings, "stamp": asdict(self.stamp)}
            write_whole(folder / BEGUN, json.dumps(begun, indent=1) + "\n")
        return folder
