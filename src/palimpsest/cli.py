"""The command `palimpsest`: the stages that DVC runs, and what a user does beside them."""

import argparse
import errno
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palimpsest.errors import InputError
from palimpsest.stages import STAGES

if TYPE_CHECKING:
    from palimpsest.params import Params

log = logging.getLogger("palimpsest")

DESIGNS = ("cumulative", "independent", "coverage", "operation")
LISTED = 20  # trajectories that `view` names


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 for what the user must mend, 130 after Ctrl-C."""
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.captureWarnings(True)
    # Heavy libraries announce themselves; what a user must know, palimpsest says itself.
    for noisy in ("httpx", "httpx2", "urllib3", "matplotlib", "alembic", "mlflow", "transformers"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    # peft asks transformers for it by its old name
    warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    try:
        arguments.run(arguments)
    except InputError as error:
        log.error("palimpsest: %s", error)
        return 2
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        log.error("palimpsest: %s: free some space and run the same command again", error)
        return 2
    except KeyboardInterrupt:
        log.error("palimpsest: stopped; run the same command again to resume")
        return 130
    return 0


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Help that names the defaults of options that have one, and leaves examples unbroken."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or isinstance(action.default, bool | tuple):
            return action.help
        return super()._get_help_string(action)


class _Command(argparse.ArgumentParser):
    def __init__(self, **given: Any) -> None:
        super().__init__(formatter_class=_Help, **given)


def _parser() -> argparse.ArgumentParser:
    parser = _Command(prog="palimpsest", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name in STAGES:
        stage = commands.add_parser(name, help=f"the stage `{name}`, as `dvc repro` runs it")
        stage.set_defaults(run=_stage, stage=name)
        if name == "generate":
            stage.epilog = "example:\n  palimpsest generate --max-cost 50"
            stage.add_argument("--plan", action="store_true",
                               help="only print requests, tokens and cost")  # fmt: skip
            stage.add_argument("--max-cost", type=float, metavar="USD",
                               help="send no more requests when so much is spent")  # fmt: skip

    data = commands.add_parser("data", help="fill data/ with the demo or with texts of your own")
    kinds = data.add_subparsers(required=True, metavar="kind")
    demo = kinds.add_parser("demo", help="the demo's texts, as data.dvc records them")
    demo.set_defaults(run=_data_demo)
    release = kinds.add_parser(
        "release",
        help="the OpAI-Bench dataset from the Hugging Face hub",
        epilog="example:\n  palimpsest data release OpAI-Bench1/OpAI-Bench@main",
    )
    release.add_argument("name", nargs="?", default="OpAI-Bench1/OpAI-Bench",
                         help="OWNER/NAME or OWNER/NAME@REVISION")  # fmt: skip
    release.add_argument("--folder", type=Path, default=Path("data/release"), help="where to")
    release.set_defaults(run=_data_release)
    own = kinds.add_parser(
        "add",
        help="a CSV, TSV, JSONL or Parquet file of human texts",
        epilog="example:\n  palimpsest data add --domain essays --id-column essay_id "
        "--text-column full_text train.csv",
    )
    own.add_argument("source", type=Path, help="the file")
    own.add_argument("--domain", required=True, help="what its texts are called in all tables")
    own.add_argument("--id-column", default="id", metavar="NAME", help="the texts' ids")
    own.add_argument("--text-column", default="text", metavar="NAME", help="the texts")
    own.add_argument("--folder", type=Path, default=Path("data/opai-bench"), help="where to")
    own.set_defaults(run=_data_add)

    store = commands.add_parser("store", help="create the MLflow store, so that no two jobs race")
    store.set_defaults(run=_store)
    ui = commands.add_parser("ui", help="open the MLflow UI on the project's store")
    ui.add_argument("--port", type=int, default=5000, help="on 127.0.0.1")
    ui.set_defaults(run=_ui)
    tables = commands.add_parser(
        "tables",
        help="write reports/ from the MLflow store",
        epilog="example:\n  palimpsest tables --only 'Table 8' 'Figure 20'",
    )
    tables.add_argument("--folder", type=Path, default=Path("reports"), help="where to")
    tables.add_argument("--texts", nargs="+", default=(), metavar="DIGEST",
                        help="runs on these texts, not on the newest")  # fmt: skip
    tables.add_argument("--only", nargs="+", default=(), metavar="ENTRY", help="only these")
    tables.set_defaults(run=_tables)
    view = commands.add_parser(
        "view",
        help="one trajectory as an HTML page",
        epilog="example:\n  palimpsest view love/smollm2/cumulative",
    )
    view.add_argument("trajectory_id", nargs="?", help="without it: the ids that there are")
    view.add_argument("--design", choices=DESIGNS, default=DESIGNS[0], help="of the texts")
    view.add_argument("--output", type=Path, default=Path("reports/trajectory.html"),
                      help="where to")  # fmt: skip
    view.set_defaults(run=_view)
    experiment = commands.add_parser(
        "experiment",
        help="run what is left of an experiment",
        epilog="example:\n  palimpsest experiment cumulative-vs-independent --jobs 2",
    )
    experiment.add_argument("name", nargs="?", help="without it: all experiments and their state")
    experiment.add_argument("--size", choices=("demo", "paper"), default="demo",
                            help="experiments/sizes/ has what they mean")  # fmt: skip
    experiment.add_argument("--jobs", type=int, default=1, help="runs at once")
    experiment.set_defaults(run=_experiment)
    sheet = commands.add_parser(
        "review",
        help="a sheet of revisions to check by hand, and its sums",
        epilog="example:\n  palimpsest review --sample 100\n"
        "  palimpsest review --read reports/review.csv",
    )
    sheet.add_argument("--sample", type=int, default=50, help="how many revisions")
    sheet.add_argument("--seed", type=int, default=0, help="of the choice")
    sheet.add_argument("--design", choices=DESIGNS, default=DESIGNS[0], help="of the texts")
    sheet.add_argument("--output", type=Path, default=Path("reports/review"), help="where to")
    sheet.add_argument("--read", type=Path, metavar="CSV", help="sum up a filled-in sheet instead")
    sheet.set_defaults(run=_review)
    params = commands.add_parser(
        "params",
        help="params and their values in force, or the nearest to a misspelt key",
        epilog="example:\n  palimpsest params detectors.genai-sentence",
    )
    params.add_argument("key", nargs="?", help="only this one or what is below it")
    params.set_defaults(run=_params)
    export = commands.add_parser(
        "export",
        help="write the texts in another project's format",
        epilog="example:\n  palimpsest export --format opai-bench --output release",
    )
    export.add_argument("--format", choices=("opai-bench",), required=True, help="whose format")
    export.add_argument("--output", type=Path, required=True, help="a new folder")
    export.add_argument("--design", choices=DESIGNS, action="append",
                        help="may be repeated; without it all that are built")  # fmt: skip
    export.set_defaults(run=_export)
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
    from palimpsest.detectors.registry import check_settings

    # A misspelt detector key must not wait for hours of generation.
    check_settings(params.detector, params.detector_settings())
    if arguments.stage != "generate":
        stage_function(arguments.stage)(params)
    elif arguments.plan:
        from palimpsest.stages.plan import plan

        plans = plan(params)
        # pandas' own formatters leave out what is missing
        plans["cost_left"] = plans["cost_left"].map(_dollars)
        print(plans.to_string(index=False))
    else:
        from palimpsest.stages.generate import generate

        generate(params, arguments.max_cost)


def stage_function(name: str) -> Callable[["Params"], None]:
    """The function of a stage's module; no other stage's is imported, for some take seconds."""
    function: Callable[[Params], None] = getattr(import_module(f"palimpsest.stages.{name}"), name)
    return function


def _dollars(cost: float | None) -> str:
    return "no price" if cost is None or cost != cost else f"${cost:,.2f}"


def _data_demo(_: argparse.Namespace) -> None:
    from palimpsest.corpora.data_folder import fill

    fill(Path("data/opai-bench"), Path("data.dvc"))


def _data_release(arguments: argparse.Namespace) -> None:
    from palimpsest.corpora.opai_bench import fetch

    fetch(arguments.name, arguments.folder)
    log.info(
        "next: dvc add %s; dvc exp run -S corpus.source=%s -S corpus.format=opai-bench",
        arguments.folder, arguments.folder,
    )  # fmt: skip


def _data_add(arguments: argparse.Namespace) -> None:
    from palimpsest.corpora.own import add

    count = add(
        arguments.folder,
        arguments.source,
        arguments.domain,
        arguments.id_column,
        arguments.text_column,
    )
    log.info("%s: %d texts; next: dvc add %s", arguments.domain, count, arguments.folder)


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
    from palimpsest.reports.report import write_report
    from palimpsest.reports.runs import choose
    from palimpsest.tracking import evaluations

    benchmark = load_params().benchmark
    runs = choose(evaluations(benchmark), arguments.texts)
    _name(write_report(runs, arguments.folder, benchmark, arguments.only))


def _name(paths: Sequence[Path]) -> None:
    """All of a few files; of a whole report the page that holds the rest."""
    if paths[0].name != "index.html":
        print(*paths, sep="\n")
        return
    print(paths[0])
    log.info("%d more files beside it", len(paths) - 1)


def _list(lines: Iterable[str]) -> None:
    """Print lines for as long as somebody reads them: `head` takes only the first."""
    try:
        print(*lines, sep="\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit


def _view(arguments: argparse.Namespace) -> None:
    from palimpsest.params import load_params
    from palimpsest.reports import viewer
    from palimpsest.stages.files import text_files

    files = text_files(arguments.design)
    if arguments.trajectory_id is None:
        ids = viewer.trajectory_ids(files)
        _list(ids[:LISTED])
        log.info("%d trajectories in all; `palimpsest view ID` shows one", len(ids))
        return
    rows = viewer.read_trajectory(files, arguments.trajectory_id)
    predictions = viewer.predictions_of_runs(load_params().benchmark, rows)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(viewer.render(rows, predictions), encoding="utf-8")
    print(arguments.output)


def _review(arguments: argparse.Namespace) -> None:
    from palimpsest.reports import review
    from palimpsest.stages.files import text_files

    if arguments.read:
        print(review.read(arguments.read).to_string(index=False))
        return
    items = review.sample(text_files(arguments.design), arguments.sample, arguments.seed)
    for path in review.write(items, arguments.output):
        print(path)


def _experiment(arguments: argparse.Namespace) -> None:
    from palimpsest import experiments

    if arguments.name is None:
        _list(experiments.listing(arguments.size))
        return
    _name(experiments.report(arguments.name, arguments.size, arguments.jobs))


def _params(arguments: argparse.Namespace) -> None:
    from palimpsest.params import in_force, load_params

    values = in_force(load_params(), arguments.key)
    _list(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values.items())


def _export(arguments: argparse.Namespace) -> None:
    from palimpsest.records import read_rows
    from palimpsest.reports.export import export_opai_bench
    from palimpsest.stages.files import SPLITS_FILE, text_files, texts_folder

    designs = arguments.design or [d for d in DESIGNS if texts_folder(d).is_dir()]
    rows = (row for design in designs for file in text_files(design) for row in read_rows(file))
    split_of = {row["doc_id"]: row["split"] for row in read_rows(SPLITS_FILE)}
    count = export_opai_bench(rows, split_of, arguments.output)
    log.info("%s: %d samples", arguments.output, count)


def _track(_: argparse.Namespace) -> None:
    from palimpsest.params import load_params
    from palimpsest.stages.runs import track

    track(load_params())


def _detectors(_: argparse.Namespace) -> None:
    from palimpsest.detectors.catalogue import ability, models_of
    from palimpsest.detectors.registry import REGISTRY
    from palimpsest.params import PROFILES, load_params

    params = load_params()
    head = ("detector", "level", "family", "regime", "paper")
    rows = [(n, e.native, e.family or "-", e.regime, e.paper) for n, e in REGISTRY.items()]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(map(str.ljust, head, widths)).rstrip()]
    for row, (name, entry) in zip(rows, REGISTRY.items(), strict=True):
        lines.append("  ".join(map(str.ljust, row, widths)).rstrip())
        for params.profile in PROFILES:
            models = models_of(params.detector_settings(name))
            able = ability(entry, models, params.device, params.dtype)
            lines.append(f"    {params.profile:5}  {' + '.join(models) or 'no model'}: {able}")
    _list(lines)


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
