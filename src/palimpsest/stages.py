"""The five stages: each reads files, calls pure functions, writes files, and tracks its run.

A stage imports what it needs inside its function, because those imports are part of its run's key.
"""

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from tqdm import tqdm

from palimpsest import tracking
from palimpsest.detectors.interface import Detector
from palimpsest.detectors.registry import find, resolved, title
from palimpsest.errors import InputError, unknown
from palimpsest.models import local_revision
from palimpsest.params import Params, Selection, flat, project_root
from palimpsest.records import (
    DOCUMENTS,
    PREDICTIONS,
    RECORDS,
    SPLITS,
    TEXTS,
    Document,
    Labelled,
    document_row,
    labelled_of,
    prediction_row,
    read_batches,
    read_documents,
    read_rows,
    text_of,
    write_batches,
    write_frame,
    write_rows,
)
from palimpsest.run_keys import code_digests, digest, run_key, short_digest
from palimpsest.trajectories.designs import generators

if TYPE_CHECKING:
    from palimpsest.trajectories.assignments import Assignment, Size

log = logging.getLogger(__name__)

ARTIFACTS = Path("artifacts")
DOCUMENTS_FILE = ARTIFACTS / "documents.parquet"
SPLITS_FILE = ARTIFACTS / "splits.parquet"
MODEL_FOLDER = ARTIFACTS / "model"
SAMPLES_FILE = ARTIFACTS / "samples.parquet"
PREDICTIONS_FILE = ARTIFACTS / "predictions.parquet"
RECORDS_FILE = ARTIFACTS / "records.parquet"
RUN_FILE = ARTIFACTS / "run.json"
PLOTS_FOLDER = ARTIFACTS / "plots"
PAGES_FOLDER = ARTIFACTS / "trajectories"

TEXTS_AT_ONCE = 512  # scored in one call, so that memory does not grow with the corpus


def corpus(params: Params) -> None:
    """Human documents from the source: normalised, in sentences, filtered, sampled."""
    from palimpsest.corpora.build import build_documents
    from palimpsest.corpora.opai_bench import release_documents

    build = release_documents if params.corpus.format == "opai-bench" else build_documents
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


def generate(params: Params, max_cost: float | None = None) -> None:
    """Every selected design's trajectories, from the journal where it holds the replies.

    `max_cost` is the sum in US dollars at which no more requests are sent.

    Raises:
        InputError: a share of dropped trajectories above `trajectory.max_dropped`, a cost limit
            that is reached or that nothing has a price for.
    """
    if params.corpus.format == "opai-bench":
        _adopt(params)
        return
    from palimpsest.editors.budget import Budget
    from palimpsest.editors.factory import make_editor
    from palimpsest.editors.journal import Journal, JournalledEditor, journal_path, only_writer
    from palimpsest.trajectories.assignments import Assignment, assignments
    from palimpsest.trajectories.build import build_trajectories
    from palimpsest.trajectories.tally import Tally

    budget = Budget(max_cost)
    work = [(assignment, Tally()) for assignment in assignments(params, _designs(params), _sizes())]
    if max_cost is not None:
        if not max_cost >= 0:  # nan would never be reached
            raise InputError(f"--max-cost is {max_cost}: give a sum in US dollars")
        _require_prices(assignment for assignment, _ in work)
    # All at once, so that a missing API key shows before any work.
    editors = {
        assignment.brief.generator: make_editor(assignment.generator, params.device, params.dtype)
        for assignment, _ in work
    }

    def rows(journal: Journal, assignment: Assignment, tally: Tally) -> Iterator[dict[str, Any]]:
        brief = assignment.brief
        price = assignment.generator.price
        editor = JournalledEditor(editors[brief.generator], journal, price, budget)
        documents = _documents(assignment)
        yield from build_trajectories(documents, editor, brief, tally, assignment.revisions)
        log.info("%s by %s: %d requests sent, %d answered by the journal; %s", brief.design,
                 brief.generator, editor.asked, editor.repeated, tally.describe())  # fmt: skip

    root = project_root()
    with only_writer(root), Journal(journal_path(root)) as journal:
        for design in _designs(params):
            for held_out in (False, True):
                part = [
                    each
                    for each in work
                    if each[0].brief.design == design and each[0].generator.held_out == held_out
                ]
                texts = texts_folder(design, held_out) / "texts.parquet"
                write_rows(texts, TEXTS, (row for each in part for row in rows(journal, *each)))
    _write_statistics(_designs(params))
    revisions = [
        {"design": assignment.brief.design, "generator": assignment.brief.generator, **row}
        for assignment, tally in work
        for row in tally.rows()
    ]
    pd.DataFrame(revisions).to_csv(ARTIFACTS / "revisions.csv", index=False)
    if budget.spent:
        log.info("$%.2f spent", budget.spent)
    for assignment, tally in work:
        if tally.dropped_share > params.trajectory.max_dropped:
            raise InputError(
                f"{tally.dropped} of {tally.dropped + tally.finished} trajectories of "
                f"{assignment.brief.generator} were dropped, more than trajectory.max_dropped "
                "allows; artifacts/revisions.csv counts the reasons, and "
                "trajectory.on_rejection=later keeps such sentences human"
            )


