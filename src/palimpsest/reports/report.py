"""The whole report: every table and figure as files, and one page that holds them all."""

from base64 import b64encode
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from palimpsest.errors import InputError
from palimpsest.evaluation.report import MEAN
from palimpsest.reports import figures, findings, formats
from palimpsest.reports.catalogue import Entry, entries
from palimpsest.reports.figures import Figure
from palimpsest.reports.formats import Table
from palimpsest.reports.runs import Runs, model_names
from palimpsest.reports.tables import MissingError
from palimpsest.tracking import LostArtifactError

FOLDERS = ("tables", "figures")


@dataclass(frozen=True, slots=True)
class Section:
    """An entry with what it came to: its parts, or the reason why it is missing."""

    entry: Entry
    parts: Sequence[Table | Figure] = field(default_factory=list)
    reason: str = ""

    @property
    def heading(self) -> str:
        """What the first part calls itself, which for a missing one is the entry's own title."""
        if self.parts and self.parts[0].caption.startswith(self.entry.number):
            return self.parts[0].caption
        return f"{self.entry.number}: {self.entry.title}"


def write_report(
    runs: Runs, folder: Path, benchmark: str, only: Collection[str] = ()
) -> list[Path]:
    """Write a benchmark's tables and figures and return the files, `index.html` first.

    `only` names entries ("Table 8"); then just their files are written and no index.

    Raises:
        InputError: an entry that there is not, or nothing of what `only` names can be filled.
    """
    chosen = entries(benchmark)
    if only:
        numbers = {entry.number for entry in chosen}
        if unknown := set(only) - numbers:
            raise InputError(
                f"no {', '.join(sorted(unknown))} in the report; there are "
                f"{', '.join(sorted(numbers))}"
            )
        chosen = tuple(entry for entry in chosen if entry.number in only)
    sections = [_section(entry, runs) for entry in chosen]
    paths = []
    for section in sections:
        for name in FOLDERS:  # of an older report, perhaps with more
            for old in (folder / name).glob(section.entry.slug + "*"):
                old.unlink()
        for part in section.parts:
            kind = figures if isinstance(part, Figure) else formats
            paths += kind.write(part, folder / FOLDERS[isinstance(part, Figure)])
    if only:
        if not paths:
            reasons = (f"{section.entry.number}: {section.reason}" for section in sections)
            raise InputError("; ".join(reasons))
        return paths
    index = folder / "index.html"
    index.write_text(page(sections, runs, benchmark), encoding="utf-8")
    paths += _write_findings(sections, folder)
    readable = folder / "index.md"
    readable.write_text(_markdown(sections, runs), encoding="utf-8")
    return [index, readable, *paths]


def _write_findings(sections: Sequence[Section], folder: Path) -> list[Path]:
    """The findings once more where one looks for them: `findings.md` and `findings.json`."""
    files = (folder / "findings.md", folder / "findings.json")
    for path in files:
        path.unlink(missing_ok=True)
    for section in sections:
        for part in section.parts:
            if section.entry.slug == "findings" and isinstance(part, Table):
                files[0].write_text(formats.markdown(part), encoding="utf-8")
                files[1].write_text(findings.as_json(part), encoding="utf-8")
                return list(files)
    return []


def _section(entry: Entry, runs: Runs) -> Section:
    try:
        return Section(entry, entry.make(runs))
    except (MissingError, LostArtifactError) as reason:
        return Section(entry, reason=str(reason))


def page(sections: Sequence[Section], runs: Runs, benchmark: str) -> str:
    """A page that needs no network, with its figures inside."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    environment.filters["table"] = formats.html
    environment.tests["figure"] = lambda part: isinstance(part, Figure)
    environment.filters["base64"] = lambda content: b64encode(content).decode()
    return environment.get_template("page.html").render(
        benchmark=benchmark,
        sections=[section for section in sections if section.parts],
        absent=[section for section in sections if not section.parts],
        differences=differences(runs),
        left_out=runs.left_out,
        demo=runs.is_demo,
    )


def _markdown(sections: Sequence[Section], runs: Runs) -> str:
    lines = ["# What differs from the paper", "", *(f"- {d}" for d in differences(runs)), ""]
    for section in sections:
        for part in section.parts:
            if isinstance(part, Figure):
                lines += [f"![{part.caption}](figures/{part.name}.png)", "", f"**{part.caption}**",
                          "", *[f"{note}  " for note in part.notes], ""]  # fmt: skip
            else:
                lines.append(formats.markdown(part))
    lines += ["# Missing", ""]
    lines += [f"- {s.heading}: {s.reason}" for s in sections if s.reason]
    return "\n".join(lines) + "\n"


def differences(runs: Runs) -> list[str]:
    """What a reader must know before comparing these numbers with the paper's, one fact a line."""

    def listed(values: Iterable[str]) -> str:
        return ", ".join(sorted(set(values))) or "none"

    params = [run.params for run in runs.evaluations]
    generators = listed(name for p in params for name in p["generators"].split())
    prompts = listed(run.tags.get("prompt_set", "unknown") for run in runs.evaluations)
    models = listed(model_names(run) for run in runs.evaluations if model_names(run) != "–")
    sizes = sorted({_samples(run.records) for run in runs.evaluations})
    facts = [
        f"Texts: revised by {generators} with the prompts {prompts}; the paper's by GPT-5.4, "
        "GPT-5.4-nano and Gemini-2.5-Flash, and by Qwen3-8B, which is held out.",
        f"Size: {' or '.join(f'{n:,}' for n in sizes)} test samples in a run; the paper's test "
        "split has 41,400.",
        f"Models of the detectors: profile {listed(p['profile'] for p in params)}, {models}. Table "
        "7 and the list of runs say which run has which.",
        f"Regimes: {listed(p['regime'] for p in params)}. The paper's tables print zero-shot "
        "detectors and LLMs only; trained detectors are in its figures.",
        "Thresholds: a detector without a published threshold has one that is calibrated on human "
        "dev texts; the paper does not say what it takes.",
    ]
    if runs.is_demo:
        facts.insert(0, "This is a demo: small models and few documents, no benchmark results.")
    return facts


def _samples(records: pd.DataFrame) -> int:
    """How many samples a run was judged on."""
    scored = records[
        (records["level"] == "document")
        & (records["metric"] == "scored")
        & (records["generator"] != MEAN)
        & (records["domain"] != MEAN)
    ]
    return int((scored["n"] + scored["n_unscored"]).sum())
