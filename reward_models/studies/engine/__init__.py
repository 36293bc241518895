"""The study engine: from ids over claims, work and rows to a report, the same for every study.

A study is a value, ``study.Study``, in a package of its own with three files, and whatever its tables need beside them.

``runs.py``: what is run, as data. A *unit* is what is claimed, killed and resumed; a *run* is a row of it, most often
the only one. An id says what is run, as ``identification/mpgnn/n5`` (unit) and ``identification/mpgnn/n5/seed3`` (run).

    @dataclass(frozen=True)
    class Throw(Unit):                          # ``id`` is its first field
        sides: int
        def settings(self, run: str) -> Json:   # all that decides the run's result, as JSON gives it back
            return {"sides": self.sides}

``runs`` (ids; by default the unit's own), ``needs`` (ids of units that are made first, or waited for) and ``long``
(left out unless a filter names it) are properties that a unit may override.

``work.py``: what is done. A row is a frozen dataclass of JSON values; its fields are its entries, in their order, and
its ``stamp`` stands as the stamp's entries in place of it. ``__post_init__`` may refuse values with a ValueError.

    @dataclass(frozen=True)
    class Thrown:
        id: str
        stamp: Stamp
        settings: Json
        mean: float | None = None
        error: str | None = None

    def work(unit: Throw, place: Place) -> list[Thrown]:
        return [Thrown(unit.id, place.stamp, unit.settings(unit.id), mean=...)]

    def failed(unit: Throw, run: str, stamp: Stamp, error: str) -> Thrown:
        return Thrown(run, stamp, unit.settings(run), error=error)

``work`` trains and measures, and is all that does. It resumes what a killed process left in ``place.folder``; that
folder is named by a hash of the settings and goes when the rows are written, or is named by the id and stays
(``keeps_work``: then ``place.product(need)`` is the whole folder of a unit that this one needs). ``place.shared(name)``
holds a common folder, ``place.attach(name, content)`` writes a file beside the rows, ``place.stamp`` goes into rows,
``place.began`` is the stamp of the process that began the folder. Raise whatever comes: an error is a row.

``tables.py``: ``report(results) -> Report`` from ``results.rows`` (by run id, in the order of the study) alone:
paragraphs, ``Table`` and ``Figure`` in the order in which they are shown. ``report.origin``, ``failures`` and
``missing`` write the parts that all reports have.

    STUDY = Study("throws", 1, Thrown, units, work, report, failed, line, Files("results/throws"))

and a line in ``registry.STUDIES``. The rest is here: claims and the end by a full disk (``claims``), rows on disk and
their refusal (``rows``), places (``sweep``), one unit from claim to row (``run``), several at a time (``launch``),
filters (``select``), reports (``report``), ``spatialsim study run|status|report|list NAME`` (``commands``). Recorded
rows that lack entries of today get them from ``Study.upgraded``; ``Study.differences`` says how a row differs.
"""
