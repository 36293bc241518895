"""A study of three units: coins that are tossed with two seeds, and a unit that compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reward_models.provenance import Stamp
from reward_models.studies.engine import report as writer
from reward_models.studies.engine.run import Place
from reward_models.studies.engine.study import Figure, Files, Json, Report, Results, Study, Unit
from reward_models.tables import Table
from spatialsim_env.streams import stream


@dataclass(frozen=True)
class Coin(Unit):
    """Tossed with several seeds."""

    heads: float = 0.5
    tosses: int = 1_000

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(f"{self.id}/seed{seed}" for seed in range(2))

    def settings(self, run: str) -> Json:
        return {"heads": self.heads, "tosses": self.tosses, "seed": int(run[-1])}


@dataclass(frozen=True)
class Comparison(Unit):
    """The difference between coins."""

    coins: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        return self.coins

    def settings(self, run: str) -> Json:
        return {"coins": list(self.coins)}


@dataclass(frozen=True)
class Row:
    """A share of heads, or a difference of two."""

    id: str
    stamp: Stamp
    settings: Json
    share: float | None = None
    log: list[Any] | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if self.share is not None and not -1 <= self.share <= 1:
            raise ValueError(f"share is {self.share}; accepted is -1 to 1")


def units(quick: bool) -> dict[str, Unit]:
    tosses = 10 if quick else 1_000
    coins = [Coin("coins/fair", 0.5, tosses), Coin("coins/bent", 0.7, tosses)]
    every: list[Unit] = [*coins, Comparison("compared/all", tuple(coin.id for coin in coins))]
    return {unit.id: unit for unit in every}


def toss(coin: Coin, seed: int) -> float:
    return float((stream(seed, "toy").random(coin.tosses) < coin.heads).mean())


def work(unit: Unit, place: Place) -> list[Row]:
    if isinstance(unit, Coin):
        with place.shared("mint") as mint:
            mint.mkdir(parents=True, exist_ok=True)
        return [Row(run, place.stamp, unit.settings(run), toss(unit, seed), []) for seed, run in enumerate(unit.runs)]
    fair, bent = (place.needed(name)[0].share for name in unit.needs)
    place.attach("compared.txt", f"{fair} {bent}\n")
    return [Row(unit.id, place.stamp, unit.settings(unit.id), bent - fair)]


def failed(unit: Unit, run: str, stamp: Stamp, error: str) -> Row:
    return Row(run, stamp, unit.settings(run), error=error)


def line(rows: Sequence[Row]) -> str:
    return f"share {sum(row.share or 0.0 for row in rows) / len(rows):.3f}"


def report(results: Results[Row]) -> Report:
    lines = tuple((run, f"{row.share:.3f}") for run, row in results.done.items())
    table = Table("shares", "Shares", ("run", "share"), lines)
    pictures = (Figure("one", "A picture", b"png" if results.done else None), Figure("none", "No picture", None))
    parts = (writer.origin(results.rows.values()), table, *pictures, writer.failures(results), writer.missing(results))
    return Report("Coins", parts, (Table("every", "Every run", ("run",), lines),), page=True)


STUDY: Study[Unit, Row] = Study(
    "toy", 1, Row, units, work, report, failed, line, Files("results/toy"), "Coins", options={"mint": "of coins"}
)  # fmt: skip
KEEPING: Study[Unit, Row] = Study(
    "keeping", 1, Row, units, work, report, failed, line, Files("results/keeping"), keeps_work=True
)  # fmt: skip
