"""Fill the data folder that data.dvc tracks, and see to it that DVC's cache holds it too."""

import hashlib
import json
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from operator import itemgetter
from pathlib import Path

import yaml

from palimpsest.corpora.demo import DEMO_MD5, write_demo
from palimpsest.errors import InputError

log = logging.getLogger(__name__)


def dvc_md5(folder: Path, names: Collection[str] | None = None) -> str:
    """The md5 by which DVC knows a folder: that of the list of its files and their md5s.

    With `names` as if it held these files alone.
    """
    listed = []
    for file in folder.rglob("*"):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and (names is None or name in names):
            with file.open("rb") as opened:
                md5 = hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False))
            listed.append({"md5": md5.hexdigest(), "relpath": name})
    listed.sort(key=itemgetter("relpath"))
    return hashlib.md5(json.dumps(listed).encode(), usedforsecurity=False).hexdigest() + ".dir"


def fill(folder: Path, pointer: Path) -> None:
    """Make `folder` be there with the content that its .dvc file names, in DVC's cache too.

    A folder that is missing or empty comes from DVC's cache, or else is filled with the demo. One
    with other content stays as it is.

    Raises:
        InputError: the folder has other content; it is missing and the .dvc file names other texts
            than the demo; an archive could not be fetched.
    """
    expected = _tracked_md5(pointer)
    cached = _in_cache(pointer.parent, expected)
    if cached and not _has_files(folder):
        _dvc("checkout", pointer)
    if not _has_files(folder):
        if expected != DEMO_MD5:
            raise InputError(
                f"{folder} is missing, and {pointer} names other texts than the demo: get them "
                f"with `dvc pull`, or go back to the demo with `git checkout`"
            )
        _make_demo(folder)
    elif dvc_md5(folder) != expected:
        raise InputError(
            f"{folder} is not what {pointer} names and stays as it is: `dvc add {folder}` keeps "
            f"it, `dvc checkout --force {pointer}` goes back to what is named"
        )
    if not cached:
        _dvc("commit", pointer)


def _tracked_md5(pointer: Path) -> str:
    if not pointer.is_file():
        raise InputError(f"{pointer} does not exist: run this command in the project's folder")
    match yaml.safe_load(pointer.read_text(encoding="utf-8")):
        case {"outs": [{"md5": str(md5)}]}:
            return md5
    raise InputError(f"{pointer} names no folder with its md5: `git checkout {pointer}`")


def _make_demo(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".demo-") as scratch:
        texts = Path(scratch, "texts")
        texts.mkdir()
        write_demo(texts)
        if (md5 := dvc_md5(texts)) != DEMO_MD5:
            raise InputError(f"the demo came out as {md5}, not {DEMO_MD5}: report this as a bug")
        if folder.is_dir():
            folder.rmdir()
        shutil.move(texts, folder)


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _in_cache(root: Path, md5: str) -> bool:
    """Whether DVC's cache, in its usual place, holds a folder and all its files."""
    cache = root / ".dvc" / "cache" / "files" / "md5"
    listing = cache / md5[:2] / md5[2:]
    if not listing.is_file():
        return False
    md5s = [entry["md5"] for entry in json.loads(listing.read_text(encoding="utf-8"))]
    return all((cache / md5[:2] / md5[2:]).is_file() for md5 in md5s)


def _dvc(command: str, pointer: Path) -> None:
    log.info("dvc %s %s", command, pointer)
    call = [sys.executable, "-m", "dvc", command, "--quiet", "--force", pointer.name]
    done = subprocess.run(call, cwd=pointer.parent, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InputError(f"`dvc {command} {pointer}` failed: {reason}")
