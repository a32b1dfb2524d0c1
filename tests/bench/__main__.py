"""Measure what docs/performance.md states: `make bench`, or `python -m tests.bench NAME ...`.

Each module of this folder has a function `measure` and runs in a process of its own, so that its
peak memory is its own, too.
"""

import importlib
import logging
import resource
import subprocess
import sys
from pathlib import Path

log = logging.getLogger("bench")

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def run(name: str) -> None:
    module = importlib.import_module(f"tests.bench.{name}")
    log.info("%s: %s", name, module.__doc__)
    for what, value in module.measure().items():
        log.info("  %-64s %12.6g", what, value)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    log.info(
        "  %-64s %12.6g", "peak memory, GiB", peak / 2 ** (20 if sys.platform == "linux" else 30)
    )


def main(names: list[str]) -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if len(names) == 1:
        run(names[0])
        return 0
    command = [sys.executable, "-m", "tests.bench"]
    codes = [subprocess.run([*command, name]).returncode for name in names or NAMES]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
