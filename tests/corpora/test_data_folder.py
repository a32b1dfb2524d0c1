import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from palimpsest.corpora import data_folder
from palimpsest.corpora.data_folder import dvc_md5, fill
from palimpsest.errors import InputError

TEXTS = {"essays.jsonl": '{"id": "1", "text": "One."}\n', "README.md": "# Texts\n"}


def write_texts(folder: Path) -> dict[str, int]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in TEXTS.items():
        (folder / name).write_text(content)
    return {"essays": 1}


def write_pointer(root: Path, md5: str) -> Path:
    pointer = root / "data.dvc"
    pointer.write_text(yaml.safe_dump({"outs": [{"md5": md5, "path": "data/texts"}]}))
    return pointer


@pytest.fixture
def small_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the demo be two small files, and DVC be out of reach; the demo's md5."""

    def refuse(command: str, pointer: Path) -> None:
        raise AssertionError(f"dvc {command} was called")

    write_texts(tmp_path / "model")
    md5 = dvc_md5(tmp_path / "model")
    monkeypatch.setattr(data_folder, "write_demo", write_texts)
    monkeypatch.setattr(data_folder, "DEMO_MD5", md5)
    monkeypatch.setattr(data_folder, "_dvc", refuse)
    return md5


def put_in_cache(root: Path, folder: Path) -> None:
    cache = root / ".dvc" / "cache" / "files" / "md5"
    listing = []
    for file in folder.iterdir():
        md5 = hashlib.md5(file.read_bytes()).hexdigest()
        (cache / md5[:2]).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, cache / md5[:2] / md5[2:])
        listing.append({"md5": md5, "relpath": file.name})
    md5 = dvc_md5(folder)
    (cache / md5[:2]).mkdir(parents=True, exist_ok=True)
    (cache / md5[:2] / md5[2:]).write_text(json.dumps(listing))


def test_a_folder_that_is_in_place_costs_no_call_of_dvc(tmp_path: Path, small_demo: str) -> None:
    write_texts(tmp_path / "data" / "texts")
    put_in_cache(tmp_path, tmp_path / "data" / "texts")
    fill(tmp_path / "data" / "texts", write_pointer(tmp_path, small_demo))


def test_a_folder_with_other_content_stays_as_it_is(tmp_path: Path, small_demo: str) -> None:
    folder = tmp_path / "data" / "texts"
    write_texts(folder)
    (folder / "essays.jsonl").write_text("mine")
    with pytest.raises(InputError, match=r"stays as it is: `dvc add .*` keeps it"):
        fill(folder, write_pointer(tmp_path, small_demo))
    assert (folder / "essays.jsonl").read_text() == "mine"


def test_the_demo_never_stands_in_for_other_texts(tmp_path: Path, small_demo: str) -> None:
    with pytest.raises(InputError, match=r"names other texts than the demo: .*dvc pull"):
        fill(tmp_path / "data" / "texts", write_pointer(tmp_path, "0" * 32 + ".dir"))
    assert not (tmp_path / "data").exists()


def test_a_demo_that_comes_out_differently_is_not_used(
    tmp_path: Path, small_demo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TEXTS, "essays.jsonl", "changed")
    with pytest.raises(InputError, match="the demo came out as"):
        fill(tmp_path / "data" / "texts", write_pointer(tmp_path, small_demo))
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize("content", ["", "outs:\n- path: data/texts\n", "outs: []\n"])
def test_a_pointer_that_names_nothing_is_an_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "data.dvc").write_text(content)
    with pytest.raises(InputError, match=r"names no folder with its md5: `git checkout"):
        fill(tmp_path / "data" / "texts", tmp_path / "data.dvc")
    with pytest.raises(InputError, match=r"none.dvc does not exist"):
        fill(tmp_path / "data" / "texts", tmp_path / "none.dvc")


def dvc(root: Path, *command: str) -> str:
    call = [sys.executable, "-m", "dvc", *command]
    return subprocess.run(call, cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git and DVC project whose data.dvc names the small demo; the texts lie beside it."""
    monkeypatch.setenv("DVC_NO_ANALYTICS", "true")
    monkeypatch.delenv("DVC_ROOT", raising=False)
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    (root / ".gitignore").write_text("/data/\n")
    dvc(root, "init", "--quiet")
    monkeypatch.setattr(data_folder, "write_demo", write_texts)
    return root


def test_dvc_agrees_on_md5_cache_and_status(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, pointer = project / "data" / "texts", project / "data.dvc"
    # DVC names the content once, as a maintainer has it done.
    write_texts(folder)
    pointer.write_text("outs:\n- path: data/texts\n")
    dvc(project, "commit", "--force", "--quiet", "data.dvc")
    named = pointer.read_bytes()
    assert yaml.safe_load(named)["outs"][0]["md5"] == dvc_md5(folder)
    monkeypatch.setattr(data_folder, "DEMO_MD5", dvc_md5(folder))

    # A fresh clone: neither texts nor cache.
    shutil.rmtree(project / "data")
    shutil.rmtree(project / ".dvc" / "cache")
    fill(folder, pointer)
    assert {file.name: file.read_text() for file in folder.iterdir()} == TEXTS
    assert pointer.read_bytes() == named
    assert "up to date" in dvc(project, "status")

    # The texts are gone, the cache has them.
    shutil.rmtree(project / "data")
    monkeypatch.setattr(data_folder, "write_demo", None)
    fill(folder, pointer)
    assert {file.name: file.read_text() for file in folder.iterdir()} == TEXTS

    # The cache is gone, the texts are there.
    shutil.rmtree(project / ".dvc" / "cache")
    fill(folder, pointer)
    assert "up to date" in dvc(project, "status")
    assert pointer.read_bytes() == named


def test_the_md5_is_dvcs_for_folders_in_folders_and_any_names(project: Path) -> None:
    folder = project / "data" / "texts"
    for name in ("a/z.jsonl", "a.jsonl", "a-b/c", "ü.csv", "B", "a/b/c d"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (project / "data.dvc").write_text("outs:\n- path: data/texts\n")
    dvc(project, "commit", "--force", "--quiet", "data.dvc")
    named = yaml.safe_load((project / "data.dvc").read_text())["outs"][0]["md5"]
    assert dvc_md5(folder) == named


def test_a_failing_dvc_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folder, "DEMO_MD5", None)
    write_texts(tmp_path / "data" / "texts")
    pointer = write_pointer(tmp_path, dvc_md5(tmp_path / "data" / "texts"))
    assert not os.path.lexists(tmp_path / ".dvc")
    with pytest.raises(InputError, match=r"`dvc commit .*` failed: "):
        fill(tmp_path / "data" / "texts", pointer)
