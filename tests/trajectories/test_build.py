from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palimpsest.editors.journal import Journal, JournalledEditor
from palimpsest.params import DESIGNS, Ablations, Step, Trajectory
from palimpsest.records import Document
from palimpsest.trajectories.build import Brief, build_trajectories, revisions
from palimpsest.trajectories.prompts import load_prompts
from palimpsest.trajectories.requests import Editor, Request
from palimpsest.trajectories.selection import chosen
from palimpsest.trajectories.tally import Tally
from tests.documents import as_written, make_document
from tests.scripted import ScriptedEditor, target_of

PROMPTS = load_prompts(Path("src/palimpsest/trajectories/prompt_sets/few-shot.yaml"))
SCHEDULE = {
    "v1": Step("polish", 15),
    "v2": Step("paraphrase", 50),
    "v3": Step("expand", 50),
    "v4": Step("polish", 100),
}
DOCUMENTS = [make_document("a/1", 10), make_document("007", 7, "news"), make_document("c", 12)]


def swap(request: Request) -> str:
    """A usable rewrite: two words trade places, and so again in the next version."""
    words = target_of(request).split()
    words[-5], words[-6] = words[-6], words[-5]
    return " ".join(words)


def params(on_rejection: str = "later", seed: int = 0) -> Trajectory:
    return Trajectory(
        seed=seed,
        generators=["g"],
        prompt_sets="",
        prompts="",
        schedule=SCHEDULE,
        temperatures=[0.4, 1.0],
        on_rejection=on_rejection,
        max_dropped=1.0,
        max_rejected=1.0,
        ablations=Ablations(["g"], ["compress", "expand"], [25, 50, 100], [25, 75]),
    )


def build(
    editor: Editor,
    documents: list[Document] = DOCUMENTS,
    given: Trajectory | None = None,
    tally: Tally | None = None,
    design: str = "cumulative",
) -> list[dict[str, Any]]:
    brief = Brief(design, "g", PROMPTS, given or params())
    rows = build_trajectories(documents, editor, brief, tally or Tally())
    return as_written(rows)


def test_every_document_has_all_versions_in_order() -> None:
    rows = build(ScriptedEditor(swap))
    expected = [(d.doc_id, v) for d in DOCUMENTS for v in ("v0", "v1", "v2", "v3", "v4")]
    assert [(row["doc_id"], row["version"]) for row in rows] == expected


def test_ai_sentences_are_the_chosen_ones_and_human_ones_keep_every_byte() -> None:
    for row in build(ScriptedEditor(swap)):
        document = next(d for d in DOCUMENTS if d.doc_id == row["doc_id"])
        coverage = SCHEDULE[row["version"]].coverage if row["version"] != "v0" else 0
        ai = set(chosen(document.doc_id, len(document.sentences), coverage))
        assert {i for i, label in enumerate(row["sentence_labels"]) if label} == ai
        for i, (start, end) in enumerate(row["sentence_spans"]):
            changed = row["text"][start:end] != document.sentences[i].text
            assert not changed or i in ai


def test_a_sentence_chosen_early_is_revised_again_in_every_version() -> None:
    rows = build(ScriptedEditor(swap), DOCUMENTS[:1])
    first = chosen("a/1", 10, 15)[0]
    history = rows[-1]["sentence_history"][first]
    assert [entry["version"] for entry in history] == ["v1", "v2", "v3", "v4"]


def test_the_context_is_the_paragraph_as_the_previous_version_left_it() -> None:
    editor = ScriptedEditor(swap)
    rows = build(editor, DOCUMENTS[:1])
    before = rows[1]["text"].split("\n\n")
    contexts = {
        request.messages[1].content.removeprefix("Background: ")
        for request in editor.asked
        if "Paraphrase" in request.messages[-1].content
    }
    assert contexts
    assert contexts <= set(before)


