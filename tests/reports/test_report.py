import json
import re
from pathlib import Path

import pytest

from palimpsest.errors import InputError
from palimpsest.reports.catalogue import entries
from palimpsest.reports.report import differences, page, write_report
from palimpsest.reports.runs import choose
from palimpsest.tracking import evaluations
from tests.reports.store import log
from tests.reports.synthetic import evaluation

BENCHMARK = "opai-bench"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DVC_ROOT", str(folder))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        log(BENCHMARK, "fast-detectgpt", "zero-shot", "cumulative")
        log(BENCHMARK, "genai-sentence", "trained", "cumulative", "word")
        paths = write_report(choose(evaluations(BENCHMARK)), folder / "reports", BENCHMARK)
    assert all(path.is_file() for path in paths)
    return folder / "reports"


def test_the_papers_tables_and_figures_are_all_entries() -> None:
    numbers = [entry.number for entry in entries(BENCHMARK)]
    assert [n for n in numbers if n.startswith("Table")] == [f"Table {i}" for i in range(1, 12)]
    assert [n for n in numbers if n.startswith("Figure")] == [f"Figure {i}" for i in range(2, 22)]


def test_every_entry_is_on_the_page_or_listed_as_missing_with_the_reason(written: Path) -> None:
    page = (written / "index.html").read_text()
    for entry in entries(BENCHMARK):
        assert f'id="{entry.slug}"' in page or f"<li>{entry.number}: " in page
    assert "design coverage: <b>no finished run of the design coverage</b>" in page


def test_the_page_needs_no_network_and_all_its_links_lead_somewhere(written: Path) -> None:
    page = (written / "index.html").read_text()
    assert not re.search(r'(?:src|href)="(?!#|data:)|url\(|@import', page)
    targets = set(re.findall(r'href="#([^"]+)"', page))
    ids = re.findall(r'id="([^"]+)"', page)
    assert targets <= set(ids)
    assert len(ids) == len(set(ids))


def test_each_table_is_written_in_three_formats_and_each_figure_in_two(written: Path) -> None:
    assert {p.suffix for p in (written / "tables").glob("table-08.*")} == {".md", ".tex", ".csv"}
    assert {p.suffix for p in (written / "figures").glob("figure-02.*")} >= {".png", ".pdf"}
    assert "](figures/figure-02.png)" in (written / "index.md").read_text()


def test_findings_are_written_where_one_looks_for_them(written: Path) -> None:
    found = json.loads((written / "findings.json").read_text())
    assert len(found["claims"]) == 5
    assert {row["claim"] for row in found["findings"]} == {
        "Dip at v4", "Accuracy falls, F1-AI rises",
    }  # fmt: skip
    assert "| Dip at v4 | fast-detectgpt |" in (written / "findings.md").read_text()


def test_files_of_an_older_report_go_when_nothing_fills_them(tmp_path: Path) -> None:
    runs = choose([evaluation("r1", design="independent")])
    old = tmp_path / "tables" / "table-08.md"
    mine = tmp_path / "tables" / "mine.md"
    old.parent.mkdir()
    old.touch()
    mine.touch()
    with pytest.raises(InputError, match="Table 8: no finished run of the design cumulative"):
        write_report(runs, tmp_path, BENCHMARK, only=["Table 8"])
    assert not old.exists()
    assert mine.exists()


def test_single_entries_can_be_asked_for(tmp_path: Path) -> None:
    paths = write_report(choose([evaluation("r1")]), tmp_path, BENCHMARK, only=["Table 1"])
    assert {path.name for path in paths} == {"table-01.md", "table-01.tex", "table-01.csv"}
    with pytest.raises(InputError, match="no Table 12 in the report"):
        write_report(choose([evaluation("r1")]), tmp_path, BENCHMARK, only=["Table 12"])


def test_what_a_run_is_called_is_no_markup() -> None:
    runs = choose([evaluation("old", "<i>mine</i>", texts="old"), evaluation("r1")])
    text = page([], runs, BENCHMARK)
    assert "<i>mine" not in text
    assert "&lt;i&gt;mine" in text


def test_what_differs_from_the_paper_is_said() -> None:
    facts = differences(choose([evaluation("r1", profile="demo")]))
    assert facts[0].startswith("This is a demo")
    assert facts[1].startswith("Texts: revised by g1, g2, h with the prompts few-shot@abc;")
    assert facts[2].startswith("Size: 10,800 test samples in a run;")
