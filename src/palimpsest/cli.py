"""The command `palimpsest`: the stages that DVC runs, and what a user does beside them."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from palimpsest.errors import InputError

log = logging.getLogger("palimpsest")

STAGE_NAMES = ("corpus", "generate", "split", "train", "evaluate")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 for a mistake in the input, 130 after Ctrl-C."""
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.captureWarnings(True)
    # Heavy libraries announce themselves; what a user must know, palimpsest says itself.
    for noisy in ("httpx", "urllib3", "matplotlib", "alembic", "mlflow", "transformers"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    try:
        arguments.run(arguments)
    except InputError as error:
        log.error("palimpsest: %s", error)
        return 2
    except KeyboardInterrupt:
        log.error("palimpsest: stopped; run the same command again to resume")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="palimpsest", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name in STAGE_NAMES:
        stage = commands.add_parser(name, help=f"the stage `{name}`, as `dvc repro` runs it")
        stage.set_defaults(run=_stage, stage=name)

    data = commands.add_parser("data", help="fill data/ with the demo or with texts of your own")
    kinds = data.add_subparsers(required=True, metavar="kind")
    demo = kinds.add_parser("demo", help="the demo's texts, as data.dvc records them")
    demo.set_defaults(run=_data_demo)
    own = kinds.add_parser("add", help="a CSV, TSV, JSONL or Parquet file of human texts")
    own.add_argument("source", type=Path)
    own.add_argument("--domain", required=True)
    own.add_argument("--id-column", default="id")
    own.add_argument("--text-column", default="text")
    own.add_argument("--folder", type=Path, default=Path("data/opai-bench"))
    own.set_defaults(run=_data_add)

    store = commands.add_parser("store", help="create the MLflow store, so that no two jobs race")
    store.set_defaults(run=_store)
    ui = commands.add_parser("ui", help="open the MLflow UI on the project's store")
    ui.add_argument("--port", type=int, default=5000)
    ui.set_defaults(run=_ui)
    tables = commands.add_parser("tables", help="write reports/ from the MLflow store")
    tables.add_argument("--folder", type=Path, default=Path("reports"))
    tables.set_defaults(run=_tables)
    view = commands.add_parser("view", help="one trajectory as an HTML page")
    view.add_argument("trajectory_id")
    view.add_argument("--design", default="cumulative")
    view.add_argument("--output", type=Path, default=Path("reports/trajectory.html"))
    view.set_defaults(run=_view)
    track = commands.add_parser("track", help="log the run behind the present outputs, if missing")
    track.set_defaults(run=_track)
    detectors = commands.add_parser("detectors", help="list the detectors")
    detectors.set_defaults(run=_detectors)
    cache = commands.add_parser("cache", help="what the store of token statistics holds")
    cache.set_defaults(run=_cache)
    clear = cache.add_subparsers(metavar="action").add_parser("clear", help="forget all of it")
    clear.add_argument("--model", metavar="NAME", help="forget only what this model read")
    clear.set_defaults(run=_cache_clear)
    return parser


def _stage(arguments: argparse.Namespace) -> None:
    from palimpsest.params import load_params

    params = load_params()
    if params.profile == "demo":
        os.environ["HF_HUB_OFFLINE"] = "1"
    from palimpsest import stages
    from palimpsest.detectors.registry import check_settings

    # A misspelt detector key must not wait for hours of generation.
    check_settings(params.detector, params.detector_settings())
    stages.STAGES[arguments.stage](params)


def _data_demo(_: argparse.Namespace) -> None:
    from palimpsest.corpora.data_folder import fill

    fill(Path("data/opai-bench"), Path("data.dvc"))


def _data_add(arguments: argparse.Namespace) -> None:
    from palimpsest.corpora.own import add

    count = add(
        arguments.folder,
        arguments.source,
        arguments.domain,
        arguments.id_column,
        arguments.text_column,
    )
    log.info("%s: %d texts; next: dvc add data/opai-bench", arguments.domain, count)


def _store(_: argparse.Namespace) -> None:
    from palimpsest.params import load_params
    from palimpsest.tracking import create_store

    create_store(load_params().benchmark)


def _ui(arguments: argparse.Namespace) -> None:
    from palimpsest.tracking import store_uri

    command = [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1"]
    command += ["--port", str(arguments.port), "--backend-store-uri", store_uri()]
    log.info("MLflow at http://127.0.0.1:%d (Ctrl-C ends it)", arguments.port)
    os.execv(command[0], command)


def _tables(arguments: argparse.Namespace) -> None:
    from palimpsest.params import load_params
    from palimpsest.reports.tables import write_tables
    from palimpsest.tracking import evaluations

    for path in write_tables(evaluations(load_params().benchmark), arguments.folder):
        print(path)


def _view(arguments: argparse.Namespace) -> None:
    from palimpsest.records import read_rows
    from palimpsest.reports.viewer import read_trajectory, render
    from palimpsest.stages import PREDICTIONS_FILE, texts_folder

    rows = read_trajectory(texts_folder(arguments.design), arguments.trajectory_id)
    predictions = read_rows(PREDICTIONS_FILE) if PREDICTIONS_FILE.is_file() else iter(())
    scores = {row["sample_id"]: row for row in predictions}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(render(rows, scores), encoding="utf-8")
    print(arguments.output)


def _track(_: argparse.Namespace) -> None:
    from palimpsest.params import load_params
    from palimpsest.stages import track

    track(load_params())


def _detectors(_: argparse.Namespace) -> None:
    from palimpsest.detectors.catalogue import ability, models_of
    from palimpsest.detectors.registry import REGISTRY
    from palimpsest.params import PROFILES, load_params

    params = load_params()
    rows = []
    for name, entry in sorted(REGISTRY.items()):
        row = [name, entry.native, entry.family or "-", entry.regime, entry.paper]
        for params.profile in PROFILES:
            models = models_of(params.detector_settings(name))
            row.append(f"{params.profile}: {' + '.join(models) or 'no model'}")
            row.append(ability(entry, models))
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _cache(_: argparse.Namespace) -> None:
    from palimpsest.statistics.cache import Cache

    cache = Cache.of_user()
    usage = cache.usage()
    entries, size = sum(one.entries for one in usage), sum(one.bytes for one in usage)
    print(f"{cache.path}: {entries} entries, {size / 2**20:.1f} of {cache.limit / 2**20:.0f} MiB")
    for one in usage:
        print(f"{one.entries:9} {one.bytes / 2**20:9.1f} MiB  {one.model}")


def _cache_clear(arguments: argparse.Namespace) -> None:
    from palimpsest.statistics.cache import Cache

    print(f"forgot {Cache.of_user().clear(arguments.model)} entries")
