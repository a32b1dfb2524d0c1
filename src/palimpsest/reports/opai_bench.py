"""OpAI-Bench's tables and figures by their numbers, and ours beside them.

To add one, add an entry. What makes it is a function of the runs that returns tables or figures, or
raises MissingError with the reason.
"""

from palimpsest.reports import figures, tables
from palimpsest.reports.catalogue import Entry
from palimpsest.reports.comparisons import comparisons
from palimpsest.reports.figures import Grid
from palimpsest.reports.findings import findings
from palimpsest.reports.tables import ByVersion, Statistics

_FINE = ("word", "character")

ENTRIES = (
    Entry("Detectability", "from which version on is AI text detected", figures.detectability),
    Entry("Summary", "AUROC and F1-AI by version", tables.summary),
    Entry("Findings", "the paper's claims beside our estimates", findings),
    Entry("Table 1", "related benchmarks", tables.related_benchmarks),
    Entry("Table 2", "statistics of the texts", Statistics(2, 0)),
    Entry("Table 3", "the schedule", tables.schedule),
    Entry("Table 4", "detectors at their own levels", ByVersion(4, ("accuracy", "f1_ai"))),
    Entry("Table 5", "statistics of the texts by generator", Statistics(5, 1)),
    Entry("Table 6", "samples in each split", Statistics(6, 2)),
    Entry("Table 7", "training settings", tables.training),
    Entry("Table 8", "sentences", ByVersion(8, ("accuracy", "f1_ai"), ("sentence",))),
    Entry("Table 9", "sentences", ByVersion(9, ("macro_f1", "fnr"), ("sentence",))),
    Entry("Table 10", "words and spans", ByVersion(10, ("accuracy", "f1_ai"), _FINE)),
    Entry("Table 11", "words and spans", ByVersion(11, ("macro_f1", "fnr"), _FINE)),
    *(Entry(f"Figure {n}", Grid(n).title, Grid(n)) for n in range(2, 22)),
    Entry("Comparisons", "which differences are more than chance", comparisons),
    Entry("Runs", "what is behind the report", tables.listing),
)
