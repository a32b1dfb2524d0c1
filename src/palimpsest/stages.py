"""The five stages: each reads files, calls pure functions, writes files, and tracks its run.

A stage imports what it needs inside its function, because those imports are part of its run's key.
"""

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from palimpsest import tracking
from palimpsest.detectors.interface import Detector
from palimpsest.detectors.registry import find, resolved
from palimpsest.errors import InputError, unknown
from palimpsest.params import Params, Selection, flat, project_root
from palimpsest.records import (
    DOCUMENTS,
    PREDICTIONS,
    RECORDS,
    SPLITS,
    TEXTS,
    document_row,
    labelled_of,
    prediction_row,
    read_documents,
    read_rows,
    scores_of,
    text_of,
    write_frame,
    write_rows,
)
from palimpsest.run_keys import code_digests, digest, run_key, short_digest

log = logging.getLogger(__name__)

ARTIFACTS = Path("artifacts")
DOCUMENTS_FILE = ARTIFACTS / "documents.parquet"
SPLITS_FILE = ARTIFACTS / "splits.parquet"
MODEL_FOLDER = ARTIFACTS / "model"
PREDICTIONS_FILE = ARTIFACTS / "predictions.parquet"
RECORDS_FILE = ARTIFACTS / "records.parquet"
PLOTS_FOLDER = ARTIFACTS / "plots"

TEXTS_AT_ONCE = 512  # scored in one call, so that memory does not grow with the corpus


def corpus(params: Params) -> None:
    """Human documents from the source: normalised, in sentences, filtered, sampled."""
    from palimpsest.corpora.build import build_documents
    from palimpsest.corpora.opai_bench import is_release, release_documents

    build = release_documents if is_release(params.corpus.source) else build_documents
    built = build(params.corpus)
    write_rows(DOCUMENTS_FILE, DOCUMENTS, map(document_row, built.documents))
    columns = ["doc_id", "domain", "reason", "place"]
    rejected = pd.DataFrame(list(map(asdict, built.rejections)), columns=columns)
    rejected.to_csv(ARTIFACTS / "rejected.csv", index=False)
    for domain, count in built.counts.items():
        counts = (f"{n} {name.replace('_', ' ')}" for name, n in asdict(count).items())
        log.info("%s: %s", domain, ", ".join(counts))
    for reason, n in rejected["reason"].value_counts().items():
        log.info("rejected, %s: %d", reason, n)


def generate(params: Params) -> None:
    """Every generator's trajectories over all documents, from the journal where it holds them."""
    from palimpsest.corpora.opai_bench import is_release

    if is_release(params.corpus.source):
        _adopt(params)
        return
    from palimpsest.editors.factory import make_editor
    from palimpsest.editors.journal import Journal, JournalledEditor, journal_path
    from palimpsest.trajectories.build import Tally, build_trajectories
    from palimpsest.trajectories.prompts import load_prompts

    prompts = load_prompts(Path(params.trajectory.prompts))
    documents = list(read_documents(DOCUMENTS_FILE))
    tallies = {name: Tally() for name in params.trajectory.generators}

    def rows(journal: Journal) -> Iterator[dict[str, Any]]:
        for name, tally in tallies.items():
            editor = make_editor(params.generators[name], params.device, params.dtype)
            asking = JournalledEditor(editor, journal)
            yield from build_trajectories(
                documents, asking, name, prompts, params.trajectory, tally
            )
            log.info("%s: %d requests sent, %d answered by the journal; %s",
                     name, asking.asked, asking.repeated, tally.describe())  # fmt: skip

    texts = texts_folder(params.train.select.design) / "texts.parquet"
    with Journal(journal_path(project_root())) as journal:
        count = write_rows(texts, TEXTS, rows(journal))
    revisions = pd.DataFrame([row for name, tally in tallies.items() for row in tally.rows(name)])
    revisions.to_csv(ARTIFACTS / "revisions.csv", index=False)
    if not count:
        raise InputError(
            "every trajectory was dropped; artifacts/revisions.csv counts the reasons, and "
            "trajectory.on_rejection=later keeps such sentences human"
        )
    _write_statistics(params, [texts])