def test_a_rejected_reply_is_asked_for_again_warmer_and_as_another_draw() -> None:
    editor = ScriptedEditor(lambda r: "" if r.temperature == 0.4 else swap(r))
    rows = build(editor, DOCUMENTS[:1])
    assert {(r.temperature, r.draw) for r in editor.asked} == {(0.4, 0), (1.0, 1)}
    outcomes = {(e["attempts"], e["outcome"]) for h in rows[2]["sentence_history"] for e in h}
    assert outcomes == {(2, "accepted")}


def test_another_seed_draws_other_replies() -> None:
    editor = ScriptedEditor(swap)
    build(editor, DOCUMENTS[:1], params(seed=3))
    assert {r.draw for r in editor.asked} <= {6, 7}


def test_the_best_of_soft_misses_is_kept_with_its_misses() -> None:
    def answer(request: Request) -> str:
        text = swap(request)
        return text.replace("day", "day 99 and") if request.temperature == 0.4 else text + " Really"

    rows = build(ScriptedEditor(answer), DOCUMENTS[:1])
    outcomes = {e["outcome"] for h in rows[1]["sentence_history"] for e in h}
    assert all(outcome.startswith("kept: ") for outcome in outcomes)


def test_words_of_a_reply_are_one_space_apart_as_those_of_human_sentences_are() -> None:
    rows = build(
        ScriptedEditor(lambda r: swap(r).replace(" ", "\u00a0 ", 1).replace(" day", "\tday"))
    )
    for row in rows:
        for start, end in row["sentence_spans"]:
            sentence = row["text"][start:end]
            assert sentence == " ".join(sentence.split())


def test_with_later_a_sentence_without_a_reply_stays_human_and_is_tried_again() -> None:
    document = DOCUMENTS[0]
    stubborn = document.sentences[chosen("a/1", 10, 15)[0]].text

    def answer(request: Request) -> str:
        refuses = target_of(request) == stubborn and "Polish" in request.messages[-1].content
        return "" if refuses else swap(request)

    rows = build(ScriptedEditor(answer), [document])
    index = chosen("a/1", 10, 15)[0]
    assert [row["sentence_labels"][index] for row in rows] == [0, 0, 1, 1, 1]
    assert rows[1]["sentence_history"][index][0]["outcome"] == "rejected: empty"
    assert rows[1]["ai_sentence_ratio"] < 0.2


def test_with_drop_the_whole_trajectory_goes_and_is_counted() -> None:
    def answer(request: Request) -> str:
        return "" if "on day 12." in target_of(request) else swap(request)

    tally = Tally()
    rows = build(ScriptedEditor(answer), given=params("drop"), tally=tally)
    assert {row["doc_id"] for row in rows} == {"a/1", "007"}
    assert tally.dropped == 1
    assert tally.dropped_share == 1 / 3
    first, *operations = tally.describe().splitlines()
    assert first == "dropped trajectories: 1 of 3"
    polish, *_ = (line for line in operations if line.startswith("  polish: "))
    n = tally.objections["polish", "empty"]
    assert "rejected 1; " in polish
    assert polish.endswith(f"; objections to replies: empty {n}")


def test_equal_requests_of_two_documents_are_sent_once() -> None:
    one, two = make_document("same"), make_document("same")
    editor = ScriptedEditor(swap)
    rows = build(editor, [one, two])
    assert len(editor.asked) == len(set(editor.asked))
    assert [row["text"] for row in rows[:5]] == [row["text"] for row in rows[5:]]


@pytest.mark.parametrize("batch", [1, 3, 50])
def test_the_batch_size_changes_nothing(batch: int) -> None:
    assert build(ScriptedEditor(swap, batch)) == build(ScriptedEditor(swap))


def test_a_build_that_stops_anywhere_resumes_without_repeating_a_request(tmp_path: Path) -> None:
    whole = build(ScriptedEditor(swap))
    total = len(set(_asked(ScriptedEditor(swap))))
    for stop in range(0, total, 11):
        journal = Journal(tmp_path / f"{stop}.sqlite")
        first = ScriptedEditor(_failing_after(stop))
        with pytest.raises(ConnectionError):
            build(JournalledEditor(first, journal))
        second = ScriptedEditor(swap)
        assert build(JournalledEditor(second, journal)) == whole
        answered = set(first.asked[:stop])
        assert not answered & set(second.asked)
        assert len(answered) + len(second.asked) == total


