import errno
import logging
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from palimpsest.cli import main, stage_function
from palimpsest.records import TEXTS, write_rows
from palimpsest.stages import STAGES
from tests.reports.synthetic import texts


def test_help_answers_at_once_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from palimpsest.cli import _parser; _parser().format_help(); "
        "sys.exit(bool({'torch', 'mlflow', 'pandas', 'transformers'} & set(sys.modules)))"
    )
    begin = time.monotonic()
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert time.monotonic() - begin < 5


def test_help_of_a_command_names_defaults_and_an_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["review", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "how many revisions (default: 50)" in shown
    assert "of the choice (default: 0)" in shown
    assert "example: palimpsest review --sample 100 palimpsest review --read" in shown
    assert "None" not in shown


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_has_a_function_of_its_name(name: str) -> None:
    assert stage_function(name).__name__ == name


def test_a_mistake_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.ERROR):
        assert main(["corpus"]) == 2
    (record,) = caplog.records
    assert "params.yaml does not exist" in record.message
    assert "\n" not in record.message


def test_a_full_disk_is_one_line_that_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("palimpsest.stages.split.split", full)
    with caplog.at_level(logging.ERROR):
        assert main(["split"]) == 2
    (record,) = caplog.records
    assert "No space left on device: free some space" in record.message


def test_a_plan_before_there_are_documents_names_a_command_that_asks_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "params.yaml").write_text(Path("params.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    with caplog.at_level(logging.ERROR):
        assert main(["generate", "--plan"]) == 2
    assert "run `dvc repro corpus`" in caplog.records[0].message


def test_view_without_an_id_names_the_first_trajectories_and_counts_all(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("artifacts/texts/cumulative/texts.parquet"), TEXTS, texts("cumulative", 8))
    with caplog.at_level(logging.INFO):
        assert main(["view"]) == 0
    names = capsys.readouterr().out.splitlines()
    assert len(names) == len(set(names)) == 20
    assert names[0] == next(texts("cumulative"))["trajectory_id"]
    assert "24 trajectories in all" in caplog.text


def test_a_reader_who_takes_only_the_first_lines_is_no_error() -> None:
    command = [sys.executable, "-m", "palimpsest", "params"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_plan_says_where_a_generator_has_no_price(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = pd.DataFrame({"generator": ["free", "paid"], "cost_left": [None, 1234.5]})
    for shown, cells in ((plans, ["no price", "$1,234.50"]), (plans[:1], ["no price"])):
        monkeypatch.setattr("palimpsest.stages.plan.plan", lambda _, given=shown: given.copy())
        assert main(["generate", "--plan"]) == 0
        lines = capsys.readouterr().out.splitlines()[1:]
        assert [line.split(maxsplit=1)[1] for line in lines] == cells