def _adopt(params: Params) -> None:
    """The release's own texts, in the place of generated ones."""
    from palimpsest.corpora.opai_bench import release_names
    from palimpsest.trajectories.adopt import Report, adopt

    documents = {document.doc_id: document for document in read_documents(DOCUMENTS_FILE)}
    used = {name: params.generators[name] for name in params.trajectory.generators}
    known = release_names(used)
    files, counts = [], []
    for design in sorted({params.train.select.design, params.evaluate.select.design}):
        for folder, held_out in ((texts_folder(design), False), (held_out_folder(design), True)):
            wanted = {old: new for old, new in known.items() if used[new].held_out == held_out}
            with Report(folder / "release.csv") as report:
                adopted = adopt(params.corpus, design, documents, wanted, report)
                count = write_rows(folder / "texts.parquet", TEXTS, adopted)
            files.append(folder / "texts.parquet")
            counts += report.rows()
            left_out = {name: n for name, n in report.left_out.items() if name not in known}
            if not count and not held_out:
                raise InputError(
                    f"no text of the release was taken for {design}: {folder / 'release.csv'} says "
                    f"why; rows of generators not in trajectory.generators: {left_out}"
                )
            for row in report.rows():
                log.info("%s: %s, %s: %d", design, row["generator"], row["reason"], row["count"])
            for name, n in left_out.items():
                log.warning("%s: %d rows of %s are left out: it is not in trajectory.generators",
                            design, n, name)  # fmt: skip
    pd.DataFrame(counts).to_csv(ARTIFACTS / "revisions.csv", index=False)
    _write_statistics(params, files)


def _write_statistics(params: Params, files: Iterable[Path]) -> None:
    from palimpsest.splits import split_rows
    from palimpsest.trajectories.summary import COLUMNS, summarise

    splits = {row["doc_id"]: row["split"] for row in split_rows(read_documents(DOCUMENTS_FILE))}
    held_out = {name for name, generator in params.generators.items() if generator.held_out}
    rows = (row for file in files for row in read_rows(file, columns=COLUMNS))
    statistics = summarise(rows, splits, held_out)
    statistics.to_csv(ARTIFACTS / "statistics.csv", index=False)


def split(params: Params) -> None:
    """Each document's split."""
    from palimpsest.splits import split_rows

    count = write_rows(SPLITS_FILE, SPLITS, split_rows(read_documents(DOCUMENTS_FILE)))
    log.info("%d documents are in a split", count)


def train(params: Params) -> None:
    """Fit the detector and calibrate its thresholds on human dev texts."""
    from palimpsest.detectors.interface import Runtime
    from palimpsest.detectors.registry import make
    from palimpsest.evaluation.thresholds import build_thresholds

    given = params.detector_settings()
    learns = find(params.detector, given).regime in ("trained", "baseline")
    detector = make(params.detector, given, Runtime(params.device, params.dtype, params.train.seed))
    selected = list(_selected(params, params.train.select, {"train", "dev"} if learns else {"dev"}))
    parts = {
        split: [labelled_of(row) for row, its_split in selected if its_split == split and learns]
        for split in ("train", "dev")
    }
    human = _human(row for row, its_split in selected if its_split == "dev")

    history: list[tuple[str, float, int]] = []
    with _train_run(params) as run:

        def note(metric: str, value: float, step: int) -> None:
            history.append((metric, value, step))
            run.metric(metric, value, step)

        shutil.rmtree(MODEL_FOLDER, ignore_errors=True)
        MODEL_FOLDER.mkdir(parents=True)
        detector.fit(parts["train"], parts["dev"], note)
        detector.save(MODEL_FOLDER)
        answers = zip(human, detector.score([text_of(row) for row in human]), strict=True)
        levels = build_thresholds(answers, detector.published, params.train.fpr)
        made = {"key": _train_key(params), "made_for": _made_for(params), "levels": levels}
        _write_json(MODEL_FOLDER / "thresholds.json", made)
        _write_json(MODEL_FOLDER / "history.json", history)
        _log_training(run, made)


