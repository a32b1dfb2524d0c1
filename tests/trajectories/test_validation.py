import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.trajectories.requests import Reply
from palimpsest.trajectories.validation import Target, Verdict, judge, length_window

SOURCE = "The council of Orsund closed 3 of its schools because the winter was so hard."
NEIGHBOUR = "Most parents had been told about the plan at a meeting in the town hall."

EXAMPLE = "In the dark room there was hardly any difference between the two groups."


def verdict(reply: str, *, is_ai: bool = False, length: tuple[int, int] = (85, 115),
            source: str = SOURCE, finish: str = "stop") -> Verdict:  # fmt: skip
    target = Target(source, (NEIGHBOUR,), (EXAMPLE,), length, "en", is_ai)
    return judge(Reply(reply, finish, 0), target)  # type: ignore[arg-type]


GOOD = "Because the winter was so hard, the council of Orsund shut 3 of its schools."


def test_a_faithful_rewrite_has_no_objection() -> None:
    assert verdict(GOOD) == Verdict()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        (GOOD + " Parents were angry.", "more than one sentence"),
        (GOOD.replace(", ", ",\n"), "line break"),
        ("Here is the sentence: " + GOOD, "preamble"),
        ("Sure, " + GOOD, "preamble"),
        ("Rewritten: " + GOOD, "preamble"),
        ("Polished sentence: " + GOOD, "preamble"),
        (GOOD + " (Note: the number was kept.)", "suffix"),
        (f'"{GOOD}"', "added quotes"),
        (f"“{GOOD[:-1]}”.", "added quotes"),
        ("I'm sorry, but I cannot help with that.", "refusal"),
        ("As an AI I have no view of the schools of Orsund.", "refusal"),
        (f"<AI_Start>{GOOD}</AI_End>", "marker"),
        ("<think>It must be shorter.</think>" + GOOD, "marker"),
        ('{"sentence": "' + GOOD + '"}', "marker"),
        ("**" + GOOD + "**", "marker"),
        ("Most parents had been told about the plan at a meeting, so 3 schools of Orsund closed.",
         "neighbouring text"),
        ("In Orsund there was hardly any difference between the two groups.", "example text"),
        ("因为冬天太冷,奥松德市议会关闭了三所学校。", "other language"),
        ("Le conseil municipal ferma 3 écoles, car cet hiver était vraiment trop rude.",
         "other language"),
        (SOURCE, "identical"),
    ],
)  # fmt: skip
def test_an_unusable_reply_is_named(reply: str, reason: str) -> None:
    assert verdict(reply).hard == reason


def test_a_reply_that_only_mends_white_space_is_no_edit() -> None:
    assert verdict(SOURCE, source=SOURCE.replace("of its", "of  its\u00a0")).hard == "identical"


def test_a_reply_that_was_cut_off_is_unusable_even_if_it_reads_well() -> None:
    assert verdict(GOOD, finish="length").hard == "cut off"


def test_an_ai_sentence_may_come_back_unchanged() -> None:
    assert verdict(SOURCE, is_ai=True) == Verdict()


@pytest.mark.parametrize(
    "source",
    [
        "The following year, sales rose: <b>bold</b> claims were made.",
        "Here is a town where nobody locks a door at night.",
        "“We never lock our doors.”",
        "I cannot help noticing that the doors are open.",
    ],
)
def test_what_the_source_has_itself_is_no_objection(source: str) -> None:
    reply = source.replace("town", "village").replace("doors", "gates").replace("bold", "big")
    assert verdict(reply, source=source).hard is None


def test_a_tag_in_the_source_is_no_excuse_for_a_reply_that_is_a_list_or_json() -> None:
    source = SOURCE.replace("closed", "<b>closed</b>")
    for opening in ("- ", '{"sentence": '):
        assert verdict(opening + source, source=source).hard == "marker"
        assert verdict(opening + GOOD, source=opening + source).hard is None


@pytest.mark.parametrize(
    ("reply", "miss"),
    [
        ("The council of Orsund closed 3 schools.", "too short"),
        (GOOD[:-1] + " and the roads to all of them were deep in snow.", "too long"),
        (GOOD.replace("3", "some"), "lost number"),
        (GOOD.replace("hard", "hard in 1987"), "new number"),
        (GOOD.replace("Orsund", "the town"), "lost name"),
        (GOOD.replace("council", "council in Norway"), "new name"),
        (GOOD[:-1], "lost end mark"),
    ],
)
def test_a_soft_miss_is_named(reply: str, miss: str) -> None:
    found = verdict(reply)
    assert found.hard is None
    assert miss in found.soft


@given(st.integers(1, 80), st.sampled_from([(85, 100), (85, 115), (60, 80), (120, 150)]))
def test_the_window_is_never_empty_and_never_below_one_word(
    n: int, length: tuple[int, int]
) -> None:
    low, high = length_window(n, length)
    assert 1 <= low <= high


def test_a_window_of_only_the_source_length_judges_nothing() -> None:
    assert length_window(1, (85, 100)) == (1, 1)
    assert verdict("No, never.", source="No.", length=(85, 100)).soft == ()


def test_chinese_is_measured_in_characters() -> None:
    target = Target("今天下午我们去公园散步。", (), (), (85, 115), "zh", False)
    assert judge(Reply("下午我们今天去公园走走。", "stop", 0), target) == Verdict()
    assert judge(Reply("去公园。", "stop", 0), target).soft == ("too short",)
