"""Write texts as the released OpAI-Bench dataset is written: its files, its columns, a card."""

import csv
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from palimpsest.corpora.opai_bench import (
    ABLATIONS,
    COLUMNS,
    SPLITS,
    released_version,
    tagged,
)
from palimpsest.errors import InputError
from palimpsest.trajectories.adopt import pairs, runs


@dataclass(slots=True)
class _Facts:
    """What the dataset card says."""

    samples: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    versions: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    prompt_sets: set[str] = field(default_factory=set)
    languages: set[str] = field(default_factory=set)


def export_opai_bench(
    rows: Iterable[Mapping[str, Any]], split_of: Mapping[str, str], folder: Path
) -> int:
    """Write rows of `records.TEXTS` to a new folder and return how many samples it holds.

    The human text that a document's trajectories share in the design `operation` is written once.
    The folder appears when it is complete.

    Raises:
        InputError: a folder that holds something, no rows.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already: name a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        whole = Path(scratch, "whole")
        count = _write(rows, split_of, whole)
        if folder.exists():
            folder.rmdir()
        whole.replace(folder)
    return count


def _write(rows: Iterable[Mapping[str, Any]], split_of: Mapping[str, str], folder: Path) -> int:
    facts = _Facts()
    shared: set[tuple[str, str]] = set()
    with ExitStack() as open_files:
        writers: dict[Path, Any] = {}
        for row in rows:
            if row["design"] == "operation" and row["version"] == "v0":
                if (row["doc_id"], row["generator"]) in shared:
                    continue
                shared.add((row["doc_id"], row["generator"]))
            split = split_of[row["doc_id"]]
            path = folder / _config(row["design"]) / split / _file_name(row)
            if path not in writers:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = path.open("w", encoding="utf-8", newline="")
                # quoted, since a lone carriage return would end an unquoted field
                writers[path] = csv.writer(
                    open_files.enter_context(file),
                    lineterminator="\n",
                    quoting=csv.QUOTE_NONNUMERIC,
                )
                writers[path].writerow(COLUMNS)
            record = _record(row, split)
            writers[path].writerow(map(_cell, (record[column] for column in COLUMNS)))
            _note(facts, row, record)
    count = sum(facts.samples.values())
    if not count:
        raise InputError("there is no text to export: run `dvc repro`")
    (folder / "README.md").write_text(_card(facts), encoding="utf-8")
    return count


def _config(design: str) -> str:
    return "default" if design == "cumulative" else "ablations"


def _file_name(row: Mapping[str, Any]) -> str:
    """essays_gpt-5.4.csv, ablation1_essays_expand_gemini-2.5-flash.csv."""
    prefix = next((name for name, design in ABLATIONS.items() if design == row["design"]), "")
    operation = row["variant"] if row["design"] == "coverage" else ""
    parts = filter(None, (prefix, row["domain"], operation, row["generator"]))
    return re.sub(r"[^\w.-]+", "-", "_".join(parts)) + ".csv"


def _record(row: Mapping[str, Any], split: str) -> dict[str, Any]:
    """The row under the release's columns."""
    text = row["text"]
    return {
        "record_id": row["sample_id"],
        "id": row["doc_id"],
        "domain": row["domain"],
        "generator": row["generator"],
        "version": released_version(row["design"], row["variant"], row["version"]),
        "edit_operation": row["operation"],
        "split": split,
        "text": text,
        "text_tagged": tagged(text, row["ai_spans"]),
        "tokens": [text[start:end] for start, end in row["word_spans"]],
        "token_labels": row["word_labels"],
        "sentences": [text[start:end] for start, end in row["sentence_spans"]],
        "sentence_labels": row["sentence_labels"],
        "ai_spans_char": pairs(row["ai_spans"]),
        "ai_spans_token": runs(row["word_labels"]),
        "ai_sentence_ratio": row["ai_sentence_ratio"],
        "ai_token_ratio": row["ai_token_ratio"],
        "ai_char_ratio": row["ai_char_ratio"],
    }


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def _note(facts: _Facts, row: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    config = _config(row["design"])
    facts.samples[config, row["domain"], row["generator"], record["split"]] += 1
    facts.versions[row["design"], record["version"]] = row["operation"], row["target_coverage"]
    facts.prompt_sets.add(row["prompt_set"])
    facts.languages.add(row["language"])


def _card(facts: _Facts) -> str:
    total = sum(facts.samples.values())
    sizes = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True, keep_trailing_newline=True
    )
    return environment.get_template("dataset_card.md").render(
        languages=sorted(facts.languages),
        size=next((name for limit, name in sizes if total < limit), "100K<n<1M"),
        configs={
            config: [s for s in SPLITS if any(k[0] == config and k[3] == s for k in facts.samples)]
            for config in sorted({key[0] for key in facts.samples}, reverse=True)
        },
        cells=[
            [*key, *(facts.samples[*key, split] for split in SPLITS)]
            for key in sorted({key[:3] for key in facts.samples})
        ],
        splits=SPLITS,
        versions=sorted(facts.versions.items()),
        prompt_sets=sorted(facts.prompt_sets),
    )