def evaluate(params: Params) -> None:
    """Score the selected test texts and put every metric into one table."""
    from palimpsest.detectors.interface import Runtime
    from palimpsest.detectors.registry import detector_class
    from palimpsest.evaluation.report import Context
    from palimpsest.evaluation.report import evaluate as evaluate_answers
    from palimpsest.evaluation.summary import by_version, headline

    given = params.detector_settings()
    thresholds = _thresholds_for(params)
    runtime = Runtime(params.device, params.dtype, params.train.seed)
    detector = detector_class(params.detector, given).load(MODEL_FOLDER, runtime)
    context = Context(
        detector=params.detector,
        regime=find(params.detector, given).regime,
        design=params.evaluate.select.design,
        held_out=frozenset(name for name, g in params.generators.items() if g.held_out),
        resamples=params.evaluate.resamples,
        seed=params.evaluate.seed,
    )

    def test_rows() -> Iterator[dict[str, Any]]:
        return (row for row, _ in _selected(params, params.evaluate.select, {"test"}))

    with _evaluate_run(params, thresholds["key"]) as run:
        write_rows(PREDICTIONS_FILE, PREDICTIONS, _score(detector, test_rows()))
        answers = zip(test_rows(), map(scores_of, read_rows(PREDICTIONS_FILE)), strict=True)
        records = evaluate_answers(answers, thresholds["levels"], context)
        write_frame(RECORDS_FILE, RECORDS, records)
        _write_json(ARTIFACTS / "metrics.json", headline(records))
        PLOTS_FOLDER.mkdir(exist_ok=True)
        by_version(records).to_csv(PLOTS_FOLDER / "by_version.csv", index=False)
        keys = {"train": thresholds["key"], "evaluate": _evaluate_key(params)}
        _write_json(ARTIFACTS / "run.json", keys)
        _log_evaluation(run)


def track(params: Params) -> None:
    """Log the runs behind the present outputs where the store lacks them.

    DVC takes a stage's outputs from its cache without running it, so a store that is new or was
    lost has no run for them.

    Raises:
        InputError: outputs that are missing or that belong to other params.
    """
    thresholds = _thresholds_for(params)
    path = ARTIFACTS / "run.json"
    if not path.is_file():
        raise InputError(f"{path} does not exist: run `dvc repro`")
    if json.loads(path.read_text()) != {
        "train": _train_key(params),
        "evaluate": _evaluate_key(params),
    }:
        raise InputError(f"{path} is of another state of params or code: run `dvc repro`")
    with _train_run(params) as run:
        for metric, value, step in json.loads((MODEL_FOLDER / "history.json").read_text()):
            run.metric(metric, value, step)
        _log_training(run, thresholds)
    with _evaluate_run(params, thresholds["key"]) as run:
        _log_evaluation(run)


STAGES: dict[str, Callable[[Params], None]] = {
    stage.__name__: stage for stage in (corpus, generate, split, train, evaluate)
}


def _train_run(params: Params) -> AbstractContextManager[tracking.Run]:
    return tracking.tracked(
        params.benchmark,
        "train",
        _train_key(params),
        name=f"train {params.detector}",
        params=_train_params(params),
        tags=_tags(params.train.select.design),
    )


def _evaluate_run(params: Params, train_key: str) -> AbstractContextManager[tracking.Run]:
    return tracking.tracked(
        params.benchmark,
        "evaluate",
        _evaluate_key(params),
        name=params.detector,
        params=_evaluate_params(params),
        tags=_tags(params.evaluate.select.design),
        parent_key=train_key,
    )


def _log_training(run: tracking.Run, thresholds: Mapping[str, Any]) -> None:
    for level, found in thresholds["levels"].items():
        if calibrated := found["calibrated"]:
            run.metric(f"threshold/{level}", calibrated["value"])
    run.artifact(MODEL_FOLDER, "model")


def _log_evaluation(run: tracking.Run) -> None:
    from palimpsest.evaluation.summary import mlflow_metrics

    for metric, value, step in mlflow_metrics(pd.read_parquet(RECORDS_FILE)):
        run.metric(metric, value, step)
    for metric, value in json.loads((ARTIFACTS / "metrics.json").read_text()).items():
        run.metric(metric, value)
    for file in (RECORDS_FILE, ARTIFACTS / "statistics.csv", ARTIFACTS / "revisions.csv"):
        run.artifact(file, "tables")
    run.artifact(PREDICTIONS_FILE)
    run.artifact(PLOTS_FOLDER, "plots")


def texts_folder(design: str) -> Path:
    return ARTIFACTS / "texts" / design


def held_out_folder(design: str) -> Path:
    return ARTIFACTS / "texts-held-out" / design


def _selected(
    params: Params, select: Selection, splits: set[str]
) -> Iterator[tuple[dict[str, Any], str]]:
    """The samples that a selection names in these splits, each with its split."""
    split_of = {row["doc_id"]: row["split"] for row in read_rows(SPLITS_FILE)}
    generators = _generators(params, select)
    texts = texts_folder(select.design)
    domains = None if select.domains == "all" else set(select.domains)
    found = False
    for row in read_rows(texts):
        its_split = split_of[row["doc_id"]]
        if its_split not in splits or row["generator"] not in generators:
            continue
        if domains is None or row["domain"] in domains:
            found = True
            yield row, its_split
    if not found:
        raise InputError(
            f"{texts} has no text of the splits {sorted(splits)}, domains {select.domains} and "
            f"generators {sorted(generators)}: take more documents or select others"
        )