def _adopt(params: Params) -> None:
    """The texts of the OpAI-Bench release in the place of generated ones."""
    from palimpsest.corpora.opai_bench import HELD_OUT
    from palimpsest.trajectories.adopt import Report, adopt

    documents = {document.doc_id: document for document in read_documents(DOCUMENTS_FILE)}

    def belongs(held_out: bool, generator: str) -> bool:
        known = params.generators.get(generator)
        return held_out == (generator in HELD_OUT if known is None else known.held_out)

    revisions = []
    for design in _designs(params):
        for held_out in (False, True):
            folder = texts_folder(design, held_out)
            with Report(folder / "release.csv") as report:
                wanted = partial(belongs, held_out)
                rows = adopt(params.corpus, design, documents, wanted, report)
                count = write_rows(folder / "texts.parquet", TEXTS, rows)
            if not count and not held_out:
                raise InputError(
                    f"no row of the release gave a text: {report.path} names the rejected ones"
                )
            for row in report.rows():
                log.info("%s by %s: %s, %s: %d", design, row["generator"], row["kind"],
                         row["reason"], row["count"])  # fmt: skip
                revisions.append({"design": design, **row})
    pd.DataFrame(revisions).to_csv(ARTIFACTS / "revisions.csv", index=False)
    _write_statistics(_designs(params))


def _write_statistics(designs: Iterable[str]) -> None:
    from palimpsest.splits import split_rows
    from palimpsest.trajectories.summary import COLUMNS, summarise

    splits = {row["doc_id"]: row["split"] for row in split_rows(read_documents(DOCUMENTS_FILE))}
    facts = [
        summarise(read_rows(texts_folder(design, held_out), COLUMNS), splits, held_out)
        for design in designs
        for held_out in (False, True)
    ]
    pd.concat(facts).to_csv(ARTIFACTS / "statistics.csv", index=False)


