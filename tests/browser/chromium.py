"""Headless Chromium, as a reader opens a page: its DOM, its screenshot, its console."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
_CONSOLE = re.compile(r'CONSOLE:\d+\] "(.*)", source')


def find() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass(frozen=True, slots=True)
class Page:
    dom: str
    console: list[str]
    screenshot: Path


def visit(url: str, screenshot: Path, size: tuple[int, int], seconds: int = 5) -> Page:
    """Open a page, let its scripts run for so many (virtual) seconds, and look at it."""
    program = find()
    assert program is not None, "the tests are skipped without Chromium"
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        f"--user-data-dir={screenshot.parent / 'profile'}",
        f"--window-size={size[0]},{size[1]}",
        f"--virtual-time-budget={1000 * seconds}",
        "--enable-logging=stderr",
        "--v=0",
    ]
    found = {}
    for wanted in ("--dump-dom", f"--screenshot={screenshot}"):
        found[wanted] = subprocess.run(
            [program, *options, wanted, url],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    dom = found["--dump-dom"]
    return Page(dom.stdout, _CONSOLE.findall(dom.stderr), screenshot)