def _generators(params: Params, select: Selection) -> set[str]:
    used = params.trajectory.generators
    held_out = {name for name in used if params.generators[name].held_out}
    match select.generators:
        case "all":
            return set(used)
        case "in-distribution":
            return set(used) - held_out
        case "held-out":
            return held_out
        case str() as name:
            names = [name]
        case names:
            names = list(names)
    for name in names:
        if name not in used:
            raise unknown("generator", name, used)
    return set(names)


def _human(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each document's v0, once, though every generator's trajectory starts with it."""
    return list({row["doc_id"]: row for row in rows if row["version"] == "v0"}.values())


def _score(detector: Detector, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Predictions in the rows' order, some texts at a time, so that memory does not grow."""
    with tqdm(desc="score", unit="text") as bar:
        while chunk := list(islice(rows, TEXTS_AT_ONCE)):
            answers = detector.score([text_of(row) for row in chunk])
            for row, scores in zip(chunk, answers, strict=True):
                yield prediction_row(row["sample_id"], scores)
            bar.update(len(chunk))


def _thresholds_for(params: Params) -> dict[str, Any]:
    """The model's thresholds, refused where they were made for something else."""
    path = MODEL_FOLDER / "thresholds.json"
    if not path.is_file():
        raise InputError(f"{path} does not exist: run `dvc repro train`")
    thresholds: dict[str, Any] = json.loads(path.read_text())
    wanted = _made_for(params)
    for name, value in thresholds["made_for"].items():
        if value != wanted[name]:
            raise InputError(
                f"{path} was made for {name} {value!r}, not {wanted[name]!r}: run `dvc repro train`"
            )
    return thresholds


def _made_for(params: Params) -> dict[str, Any]:
    return {
        "detector": params.detector,
        "settings": _settings(params),
        "language": params.corpus.language,
        "code": short_digest(
            {
                module: sha256
                for module, sha256 in code_digests("train", _modules(params)).items()
                if module.startswith(("palimpsest.detectors", "palimpsest.statistics"))
            }
        ),
    }


def _train_key(params: Params) -> str:
    inputs = {
        "texts": digest(texts_folder(params.train.select.design)),
        "splits": digest(SPLITS_FILE),
    }
    return run_key("train", _train_params(params), inputs, _modules(params))


def _evaluate_key(params: Params) -> str:
    inputs = {
        "texts": digest(texts_folder(params.evaluate.select.design)),
        "splits": digest(SPLITS_FILE),
        "model": digest(MODEL_FOLDER),
    }
    return run_key("evaluate", _evaluate_params(params), inputs, _modules(params))


def _train_params(params: Params) -> dict[str, Any]:
    regime = find(params.detector, params.detector_settings()).regime
    return {
        "detector": params.detector,
        "regime": regime,
        "profile": params.profile,
        "dtype": params.dtype,
        **flat(params.train),
        **{f"settings.{name}": value for name, value in flat(_settings(params)).items()},
    }


def _evaluate_params(params: Params) -> dict[str, Any]:
    """All that one compares runs by, the training's own too: the UI's filters see no parent."""
    select = params.evaluate.select
    return {
        **{f"train.{k}": v for k, v in flat(params.train).items()},
        **{k: v for k, v in _train_params(params).items() if k not in flat(params.train)},
        **flat(params.evaluate),
        "design": select.design,
        "generators": " ".join(sorted(_generators(params, select))),
        "texts": digest(texts_folder(select.design))[:12],
        "splits": digest(SPLITS_FILE)[:12],
    }


def _settings(params: Params) -> dict[str, Any]:
    return resolved(params.detector, params.detector_settings())


def _modules(params: Params) -> list[str]:
    return [find(params.detector, params.detector_settings()).module]


def _tags(design: str) -> dict[str, str]:
    first = next(iter(read_rows(texts_folder(design), columns=["prompt_set"])))
    return {
        "texts": digest(texts_folder(design)),
        "splits": digest(SPLITS_FILE),
        "prompt_set": first["prompt_set"],
    }


def _write_json(path: Path, content: Mapping[str, Any] | list[Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")
