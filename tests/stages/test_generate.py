"""What becomes of a generation whose replies cannot be used."""

from pathlib import Path

import pytest
import yaml

from palimpsest.errors import InputError
from palimpsest.records import DOCUMENTS, document_row, read_rows, write_rows
from palimpsest.stages.files import DOCUMENTS_FILE
from tests.documents import make_document
from tests.editors.http_stub import Stub, completion
from tests.stages.project import run

SORRY = "I am sorry, I cannot help."


def project(url: str, **trajectory: object) -> None:
    """The project's params, with two documents and a server for the generator."""
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["generators"]["stub"] = {
        "editor": "openai-compatible", "model": "stub-2026", "base_urls": [url]
    }  # fmt: skip
    params["trajectory"] |= {"generators": ["stub"], **trajectory}
    Path("params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    rows = map(document_row, (make_document("d1", 10), make_document("d2", 11, "news")))
    write_rows(DOCUMENTS_FILE, DOCUMENTS, rows)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["trajectory"]["prompt_sets"] = str(Path(params["trajectory"]["prompt_sets"]).resolve())
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"on_rejection": "drop"}, "2 of 2 trajectories of stub were dropped.*revisions.csv"),
        ({"on_rejection": "later"}, "100% of stub's revisions had no reply.*revisions.csv"),
    ],
)
def test_a_generator_that_only_refuses_fails_the_stage(
    limits: dict[str, object], message: str
) -> None:
    with Stub(answer=lambda _: completion(SORRY)) as stub:
        project(stub.url, **limits)
        with pytest.raises(InputError, match=message):
            run("generate")


def test_within_the_limits_what_no_reply_revised_stays_human() -> None:
    with Stub(answer=lambda _: completion(SORRY)) as stub:
        project(stub.url, on_rejection="later", max_rejected=1.0)
        run("generate")
    rows = list(read_rows(Path("artifacts/texts/cumulative")))
    assert len(rows) == 18
    assert {label for row in rows for label in row["sentence_labels"]} == {0}
