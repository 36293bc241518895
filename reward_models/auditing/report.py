"""The report of an audit: audit.json, report.md and pictures/.

    format, version     of the report and of the package
    model               {"name", "kind", "n_weights", "sha256"}; null for an object from outside
    settings            of the audit (``ArrangementAudit``, ``RelationAudit``)
    failures            {check: message}; where there is one, the lists below are empty: no number would mean anything
    not_run             {part: reason}
    rows                one for each optimiser, what it changes and number of objects: ``measures.measured``, and
                        {"optimiser", "moves", "n_objects", "starts", "budget"}; of agents also "training". Of relations
                        one for each optimiser and predicate, and one for each optimiser under "all"
    gallery             the worst false achievements: where found, score, distance, scene and goal; of relations the
                        rule's margin, scene and observer

and of arrangements

    fixed               accuracy and calibration on the benchmark's pairs, for each number of objects
    heat_maps           Figure 2 of the paper, for each number of objects

Shares are {"hits", "total", "interval"}, the interval of 95 % after Wilson.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from reward_models import shares
from reward_models.auditing import measures, pictures
from reward_models.auditing.targets import targets
from reward_models.tables import Table, png
from spatialsim_env.checks import read_object, require_entries
from spatialsim_env.core.screen import import_pygame, save_frames
from spatialsim_env.files import replace_file, write_whole

COLORS = 64  # of a small picture
JSON, MARKDOWN, PICTURES = "audit.json", "report.md", "pictures"
_ENTRIES = {
    "format": int, "model": dict, "settings": dict, "failures": dict, "not_run": dict, "rows": list, "gallery": list,
}  # fmt: skip
_TITLES = {
    "gallery": "Worst false achievements, beside their goals",
    "paths": "Score along the way against the true distance",
    "reliability": "Reliability: is the model's probability the share that is truly achieved?",
    "heat_maps": "Heat maps",
}

Report = dict[str, Any]


def require_packages(drawn: bool) -> None:
    """Fail before the work, not after it; ``drawn`` says whether there will be pictures."""
    for package in ("cmaes", *("matplotlib",) * drawn):
        if find_spec(package) is None:
            raise ImportError(f'the audit needs {package}: pip install "spatialsim-env[audit]"')
    if drawn:
        import_pygame()


def read(path: str | os.PathLike[str]) -> Report:
    """A report, from its folder or its JSON file.

    Raises:
        ValueError: it is not one.
        OSError: it cannot be read.
    """
    file = Path(path) / JSON if Path(path).is_dir() else Path(path)
    found = read_object(file)
    require_entries(file, found, _ENTRIES, ValueError)
    return found


def write(found: Report, out: str | os.PathLike[str]) -> Path:
    """Write a report into a folder, pictures first; returns the path of its Markdown.

    Raises:
        ImportError: matplotlib or pygame-ce is not installed.
        OSError: a file cannot be written.
    """
    folder = Path(out)
    drawn = _draw(found, folder / PICTURES) if "heat_maps" in found else []
    write_whole(folder / JSON, json.dumps(found, indent=1) + "\n")
    write_whole(folder / MARKDOWN, markdown(found, drawn))
    return folder / MARKDOWN


def write_small(found: Report, out: str | os.PathLike[str]) -> list[Path]:
    """Draw the worst false claim of each number of objects, and how far the model's confidence is right.

    Returns:
        The files, in a folder from which earlier ones are gone.
    """
    from PIL import Image

    folder = Path(out)
    for name in ("worst", "reliability"):
        (folder / f"{name}.png").unlink(missing_ok=True)
    if not found["rows"]:
        return []
    drawn = {"reliability": Image.open(BytesIO(png(pictures.reliability(found)))).convert("RGB")}
    first = {claim["n_objects"]: claim for claim in reversed(found["gallery"])}
    worst = pictures.gallery(found | {"gallery": list(first.values())[::-1]})
    if worst is not None:
        drawn["worst"] = Image.fromarray(worst)
    for name, picture in drawn.items():
        with replace_file(folder / f"{name}.png") as temporary:
            picture.quantize(COLORS).save(temporary, "PNG", optimize=True)
    return [folder / f"{name}.png" for name in drawn]


def _draw(found: Report, folder: Path) -> list[str]:
    """Draw what there is to see; returns the names of the pictures."""
    for name in _TITLES:
        (folder / f"{name}.png").unlink(missing_ok=True)
    if not found["rows"]:
        return []
    worst = pictures.gallery(found)
    if worst is not None:
        save_frames([worst], folder / "gallery.png")
    for name in ("paths", "reliability", "heat_maps"):
        write_whole(folder / f"{name}.png", png(getattr(pictures, name)(found)))
    return [name for name in _TITLES if name != "gallery" or worst is not None]


def markdown(found: Report, drawn: Sequence[str] = ()) -> str:
    """The report as text, with the pictures that were drawn."""
    parts = _opening(found)
    if found["failures"]:
        return "\n\n".join(parts) + "\n"
    of_relations = "predicates" in found["settings"]
    note = _RELATION_NOTE if of_relations else _NOTE
    parts += ["## Precision under optimisation", note, table(found).markdown()]
    if found["not_run"]:
        parts.append(_format_items(found["not_run"]))
    if not of_relations:
        parts += ["## Targets", "\n".join(f"- {target}" for target in targets(found)) or "None for these objects."]
        parts += ["## Fixed data", "Pairs of the benchmark, by the truth.", _fixed(found).markdown()]
    for name in drawn:
        parts += [f"## {_TITLES[name]}", f"![{_TITLES[name]}]({PICTURES}/{name}.png)"]
    return "\n\n".join(parts) + "\n"


_NOTE = (
    "From starts that are truly not achieved, each optimiser stops at the first scene that the model calls achieved. "
    "Precision: the share of these claims that is true. Reach: the share of the starts that end in a true claim. "
    "Distance: the truth's, up to 1 is achieved. Intervals of 95 %."
)
_RELATION_NOTE = (
    "From starts that the rules call not achieved, each optimiser moves the subject and stops at the first scene in "
    "which the model says that the predicate holds. Precision: the share of these claims that is true by the rules, "
    "which are no human judgements. Reach: the share of the starts that end in a true claim. Margin: the rule's, of "
    "the claims; above 0 it holds. Intervals of 95 %."
)


def _opening(found: Report) -> list[str]:
    """Describe the audited judge, and its failures where it was refused."""
    model = found["model"]
    weights = "" if model["n_weights"] is None else f", {model['n_weights']:,} weights"
    parts = [f"# Audit of {model['name']}", f"{model['kind']}{weights}; seed {found['settings']['seed']}."]
    if found["failures"]:
        parts += [
            "**Not audited: its answers are not verdicts, so no number is given.**",
            _format_items(found["failures"]),
        ]
    return parts


def _format_items(entries: dict[str, str]) -> str:
    """Names and texts, as a list."""
    return "\n".join(f"- {name}: {text}" for name, text in entries.items())


def table(found: Report) -> Table:
    """The rows of a report."""
    of_relations = "predicates" in found["settings"]
    first = ("optimiser", "predicate" if of_relations else "objects", "starts")
    shared = ("says achieved", "truly achieved", "**precision**", "reach")
    last = ("median margin" if of_relations else "median distance", "evaluations to a claim")
    error = () if of_relations else ("calibration error",)
    lines = [
        (
            *_labels(row),
            str(row["starts"]),
            shares.format_share(row["claimed"]),
            shares.format_share(row["achieved"]),
            f"**{shares.format_share(row['precision'])}**",
            shares.format_share(row["reach"]),
            _number(row["median_margin_of_claims" if of_relations else "median_distance"]),
            _number(row["median_evaluations_to_claim"]),
            *(() if of_relations else (_number(row["calibration"]["ece"]),)),
        )
        for row in found["rows"]
    ]
    return Table("optimisers", "Precision under optimisation", (*first, *shared, *last, *error), tuple(lines))


def _labels(row: dict[str, Any]) -> tuple[str, str]:
    of = measures.label(row).rpartition(",")[0]
    return (of, row["predicate"]) if "predicate" in row else (of, str(row["n_objects"]))


def _fixed(found: Report) -> Table:
    lines = [
        (str(part["n_objects"]), shares.format_share(part["accuracy"]), _number(part["calibration"]["ece"]))
        for part in found["fixed"]
    ]
    return Table("fixed", "Fixed data", ("objects", "accuracy", "calibration error"), tuple(lines))


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.4g}"