def plan(params: Params) -> pd.DataFrame:
    """What `generate` will ask and cost, one row for each design and generator; asks nothing."""
    if params.corpus.format == "opai-bench":
        raise InputError("corpus.source is a release: generate adopts its texts and asks no model")
    from palimpsest.editors.factory import make_editor
    from palimpsest.editors.journal import Journal, journal_path
    from palimpsest.editors.plan import plan as plan_of
    from palimpsest.trajectories.assignments import assignments

    with Journal(journal_path(project_root())) as journal:
        plans = [
            plan_of(
                assignment,
                partial(_documents, assignment),
                # nothing is asked, so no API key is needed
                make_editor(
                    replace(assignment.generator, key_variable=None), params.device, params.dtype
                ),
                journal,
            )
            for assignment in assignments(params, _designs(params), _sizes())
        ]
    return pd.DataFrame(map(asdict, plans))


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
    splits = {"train", "dev"} if learns else {"dev"}
    parts: dict[str, list[Labelled]] = {"train": [], "dev": []}
    human: dict[str, dict[str, Any]] = {}  # by document: every trajectory starts with the same text
    for row, its_split in _selected(params.train.select, splits, learning=True):
        if learns:
            parts[its_split].append(labelled_of(row))
        if its_split == "dev" and row["operation"] == "none":
            human[row["doc_id"]] = row

    history: list[tuple[str, float, int]] = []
    with _train_run(params) as run:

        def note(metric: str, value: float, step: int) -> None:
            history.append((metric, value, step))
            run.metric(metric, value, step)

        shutil.rmtree(MODEL_FOLDER, ignore_errors=True)
        MODEL_FOLDER.mkdir(parents=True)
        detector.fit(parts["train"], parts["dev"], note)
        detector.save(MODEL_FOLDER)
        scores = detector.score([text_of(row) for row in human.values()])
        answers = zip(human.values(), scores, strict=True)
        levels = build_thresholds(answers, detector.published, params.train.fpr)
        made = {
            "key": _train_key(params),
            "made_for": _made_for(params),
            "revisions": getattr(detector, "revisions", {}),
            "levels": levels,
        }
        _write_json(MODEL_FOLDER / "thresholds.json", made)
        _write_json(MODEL_FOLDER / "history.json", history)
        _log_training(run, made)


def evaluate(params: Params) -> None:
    """Score the selected test texts and put every metric into one table."""
    from palimpsest.detectors.interface import Runtime
    from palimpsest.detectors.registry import detector_class
    from palimpsest.evaluation.report import Context
    from palimpsest.evaluation.report import evaluate as evaluate_predictions
    from palimpsest.evaluation.samples import TEXT_COLUMNS
    from palimpsest.evaluation.summary import by_version, headline, result_lines
    from palimpsest.reports.viewer import answers_to, first_trajectories, write_pages

    given = params.detector_settings()
    thresholds = _thresholds_for(params)
    runtime = Runtime(params.device, params.dtype, params.train.seed)
    detector = detector_class(params.detector, given).load(MODEL_FOLDER, runtime)
    context = Context(
        detector=_title(params),
        regime=find(params.detector, given).regime,
        design=params.evaluate.select.design,
        held_out=_held_out(params.evaluate.select),
        resamples=params.evaluate.resamples,
        seed=params.evaluate.seed,
        probabilities=getattr(detector, "probabilities", frozenset()),
    )
    select = params.evaluate.select

    def test_rows() -> Iterator[dict[str, Any]]:
        return (row for row, _ in _selected(select, {"test"}))

    with _evaluate_run(params, thresholds["key"]) as run:
        write_rows(PREDICTIONS_FILE, PREDICTIONS, _score(detector, test_rows()))
        write_batches(SAMPLES_FILE, _batches(select, {"test"}, TEXT_COLUMNS))
        samples, predictions = read_batches(SAMPLES_FILE), partial(read_batches, PREDICTIONS_FILE)
        records = evaluate_predictions(samples, predictions, thresholds["levels"], context)
        write_frame(RECORDS_FILE, RECORDS, records)
        _write_json(ARTIFACTS / "metrics.json", headline(records))
        PLOTS_FOLDER.mkdir(exist_ok=True)
        by_version(records).to_csv(PLOTS_FOLDER / "by_version.csv", index=False)
        shown = first_trajectories(test_rows())
        answered = answers_to(chain.from_iterable(shown), PREDICTIONS_FILE)
        write_pages(shown, {_title(params): answered}, PAGES_FOLDER)
        keys = {"train": thresholds["key"], "evaluate": _evaluate_key(params)}
        _write_json(RUN_FILE, keys)
        _log_evaluation(run, thresholds)
    for line in result_lines(records):
        log.info("%s, %s", _title(params), line)
    log.info("next: `make tables` for tables and figures, `make ui` to compare runs")


