"""Bring a user's own texts into the data folder, one JSONL per domain."""

import json
import logging
import re
from pathlib import Path

from palimpsest.corpora.data_folder import dvc_md5
from palimpsest.corpora.demo import DEMO_FILES, DEMO_MD5, is_demo
from palimpsest.corpora.readers import read_table
from palimpsest.errors import InputError

log = logging.getLogger(__name__)


def add(folder: Path, source: Path, domain: str, id_column: str, text_column: str) -> int:
    """Copy ids and texts of a table to `folder/<domain>.jsonl`; how many there are.

    The folder holds either the demo or the user's texts: the first call takes the demo out. A
    domain that is there already stays as it is.

    Raises:
        InputError: an unreadable source, a domain that is no file's name or is there already,
            a demo with changed files.
    """
    if not re.fullmatch(r"\w[\w -]*", domain):
        raise InputError(f"--domain {domain!r}: use letters, digits, _, - and blanks")
    if not source.is_file():
        raise InputError(f"{source} does not exist")
    demo = is_demo(folder)
    if demo and dvc_md5(folder, DEMO_FILES) != DEMO_MD5:
        raise InputError(
            f"{folder} holds the demo, but not as it was made: delete {folder / 'README.md'} to "
            "keep all files there as your own, or move yours elsewhere"
        )
    target = folder / f"{domain}.jsonl"
    leaving = DEMO_FILES if demo else ()
    present = [f for f in folder.glob("*") if f.stem == domain and f.name not in leaving]
    if present:
        raise InputError(f"{present[0]} is there already: delete it first to replace it")
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{domain}.partial"
    count = 0
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            for row in read_table(source, id_column, text_column):
                file.write(json.dumps({"id": row.id, "text": row.text}) + "\n")
                count += 1
        if not count:
            raise InputError(f"{source} holds no row")
        if demo:
            log.info("%s: the demo's texts make room for yours", folder)
        for name in leaving:
            (folder / name).unlink(missing_ok=True)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
        if not any(folder.iterdir()):  # as it was before a first file that could not be read
            folder.rmdir()
    return count