def test_a_schedule_that_revises_nothing_gives_human_versions() -> None:
    given = params()
    given.schedule = {"v1": Step("polish", 0)}
    rows = build(ScriptedEditor(swap), given=given)
    assert [row["version"] for row in rows] == ["v0", "v1"] * 3
    assert not any(sum(row["sentence_labels"]) for row in rows)


def test_independent_versions_start_from_the_human_text_and_share_v1s_requests() -> None:
    cumulative, independent = ScriptedEditor(swap), ScriptedEditor(swap)
    first = build(cumulative, design="cumulative")
    rows = build(independent, design="independent")
    v1 = [
        {key: row[key] for key in ("version", "text", "sentence_labels", "ai_spans")}
        for row in (*first, *rows)
        if row["version"] == "v1"
    ]
    assert v1[:3] == v1[3:]
    human = {target for d in DOCUMENTS for target in (s.text for s in d.sentences)}
    assert {target_of(request) for request in independent.asked} <= human
    assert all(len(history) <= 1 for row in rows for history in row["sentence_history"])
    assert {row["trajectory_id"] for row in rows} == {
        f"{d.doc_id}/g/independent" for d in DOCUMENTS
    }


def test_the_coverage_design_grows_one_operation_over_the_same_sentences() -> None:
    rows = build(ScriptedEditor(swap), DOCUMENTS[:1], design="coverage")
    assert [(row["variant"], row["version"]) for row in rows] == [
        (operation, version)
        for operation in ("compress", "expand")
        for version in ("c000", "c025", "c050", "c100")
    ]
    for row in rows:
        ai = [i for i, label in enumerate(row["sentence_labels"]) if label]
        assert ai == chosen("a/1", 10, row["target_coverage"])
        assert row["operation"] == (row["variant"] if row["target_coverage"] else "none")
        assert row["sample_id"] == f"a/1/g/coverage/{row['variant']}/{row['version']}"


def test_the_operation_design_applies_each_operation_at_a_fixed_coverage() -> None:
    rows = build(ScriptedEditor(swap), DOCUMENTS[:1], design="operation")
    assert [(row["variant"], row["version"], row["target_coverage"]) for row in rows] == [
        (coverage, version, int(coverage) if version != "v0" else 0)
        for coverage in ("25", "75")
        for version in ("v0", "compress", "expand")
    ]


def test_the_designs_over_v0_share_their_requests(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        build(JournalledEditor(ScriptedEditor(swap), journal), design="coverage")
        second = ScriptedEditor(swap)
        build(JournalledEditor(second, journal), design="operation")
    expanded = {d.doc_id: chosen(d.doc_id, len(d.sentences), 75) for d in DOCUMENTS}
    assert second.asked == []
    assert all(expanded.values())


@pytest.mark.parametrize("design", DESIGNS)
def test_the_number_of_revisions_is_known_beforehand(design: str) -> None:
    tally = Tally()
    build(ScriptedEditor(swap), tally=tally, design=design)
    brief = Brief(design, "g", PROMPTS, params())
    expected = sum(revisions(brief, len(d.sentences)) for d in DOCUMENTS)
    assert sum(tally.outcomes.values()) == expected


def test_documents_are_read_no_further_than_the_editor_asks() -> None:
    read = 0

    def documents() -> Iterator[Document]:
        nonlocal read
        for i in range(100):
            read += 1
            yield make_document(f"d{i}", 10)

    brief = Brief("cumulative", "g", PROMPTS, params())
    editor = ScriptedEditor(swap, batch=4, oldest_first=True)
    next(build_trajectories(documents(), editor, brief, Tally()))
    assert read < 10


def _asked(editor: ScriptedEditor) -> list[Request]:
    build(editor)
    return editor.asked


def _failing_after(n: int):  # type: ignore[no-untyped-def]
    count = 0

    def answer(request: Request) -> str:
        nonlocal count
        count += 1
        if count > n:
            raise ConnectionError
        return swap(request)

    return answer