def track(params: Params) -> None:
    """Log the runs behind the present outputs where the store lacks them.

    DVC takes a stage's outputs from its cache without running it, so a store that is new or was
    lost has no run for them.

    Raises:
        InputError: outputs that are missing or that belong to other params.
    """
    thresholds = _thresholds_for(params)
    if not RUN_FILE.is_file():
        raise InputError(f"{RUN_FILE} does not exist: run `dvc repro`")
    if json.loads(RUN_FILE.read_text()) != {
        "train": _train_key(params),
        "evaluate": _evaluate_key(params),
    }:
        raise InputError(f"{RUN_FILE} is of another state of params or code: run `dvc repro`")
    with _train_run(params) as run:
        for metric, value, step in json.loads((MODEL_FOLDER / "history.json").read_text()):
            run.metric(metric, value, step)
        _log_training(run, thresholds)
    with _evaluate_run(params, thresholds["key"]) as run:
        _log_evaluation(run, thresholds)


STAGES: dict[str, Callable[[Params], None]] = {
    stage.__name__: stage for stage in (corpus, generate, split, train, evaluate)
}


def configuration(params: Params) -> str:
    """A key of everything that a run of all stages depends on, known before any has run.

    Unlike the stages' own keys it cannot see that another configuration gives the same texts.
    """
    used = {name: params.generators[name] for d in _designs(params) for name in
            generators(d, params.trajectory)}  # fmt: skip
    identity = {
        "corpus": asdict(params.corpus),
        "source": _source_digest(Path(params.corpus.source)),
        "trajectory": asdict(params.trajectory),
        "prompts": digest(Path(params.trajectory.prompt_sets)),
        "generators": {name: asdict(generator) for name, generator in used.items()},
        "models": {
            **_weights(params),
            **{generator.model: local_revision(generator.model) for generator in used.values()},
        },
        "benchmark": params.benchmark,
        "dtype": params.dtype,
        "detector": _title(params),
        "settings": _settings(params),
        "train": asdict(params.train),
        "evaluate": asdict(params.evaluate),
        "code": {stage: code_digests(stage, _modules(params)) for stage in STAGES},
    }
    return short_digest(identity)


@cache
def _source_digest(source: Path) -> str | None:
    """Once in a process: an experiment's members share a corpus that may have gigabytes."""
    return digest(source) if source.exists() else None


def _train_run(params: Params) -> AbstractContextManager[tracking.Run]:
    return tracking.tracked(
        params.benchmark,
        "train",
        _train_key(params),
        name=f"train {_title(params)}",
        params=_train_params(params),
        tags=_tags(params.train.select, learning=True),
    )


def _evaluate_run(params: Params, train_key: str) -> AbstractContextManager[tracking.Run]:
    return tracking.tracked(
        params.benchmark,
        "evaluate",
        _evaluate_key(params),
        name=_title(params),
        params=_evaluate_params(params),
        tags={
            **_tags(params.evaluate.select),
            tracking.CONFIGURATIONS: configuration(params),
        },
        parent_key=train_key,
    )


def _log_training(run: tracking.Run, thresholds: Mapping[str, Any]) -> None:
    for level, found in thresholds["levels"].items():
        if calibrated := found["calibrated"]:
            run.metric(f"threshold/{level}", calibrated["value"])
    _tag_revisions(run, thresholds)
    run.artifact(MODEL_FOLDER, "model")


