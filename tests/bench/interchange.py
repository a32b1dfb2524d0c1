"""Import of a synthetic release that has as many rows, of the same size, as the paper counts."""

import csv
import io
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from palimpsest.corpora.opai_bench import COLUMNS, SPLITS, release_documents
from palimpsest.params import load_params
from palimpsest.records import TEXTS, Document, Sentence, write_rows
from palimpsest.trajectories.adopt import Report, adopt
from tests.releases import trajectory

DOMAINS = ("essays", "news", "reports", "abstracts")
GENERATORS = ("gpt-5.4", "gpt-5.4-nano", "gemini-2.5-flash")
MARK = "d00000"  # every document has its id, as long as this, in its text


def measure(rows: int = 280_000) -> dict[str, float]:
    """Rows a second; needs 6 GB of disk."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = _write(folder, rows // 9)
        params = replace(load_params().corpus, source=str(folder), format="opai-bench")
        params = replace(params, documents_per_domain=None)
        begin = time.perf_counter()
        documents = {document.doc_id: document for document in release_documents(params).documents}
        read = time.perf_counter()
        with Report(folder / "release.csv") as report:
            adopted = adopt(params, "cumulative", documents, bool, report)
            count = write_rows(folder / "texts.parquet", TEXTS, adopted)
        done = time.perf_counter()
    assert not any(kind == "column" for _, kind, _ in report.counts), report.counts
    return {
        "GiB of CSV": size / 2**30,
        "documents": len(documents),
        "rows": count,
        "seconds for the documents": read - begin,
        "seconds for the texts": done - read,
        "rows/s": count / (done - begin),
    }


def _write(folder: Path, trajectories: int) -> int:
    """Two generators for each document, their files in the three splits; how many bytes."""
    templates = [_lines(_document(i)) for i in range(50)]
    open_files = {}
    for i in range(trajectories):
        document, domain = i // 2, DOMAINS[i // 2 % 4]
        split = SPLITS[0 if document % 20 < 14 else 1 if document % 20 < 17 else 2]
        generator = GENERATORS[(document + i % 2) % 3]
        path = folder / "default" / split / f"{domain}_{generator}.csv"
        if path not in open_files:
            path.parent.mkdir(parents=True, exist_ok=True)
            open_files[path] = path.open("w", encoding="utf-8", newline="")
            csv.writer(open_files[path]).writerow(COLUMNS)
        lines = templates[document % len(templates)]
        own = lines.replace(MARK, f"d{document:05}").replace("essays", domain)
        open_files[path].write(own.replace("GENERATOR", generator).replace("SPLIT", split))
    for file in open_files.values():
        file.close()
    return sum(path.stat().st_size for path in open_files)


def _document(number: int) -> Document:
    """20 sentences of 21 words, as the release's texts have on average."""
    words = [f"word{(number + 7 * i) % 997}" for i in range(21)]
    sentences = [
        Sentence(f"s{i:04}", f"p{i // 5:03}", " ".join([f"{MARK} sentence {i}", *words[3:]]) + ".")
        for i in range(20)
    ]
    return Document(MARK, "essays", "en", MARK, None, tuple(sentences))


def _lines(document: Document) -> str:
    written = io.StringIO(newline="")
    lines = csv.writer(written)
    for row in trajectory(document, "GENERATOR", "SPLIT"):
        cells = (row[column] for column in COLUMNS)
        lines.writerow([json.dumps(c) if isinstance(c, list) else c for c in cells])
    return written.getvalue()
