import io
import re
from dataclasses import replace

import pytest
from matplotlib.image import imread

from palimpsest.detectors.registry import REGISTRY
from palimpsest.reports.figures import COLOURS, Grid, detectability, looks
from palimpsest.reports.reference import printed
from palimpsest.reports.runs import choose
from palimpsest.reports.tables import MissingError
from tests.reports.synthetic import evaluation


def test_every_figure_of_the_paper_has_a_description() -> None:
    assert printed("opai_figures")["figure"].tolist() == [str(n) for n in range(2, 22)]
    titles = [Grid(n).title for n in range(2, 22)]
    assert (
        titles[0] == "Accuracy at document level by version, zero-shot detectors, design cumulative"
    )


def test_a_figure_has_a_row_for_each_generator_and_a_column_for_each_domain() -> None:
    (figure,) = Grid(2)(choose([evaluation("r1")]))
    assert set(figure.data["row"]) == {"g1", "g2", "h, held out"}
    assert set(figure.data["column"]) == {"essays", "reports", "news", "abstracts"}
    assert set(figure.data["metric"]) == {"accuracy"}
    assert set(figure.data["level"]) == {"document"}
    assert set(figure.data["run_id"]) == {"r1"}


@pytest.mark.parametrize(
    ("number", "design", "rows"),
    [
        (14, "coverage", {"compress", "expand", "paraphrase"}),
        (18, "operation", {"25 %", "50 %", "75 %"}),
        (21, "independent", {"Accuracy", "F1-AI"}),
    ],
)
def test_the_other_designs_have_their_own_rows(number: int, design: str, rows: set[str]) -> None:
    runs = choose([evaluation("r1"), evaluation("r2", design=design)])
    (figure,) = Grid(number)(runs)
    assert set(figure.data["row"]) == rows
    assert set(figure.data["generator"]) == {"mean"}
    assert set(figure.data["run_id"]) == {"r2"}
    if design == "operation":
        assert set(figure.data["operation"]) == {"compress", "expand", "paraphrase"}


def test_a_figure_shows_the_regimes_of_the_papers_and_names_who_is_missing() -> None:
    runs = choose([evaluation("r1"), evaluation("r2", "genai-sentence", "trained")])
    (figure,) = Grid(9)(runs)
    assert set(figure.data["detector"]) == {"genai-sentence"}
    assert re.search(r"AdaLoc \(FT\).* \(not implemented yet\)", figure.notes[0])
    assert "GenAI-Sentence (FT)" not in figure.notes[0]


def test_a_figure_that_no_run_fills_says_why() -> None:
    with pytest.raises(MissingError, match="no finished run of the design coverage"):
        Grid(12)(choose([evaluation("r1")]))
    with pytest.raises(MissingError, match="llm-as-detector or trained"):
        Grid(3)(choose([evaluation("r1")]))


def test_a_detector_looks_the_same_whoever_else_is_there() -> None:
    alone = looks(choose([evaluation("r1", "radar")]))
    runs = choose([evaluation(f"r{i}", name) for i, name in enumerate(["mine", "radar", "adaloc"])])
    together = looks(runs)
    assert alone["radar", "cumulative"] == together["radar", "cumulative"]
    assert {look.colour for look in together.values()} <= set(COLOURS)


def test_configurations_of_one_detector_differ_in_their_markers_fill_alone() -> None:
    runs = [evaluation("r1", "radar", dtype="a"), evaluation("r2", "radar", dtype="b")]
    first, second = looks(choose(runs)).values()
    assert first.fill != second.fill
    assert replace(first, fill="") == replace(second, fill="")


def test_no_two_known_detectors_look_the_same() -> None:
    known = {*REGISTRY, *printed("detectors")["detector"]}
    found = looks(choose([evaluation(name, name) for name in known])).values()
    assert len({(look.colour, look.dash) for look in found}) == len(known)
    assert len({(look.colour, look.marker) for look in found}) == len(known)


def test_a_figure_is_drawn_in_its_detectors_colours() -> None:
    (figure,) = detectability(choose([evaluation("r1", "radar")]))
    picture = (imread(io.BytesIO(figure.png))[..., :3] * 255).round().astype(int)
    look = looks(choose([evaluation("r1", "radar")]))["radar", "cumulative"]
    colour = [int(look.colour[i : i + 2], 16) for i in (1, 3, 5)]
    assert (abs(picture - colour).max(axis=-1) < 3).sum() > 500
    assert figure.pdf.startswith(b"%PDF")


def test_the_same_runs_give_the_same_bytes() -> None:
    first, second = (Grid(2)(choose([evaluation("r1")]))[0] for _ in range(2))
    assert (first.png, first.pdf) == (second.png, second.pdf)
