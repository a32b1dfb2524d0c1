"""The one-pass engine against a plain loop, over the same model in the same run."""

import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from unittest.mock import patch

import torch

from palimpsest.detectors.interface import Runtime
from palimpsest.detectors.registry import REGISTRY, make
from palimpsest.records import Text, word_spans
from palimpsest.statistics import criteria
from palimpsest.statistics.cache import Cache
from palimpsest.statistics.columns import columns
from palimpsest.statistics.engine import Engine, Reading
from palimpsest.statistics.passes import Pass, SinglePass, read_texts
from palimpsest.statistics.reference import Reference
from palimpsest.statistics.tokens import Read, TokenStatistics

MODEL = "pip:smollm2"
MAX_TOKENS = 1024
CPU = Runtime(device="cpu")
PANEL = tuple(name for name, entry in REGISTRY.items() if entry.family == "one model")


def measure(texts: int = 200, plain: int = 15, long_words: int = 20_000) -> dict[str, float]:
    """Ratios, and memory in GiB; `plain` of the texts go through the plain loop.

    The plain loop reads each text once for each detector, as the methods' own scripts do, and keeps
    the logits of all positions at once.
    """
    corpus = list(islice(_texts(), texts))
    reference = Reference.load(MODEL, None, "cpu", "float32")
    read_texts(SinglePass(reference), corpus[:2], max_tokens=MAX_TOKENS)  # warms up

    def loop_seconds() -> float:
        return _seconds(lambda: _plain_loop(reference, corpus[:plain])) / plain * texts

    before = loop_seconds()
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder, "statistics.sqlite"), 2**32)
        with patch.object(Cache, "of_user", return_value=cache):
            first = _seconds(lambda: _panel(corpus))
            second = _seconds(lambda: _panel(corpus))
    by_loop = (before + loop_seconds()) / 2  # other work on the machine slows both alike

    some = corpus[: max(8, texts // 8)]
    # alternately and for some seconds each, so that other work on the machine slows all alike
    rounds = [(*_pass_seconds(reference, some), _product_seconds()) for _ in range(3)]
    bare, full, product = (min(times) for times in zip(*rounds, strict=True))
    tokens = sum(len(reference.encode(text).ids) for text in some)
    return {
        "panel, times the plain loop's throughput": by_loop / first,
        "panel from the cache, times the plain loop's throughput": by_loop / second,
        "statistics, % of the bare forward pass": 100 * (full / bare - 1),
        "pass, % of the matrix-product rate": 100
        * _flops(reference, tokens)
        / full
        * product
        / 2**31,
        "tokens/s of a pass": tokens / full,
        "memory for 64 texts, GiB": _peak(64, 60),
        "memory for 320 texts, GiB": _peak(320, 60),
        f"memory for a text of {long_words:,} words, GiB": _peak(1, long_words),
    }


def _texts(words: int = 200) -> Iterator[str]:
    """Texts of so many words, each beginning elsewhere in the example's essays; all differ."""
    lines = Path("docs/example/essays.jsonl").read_text(encoding="utf-8").splitlines()
    source = " ".join(json.loads(line)["text"] for line in lines).split()
    for start in range(len(source)):
        yield " ".join(islice(cycle(source), start, start + words + start % 97))


def _panel(corpus: Sequence[str]) -> None:
    texts = [Text(str(i), t, "en", "essays", (), word_spans(t, "en")) for i, t in enumerate(corpus)]
    for name in PANEL:
        make(name, {"model": MODEL, "max_tokens": MAX_TOKENS}, CPU).score(texts)


_CRITERIA: tuple[Callable[[TokenStatistics], float], ...] = (
    criteria.log_likelihood,
    criteria.entropy,
    criteria.rank,
    criteria.log_rank,
    criteria.lrr,
    criteria.fast_detectgpt,
    lambda tokens: criteria.lastde(tokens, embedding=3, bins_per_token=10, scales=5),
)


@torch.inference_mode()
def _plain_loop(reference: Reference, corpus: Sequence[str]) -> None:
    for criterion in _CRITERIA:
        for text in corpus:
            encoded = reference.encode(text)
            ids = torch.from_numpy(encoded.ids)
            logits = reference.model(input_ids=ids[None]).logits[0]
            rows = columns(logits, torch.cat([ids[1:], ids[:1]])).numpy()
            criterion(TokenStatistics.of(Read(rows, encoded.char_start[1:], encoded.char_end[1:])))


class _BarePass(Pass):
    """The logits of every position, and nothing kept of them but one number each."""

    width = 1

    @staticmethod
    def columns(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return logits[:, :1].T


def _pass_seconds(reference: Reference, corpus: Sequence[str]) -> tuple[float, float]:
    def run(kind: Pass) -> float:
        return _seconds(lambda: read_texts(kind, corpus, max_tokens=MAX_TOKENS))

    return run(_BarePass(reference)), run(SinglePass(reference))


def _flops(reference: Reference, tokens: int) -> float:
    """Two for each weight and token; attention's own products are left out."""
    # SmolLM2's head is its embedding, so that all of its weights are multiplied with
    return 2.0 * int(sum(p.numel() for p in reference.model.parameters())) * tokens


def _product_seconds(repeats: int = 60) -> float:
    """Of one product of 1,024 x 1,024 matrices: 2^31 operations."""
    one, other = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return _seconds(lambda: [one @ other for _ in range(repeats)]) / repeats


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _peak(texts: int, words: int) -> float:
    """GiB that a process of its own needs at most to read so many texts of so many words."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_read_and_weigh, texts, words).result()


def _read_and_weigh(texts: int, words: int) -> float:
    reading = Reading("single", ((MODEL, None),), MAX_TOKENS, False, "cpu", "float32")
    for _ in Engine(reading, None).read(list(islice(_texts(words), texts))):
        pass
    status = Path("/proc/self/status")
    if status.is_file():  # on Linux, where ru_maxrss begins with the parent's
        (line,) = (line for line in status.read_text().splitlines() if "VmHWM" in line)
        return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**30