def _log_evaluation(run: tracking.Run, thresholds: Mapping[str, Any]) -> None:
    from palimpsest.evaluation.summary import mlflow_metrics

    _tag_revisions(run, thresholds)
    for metric, value, step in mlflow_metrics(pd.read_parquet(RECORDS_FILE)):
        run.metric(metric, value, step)
    for metric, value in json.loads((ARTIFACTS / "metrics.json").read_text()).items():
        run.metric(metric, value)
    for file in (RECORDS_FILE, ARTIFACTS / "statistics.csv", ARTIFACTS / "revisions.csv"):
        run.artifact(file, "tables")
    run.artifact(MODEL_FOLDER / "thresholds.json", "tables")
    # what each prediction is held against, so that runs are compared from the store alone
    run.artifact(SAMPLES_FILE)
    run.artifact(PREDICTIONS_FILE)
    run.artifact(PLOTS_FOLDER, "plots")
    run.artifact(PAGES_FOLDER, "trajectories")


def _tag_revisions(run: tracking.Run, thresholds: Mapping[str, Any]) -> None:
    """Which weights the detector's models had, also where params leave that to the hub."""
    for setting, revision in thresholds["revisions"].items():
        run.tag(f"palimpsest.{setting}", revision)


def texts_folder(design: str, held_out: bool = False) -> Path:
    """Where a design's texts are; held-out generators' are apart, so that no training sees them."""
    return ARTIFACTS / ("texts-held-out" if held_out else "texts") / design


def text_files(design: str) -> list[Path]:
    """All files with texts of a design."""
    folders = (texts_folder(design, held_out) for held_out in (False, True))
    files = [file for folder in folders for file in sorted(folder.glob("*.parquet"))]
    if not files:
        raise InputError(
            f"{texts_folder(design)} does not exist: run `dvc repro generate`, or for another "
            f"design `dvc exp run -S evaluate.select.design={design}`"
        )
    return files


def _designs(params: Params) -> list[str]:
    return list(dict.fromkeys((params.train.select.design, params.evaluate.select.design)))


def _sizes() -> list["Size"]:
    from palimpsest.trajectories.assignments import Size

    if not DOCUMENTS_FILE.is_file():
        # `dvc repro` alone would go on to ask, and pay for, what a plan is to tell first
        raise InputError(f"{DOCUMENTS_FILE} does not exist: run `dvc repro corpus`")
    return [Size(d.doc_id, d.domain, len(d.sentences)) for d in read_documents(DOCUMENTS_FILE)]


def _documents(assignment: "Assignment") -> Iterator[Document]:
    return (d for d in read_documents(DOCUMENTS_FILE) if d.doc_id in assignment.documents)


def _require_prices(work: Iterable["Assignment"]) -> None:
    for assignment in work:
        if assignment.generator.price is None:
            name = assignment.brief.generator
            raise InputError(
                f"--max-cost needs a price: set generators.{name}.price in params.yaml"
            )


def _sources(select: Selection, learning: bool) -> list[tuple[Path, set[str]]]:
    """The folders of texts that a selection reads, each with the generators that it takes there."""
    pairs = [
        {
            (row["generator"], row["domain"])
            for row in read_rows(texts_folder(select.design, held), ["generator", "domain"])
        }
        for held in (False, True)
    ]
    if select.domains != "all":
        domains = {domain for found in pairs for _, domain in found}
        for name in sorted(set(select.domains) - domains):
            raise unknown("domain", name, domains)
    ordinary, held_out = ({generator for generator, _ in found} for found in pairs)
    known = ordinary if learning else ordinary | held_out
    match select.generators:
        case "all":
            wanted = known
        case "in-distribution":
            wanted = ordinary
        case "held-out":
            wanted = held_out
        case str() as name:
            wanted = {name}
        case names:
            wanted = set(names)
    for name in sorted(wanted - known):
        raise unknown("generator to learn from" if learning else "generator", name, known)
    parts = [(texts_folder(select.design), wanted & ordinary)]
    parts.append((texts_folder(select.design, held_out=True), wanted & held_out))
    return [(folder, names) for folder, names in parts if names]


