import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from palimpsest.reports.catalogue import entries
from palimpsest.reports.formats import Table, escape, html, latex
from palimpsest.reports.runs import choose
from palimpsest.tracking import evaluations
from tests.reports.store import log

BENCHMARK = "opai-bench"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Table]]:
    """Every table of the report; one detector's name has what LaTeX must not read as its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DVC_ROOT", str(tmp_path_factory.mktemp("project")))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        for design in ("cumulative", "independent", "coverage", "operation"):
            log(BENCHMARK, "fast-detectgpt", "zero-shot", design)
            log(BENCHMARK, "genai-sentence", "trained", design, "word")
        log(BENCHMARK, "fast-detectgpt", "zero-shot", "cumulative", seed=1)
        log(BENCHMARK, "{100 %} #my_own & <~^> $\\1|", "zero-shot", "cumulative", "sentence")
        runs = choose(evaluations(BENCHMARK))
        made = [e.make(runs) for e in entries(BENCHMARK) if not e.number.startswith("Figure")]
        yield [part for parts in made for part in parts if isinstance(part, Table)]


def test_text_is_escaped_for_latex_and_html() -> None:
    assert escape("50 % of a_b & −1 ± 2") == r"50 \% of a\_b \& $-$1 $\pm$ 2"
    assert escape("“p” <0.001 – v1") == "``p'' $<$0.001 -- v1"
    table = Table("t", "c", ["<b>"], [["a & <i>"]], pd.DataFrame())
    assert ">a &amp; &lt;i&gt;</td>" in html(table)


def test_latex_of_every_table_is_plain_ascii_with_as_many_cells_in_a_row_as_columns(
    tables: list[Table],
) -> None:
    numbers = {table.name for table in tables}
    assert numbers >= {f"table-{i:02}" for i in range(1, 12)} | {"findings", "summary", "runs"}
    for table in tables:
        text = latex(table)
        assert text.isascii(), (table.name, set(re.findall(r"[^\x00-\x7f]", text)))
        assert not re.search(r"(?<!\\)[%#_~]", text), table.name
        for line in re.findall(r"^(?!\\multicolumn).* \\\\$", text, re.MULTILINE):
            assert len(re.findall(r"(?<!\\)&", line)) == len(table.header) - 1
        assert sum(width for _, width in table.groups) in (0, len(table.header))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX is installed")
def test_the_latex_of_every_table_compiles_and_none_runs_off_a_page(
    tables: list[Table], tmp_path: Path
) -> None:
    comparison = next(table for table in tables if table.name.startswith("comparisons-detectors"))
    assert comparison.groups
    assert comparison.notes
    of_any_length = [replace(comparison, rows=comparison.rows[:1] * n) for n in range(20, 46, 5)]
    pages = replace(comparison, rows=comparison.rows[:1] * 200)
    assert r"\begin{longtable}" in latex(pages)
    document = (
        r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}"
        + "\\clearpage\n".join(map(latex, [*tables, *of_any_length, pages]))  # few floats at once
        + r"\end{document}"
    )
    (tmp_path / "t.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    written = (tmp_path / "t.log").read_text(errors="replace")
    assert not re.search(r"Float too large|Overfull \\vbox", written)
