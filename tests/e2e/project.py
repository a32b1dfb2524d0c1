"""A copy of the project as a user has it: a git repository with DVC, params, and nothing built."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[2]


class Project:
    """Commands run in the copy with this interpreter's tools and the copy's own code."""

    def __init__(self, folder: Path, **params: str) -> None:
        self.folder = folder
        tracked = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=HERE, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        for name in tracked:
            if (HERE / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(HERE / name, folder / name)
        text = (folder / "params.yaml").read_text()
        for old, new in params.items():
            assert f"{old}: " in text
            text = text.replace(f"{old}: ", f"{old}: {new} # ", 1)
        (folder / "params.yaml").write_text(text)
        (folder / "dvc.lock").unlink(missing_ok=True)
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
            self.run("git", *command)
        self.run("palimpsest", "store")

    @property
    def environment(self) -> dict[str, str]:
        own = {"DVC_ROOT", "DVC_STAGE", "DVC_EXP_NAME", "MLFLOW_TRACKING_URI", "PYTHONPATH"}
        kept = {name: value for name, value in os.environ.items() if name not in own}
        author = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "tester")
        mail = dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "tester@example.org")
        tools = str(Path(sys.executable).parent)
        return {
            **kept, **author, **mail, "PATH": os.pathsep.join([tools, kept.get("PATH", "")]),
            "PYTHONPATH": "src", "DVC_NO_ANALYTICS": "1",
        }  # fmt: skip

    def start(self, *command: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, *command: str, fails: bool = False) -> str:
        """The command's output; an exit code other than expected fails the test with it."""
        process = self.start(*command)
        output, _ = process.communicate()
        assert bool(process.returncode) == fails, f"{' '.join(command)}:\n{output}"
        return output

    def runs(self) -> list[tuple[str, str, str]]:
        """(name, stage, status) of every run in the store, oldest first."""
        with sqlite3.connect(self.folder / "mlflow.db") as store:
            return store.execute(
                "SELECT runs.name, tags.value, runs.status FROM runs JOIN tags "
                "ON tags.run_uuid = runs.run_uuid AND tags.key = 'palimpsest.stage' "
                "ORDER BY runs.start_time"
            ).fetchall()

    def stages_run(self, output: str) -> list[str]:
        return [
            line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")
        ]