def _batches(
    select: Selection,
    splits: set[str],
    columns: Sequence[str] | None = None,
    learning: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The samples that a selection names in these splits, in columns."""
    split_of = {row["doc_id"]: row["split"] for row in read_rows(SPLITS_FILE)}
    found = False
    for folder, names in _sources(select, learning):
        for batch in read_batches(folder, columns):
            facts = batch.select(["doc_id", "generator", "domain"]).to_pandas()
            chosen = facts["doc_id"].map(split_of).isin(splits)
            chosen &= facts["generator"].isin(names)
            if select.domains != "all":
                chosen &= facts["domain"].isin(select.domains)
            if chosen.any():
                found = True
                yield batch.filter(pa.array(chosen))
    if not found:
        raise InputError(
            f"no text of design {select.design} is in the splits {sorted(splits)}, domains "
            f"{select.domains} and generators {select.generators}: take more documents or others"
        )


def _selected(
    select: Selection, splits: set[str], learning: bool = False
) -> Iterator[tuple[dict[str, Any], str]]:
    """The same samples as rows, each with its split."""
    split_of = {row["doc_id"]: row["split"] for row in read_rows(SPLITS_FILE)}
    for batch in _batches(select, splits, learning=learning):
        for row in batch.to_pylist():
            yield row, split_of[row["doc_id"]]


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
        "detector": _title(params),
        "settings": _settings(params),
        "language": params.corpus.language,
        "code": short_digest(
            {
                module: sha256
                for module, sha256 in code_digests("train", _modules(params)).items()
                if module.startswith(("palimpsest.detectors", "palimpsest.statistics"))
                or module.partition(".")[0] != "palimpsest"
            }
        ),
    }


def _train_key(params: Params) -> str:
    inputs = {
        "texts": _texts_digest(params.train.select, learning=True),
        "splits": digest(SPLITS_FILE),
        **_weights(params),
    }
    return run_key("train", _train_params(params), inputs, _modules(params))


def _evaluate_key(params: Params) -> str:
    inputs = {
        "texts": _texts_digest(params.evaluate.select),
        "splits": digest(SPLITS_FILE),
        "model": digest(MODEL_FOLDER),
    }
    return run_key("evaluate", _evaluate_params(params), inputs, _modules(params))


def _train_params(params: Params) -> dict[str, Any]:
    regime = find(params.detector, params.detector_settings()).regime
    return {
        "detector": _title(params),
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
        "generators": " ".join(
            sorted(set().union(*(names for _, names in _sources(select, False))))
        ),
        "texts": _texts_digest(select),
        "splits": digest(SPLITS_FILE)[:12],
    }


def _title(params: Params) -> str:
    return title(params.detector, params.detector_settings())


def _settings(params: Params) -> dict[str, Any]:
    return resolved(params.detector, params.detector_settings())


def _weights(params: Params) -> dict[str, str]:
    """Which weights the detector's packaged models and those in folders have, by name."""
    values = flat(_settings(params)).values()
    names = sorted({value.partition("?")[0] for value in values if isinstance(value, str)})
    return {name: revision for name in names if (revision := local_revision(name))}


def _modules(params: Params) -> list[str]:
    return [find(params.detector, params.detector_settings()).module]


def _tags(select: Selection, learning: bool = False) -> dict[str, str]:
    prompts = {
        row["prompt_set"]
        for folder, names in _sources(select, learning)
        for row in read_rows(folder, columns=["prompt_set", "generator"])
        if row["generator"] in names
    }
    return {
        "texts": _texts_digest(select, learning),
        "splits": digest(SPLITS_FILE),
        "prompt_set": " ".join(sorted(prompts)),
    }


def _texts_digest(select: Selection, learning: bool = False) -> str:
    return short_digest([digest(folder) for folder, _ in _sources(select, learning)])


def _held_out(select: Selection) -> frozenset[str]:
    held_out = texts_folder(select.design, held_out=True)
    return frozenset(
        name for folder, names in _sources(select, False) if folder == held_out for name in names
    )


def _write_json(path: Path, content: Mapping[str, Any] | list[Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")
