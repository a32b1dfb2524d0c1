"""The demo's two models at work: editing and scoring with SmolLM2."""

import time

from palimpsest.corpora.build import build_documents
from palimpsest.editors.factory import make_editor
from palimpsest.params import Params, load_params
from palimpsest.records import Document, Text, word_spans
from palimpsest.trajectories.build import Brief, build_trajectories
from palimpsest.trajectories.prompts import load_prompt_set
from palimpsest.trajectories.tally import Tally


def example(params: Params) -> list[Document]:
    params.corpus.source = "docs/example"
    return build_documents(params.corpus).documents


def editing(params: Params) -> dict[str, float]:
    """The demo's editor on the example's three essays, every version, no journal."""
    prompts = load_prompt_set(params.trajectory)
    editor = make_editor(params.generators["smollm2"], params.device, params.dtype)
    tally = Tally()
    begin = time.perf_counter()
    brief = Brief("cumulative", "smollm2", prompts, params.trajectory)
    rows = list(build_trajectories(example(params), editor, brief, tally))
    seconds = time.perf_counter() - begin
    return {
        "editing, samples": len(rows),
        "editing, reply tokens": tally.tokens,
        "editing, seconds": seconds,
        "editing, tokens/s of finished replies": tally.tokens / seconds,
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
    return {"scoring, texts": len(texts), "scoring, words/s": words_read / seconds}


def measure() -> dict[str, float]:
    return {**editing(load_params()), **scoring(load_params())}
