from pathlib import Path

import pytest

from palimpsest.errors import InputError
from palimpsest.params import OPERATIONS
from palimpsest.trajectories.prompts import load_prompts

FOLDER = Path("src/palimpsest/trajectories/prompt_sets")
SETS = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_packaged_sets_show_paragraph_and_sentence_once_to_the_model(
    path: Path, operation: str
) -> None:
    messages = load_prompts(path).messages(operation, "PARAGRAPH", "SENTENCE")
    everything = "\n".join(message.content for message in messages)
    assert everything.count("PARAGRAPH") == everything.count("SENTENCE") == 1
    assert messages[-1].content.endswith("SENTENCE")
    assert [m.role for m in messages][0::2][1:] == ["assistant"] * ((len(messages) - 1) // 2)
    assert "$" not in everything


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_a_text_is_filled_in_and_never_read_as_a_template(path: Path) -> None:
    messages = load_prompts(path).messages("polish", "$sentence {0} ${task}", "$context \\1 {x}")
    everything = "\n".join(message.content for message in messages)
    assert "$sentence {0} ${task}" in everything
    assert "$context \\1 {x}" in everything


def test_the_style_target_is_shown_for_compress_and_expand_only() -> None:
    prompts = load_prompts(FOLDER / "opai-bench.yaml")
    shown = {
        op for op in OPERATIONS if "Style target" in prompts.messages(op, "c", "s")[-1].content
    }
    assert shown == {"compress", "expand"}


def test_the_lengths_are_the_papers() -> None:
    for path in SETS:
        prompts = load_prompts(path)
        assert {operation: prompts.length(operation) for operation in OPERATIONS} == {
            "polish": (85, 100),
            "paraphrase": (85, 115),
            "style": (85, 115),
            "compress": (60, 80),
            "expand": (120, 150),
        }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  $sentence", "  it", "must show the $sentence"),
        ("$context", "$contxt", "background names"),
        ('background: "Background: $context"', "", "either into user or into background"),
        ("  polish:", "  polsh:", "operations lacks polish"),
        ("length: [85, 100]", "length: [85]", "operations.polish.length is [85]"),
        ("system: |", "sytem: |", "sytem"),
        ("name: few-shot", "name: [", "is not YAML"),
    ],
)
def test_a_mistake_in_a_set_names_the_file_and_the_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = (FOLDER / "few-shot.yaml").read_text()
    assert old in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_prompts(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_a_change_of_the_content_is_a_change_of_identity(tmp_path: Path) -> None:
    text = (FOLDER / "few-shot.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("Understood.", "Good."))
    before = load_prompts(FOLDER / "few-shot.yaml").identity
    assert before.startswith("few-shot@")
    assert load_prompts(path).identity != before
