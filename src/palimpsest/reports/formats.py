"""One table, four formats: Markdown, LaTeX with booktabs, CSV, and HTML."""

import re
from dataclasses import dataclass, field
from html import escape as html_escape
from pathlib import Path

import pandas as pd

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": r"$-$",
    "–": "--",
    "“": "``",
    "”": "''",
    **{character: f"${character}$" for character in "<>|"},
    **{character: f"\\{character}" for character in "&%$#_{}"},
}

PAGE_LINES = 40  # of a table's rows and notes that a page of LaTeX's article class surely holds


@dataclass(frozen=True, slots=True)
class Table:
    """Printed cells, and `data`: the same numbers unrounded, each with the run that it is from.

    `groups` are (title, number of columns) above the header; the first column starts a block where
    it is not empty. `sources` are the ids of the runs behind each row, none for printed numbers;
    `lists_runs` where a link to a run leads to its row here.
    """

    name: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    data: pd.DataFrame
    groups: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sources: list[tuple[str, ...]] = field(default_factory=list)
    lists_runs: bool = False


def write(table: Table, folder: Path) -> list[Path]:
    """Write a table in the formats that are files and return these."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        ".md": markdown(table),
        ".tex": latex(table),
        ".csv": table.data.to_csv(index=False),
    }
    paths = []
    for suffix, content in files.items():
        path = folder / (table.name + suffix)
        path.write_text(content, encoding="utf-8")
        paths.append(path)
    return paths


def markdown(table: Table) -> str:
    """Markdown has no spanning headers, so a group's title is put before its columns' names."""
    titles = [title for title, width in table.groups for _ in range(width)]
    header = [
        f"{title} {name}".strip()
        for title, name in zip(titles or [""] * len(table.header), table.header, strict=True)
    ]
    lines = [f"**{table.caption}**", ""]
    lines.append("| " + " | ".join(header) + " |")
    first = table.rows[0] if table.rows else [""] * len(header)
    lines.append("|" + "|".join(" --- " if _kind(cell) else " ---: " for cell in first) + "|")
    for row in table.rows:
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |")
    lines += ["", *[f"{note}  " for note in table.notes]]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """A float for booktabs; of what a page cannot hold a longtable, with its notes below it."""
    columns = "l" + "r" * (len(table.header) - 1)
    caption = rf"\caption{{{escape(table.caption)}}}"
    notes = [rf"\par\footnotesize {escape(note)}" for note in table.notes]
    body = _latex_rows(table)
    if _lines(table) > PAGE_LINES:
        lines = [r"\begingroup\small\setlength{\parindent}{0pt}"]
        lines += [rf"\begin{{longtable}}{{{columns}}}", caption + r"\\"]
        lines += [*_latex_header(table), r"\endhead", r"\bottomrule", r"\endfoot"]
        lines += [*body, r"\end{longtable}", *notes, r"\par\endgroup"]
    else:
        lines = [r"\begin{table}", r"\centering", r"\small", caption]
        lines += [rf"\begin{{tabular}}{{{columns}}}", *_latex_header(table)]
        lines += [*body, r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}"]
    return "\n".join(lines) + "\n"


def _lines(table: Table) -> float:
    """About how many lines a table takes under its header: rows, space between blocks, notes."""
    blocks = sum(bool(row[0]) for row in table.rows)
    return len(table.rows) + blocks / 2 + sum(1 + len(note) // 90 for note in table.notes)


def _latex_header(table: Table) -> list[str]:
    lines = [r"\toprule"]
    if table.groups:
        spans = [rf"\multicolumn{{{n}}}{{c}}{{{escape(title)}}}" for title, n in table.groups]
        lines.append(" & ".join(spans) + r" \\")
    return [*lines, " & ".join(map(escape, table.header)) + r" \\", r"\midrule"]


def _latex_rows(table: Table) -> list[str]:
    lines = []
    for i, row in enumerate(table.rows):
        if i and row[0]:
            lines.append(r"\addlinespace")
        lines.append(" & ".join(map(escape, row)) + r" \\")
    return lines


def escape(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(_LATEX.get(character, character) for character in text)


def html(table: Table) -> str:
    """The table alone; a row's first cell leads to its runs (`#run-<id>`), its title names them."""
    lines = ['<div class="wide"><table>', "<thead>"]
    if table.groups:
        spans = [f'<th colspan="{n}">{html_escape(title)}</th>' for title, n in table.groups]
        lines.append("<tr>" + "".join(spans) + "</tr>")
    kinds = [_kind(cell) for cell in table.rows[0]] if table.rows else [""] * len(table.header)
    names = [f"<th{k}>{html_escape(n)}</th>" for k, n in zip(kinds, table.header, strict=True)]
    lines.append("<tr>" + "".join(names) + "</tr></thead><tbody>")
    listed: set[str] = set()
    for row, runs in zip(table.rows, table.sources or [()] * len(table.rows), strict=True):
        start = ' class="start"' if row[0] else ""
        title = f' title="run {", ".join(runs)}"' if runs else ""
        anchor = ""
        first, *rest = map(_cell, row)
        if table.lists_runs:
            if runs[0] not in listed:
                anchor = f' id="run-{runs[0]}"'
            listed.update(runs)
        elif runs and row[0]:
            first = f'<td><a href="#run-{runs[-1]}">{html_escape(row[0])}</a></td>'
        lines.append(f"<tr{anchor}{start}{title}>{first}{''.join(rest)}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return f"<td{_kind(text)}>{html_escape(text)}</td>"


def _kind(text: str) -> str:
    """Numbers stand right, as the page's style has it, words left."""
    return "" if re.match(r"<?[\d−–]|$", text) else ' class="text"'
