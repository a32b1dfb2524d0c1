"""Measure what docs/performance.md states: `make bench`."""

import logging
import resource
import sys
import time
from pathlib import Path

from palimpsest.corpora.build import build_documents
from palimpsest.editors.factory import make_editor
from palimpsest.params import Params, load_params
from palimpsest.records import Document, Text, word_spans
from palimpsest.trajectories.build import Tally, build_trajectories
from palimpsest.trajectories.prompts import load_prompts

log = logging.getLogger("bench")


def example(params: Params) -> list[Document]:
    params.corpus.source = "docs/example"
    return build_documents(params.corpus).documents


def editing(params: Params) -> dict[str, float]:
    """The demo's editor on the example's three essays, every version, no journal."""
    prompts = load_prompts(Path(params.trajectory.prompts))
    editor = make_editor(params.generators["smollm2"], params.device, params.dtype)
    tally = Tally()
    begin = time.perf_counter()
    rows = list(
        build_trajectories(example(params), editor, "smollm2", prompts, params.trajectory, tally)
    )
    seconds = time.perf_counter() - begin
    return {
        "samples": len(rows),
        "reply tokens": tally.tokens,
        "seconds": seconds,
        "tokens/s of finished replies": tally.tokens / seconds,
    }


def scoring(params: Params) -> dict[str, float]:
    """Fast-DetectGPT with SmolLM2 on 48 texts of about 200 words."""
    from palimpsest.detectors.interface import Runtime
    from palimpsest.detectors.registry import make

    params.detector = "fast-detectgpt"
    detector = make(params.detector, params.detector_settings(), Runtime(params.device))
    texts = []
    for document in example(params):
        text = " ".join(sentence.text for sentence in document.sentences)
        for i in range(16):
            words = text.split()
            varied = " ".join(words[i:] + words[:i])
            texts.append(Text(str(i), varied, "en", "essays", (), word_spans(varied, "en")))
    detector.score(texts[:1])  # loads the model
    begin = time.perf_counter()
    detector.score(texts)
    seconds = time.perf_counter() - begin
    words_read = sum(len(text.words) for text in texts)
    return {"texts": len(texts), "seconds": seconds, "words/s": words_read / seconds}


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for measure in (editing, scoring):
        log.info("%s", measure.__doc__)
        for name, value in measure(load_params()).items():
            log.info("  %-32s %10.1f", name, value)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    log.info("peak memory %.1f GiB", peak if sys.platform == "linux" else peak / 1024)
    return 0


if __name__ == "__main__":
    sys.exit(main())
