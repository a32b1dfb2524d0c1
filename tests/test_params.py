import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from palimpsest.errors import InputError
from palimpsest.params import flat, in_force, load_params

DEFAULT = Path("params.yaml").read_text()


def load(tmp_path: Path, old: str = "", new: str = ""):  # type: ignore[no-untyped-def]
    assert old in DEFAULT
    path = tmp_path / "params.yaml"
    path.write_text(DEFAULT.replace(old, new, 1))
    return load_params(path)


def test_the_repositorys_own_params_are_valid() -> None:
    params = load_params(Path("params.yaml"))
    assert params.trajectory.schedule["v8"].coverage == 100


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fpr: 0.05", "fpr: abc", "train.fpr: Value 'abc' of type 'str' could not be converted"),
        ("fpr:", "frp:", "train.frp: unknown key 'frp': did you mean 'fpr'?"),
        ("detector: fast-detectgpt", "detector: fast-detect", "did you mean 'fast-detectgpt'?"),
        ("operation: polish", "operation: polsh", "v1.operation: unknown value 'polsh'"),
        ("coverage: 40", "coverage: 4", "v3.coverage is 4; coverage never falls"),
        ("coverage: 100", "coverage: 101", "v8.coverage is 101"),
        ("generators: [smollm2]", "generators: [smolm2]", "did you mean 'smollm2'?"),
        ("on_rejection: later", "on_rejection: never", "known are drop, later"),
        ("min_sentences: 10", "min_sentences: 13", "must not be below corpus.min_sentences"),
        ("profile: demo", "profile: papr", "did you mean 'paper'?"),
        ("benchmark: opai-bench", "benchmark: opai-bnch", "did you mean 'opai-bench'?"),
        ("seed: 0\n  fpr", "fpr", "train.seed has no value"),
        ("temperatures: [0.4, 0.7, 1.0, 1.2]", "temperatures: []", "name at least one"),
        ("temperatures: [0.4, 0.7", "temperatures: [-0.4, 0.7", "no temperature is below 0"),
        ("[compress, paraphrase, expand]", "[expand, expand]", "name each once"),
        ("[compress, paraphrase, expand]", "[]", "operations is []; name at least one"),
        ("domains: all, gen", "domains: essays, gen", "train.select.domains is 'essays'; give"),
        ("generators: in-distribution", "generators: []", "train.select.generators is []; give"),
    ],
)
def test_a_mistake_names_file_key_and_fix(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        load(tmp_path, old, new)
    assert message in str(error.value)
    assert str(tmp_path / "params.yaml") in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_broken_yaml_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist: run this command in"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_text("a: [1")
    with pytest.raises(InputError, match="is not YAML"):
        load_params(tmp_path / "params.yaml")


def test_a_number_with_an_exponent_is_a_float_as_dvc_writes_it(tmp_path: Path) -> None:
    for written in ("2e-6", "2.0e-06", "0.000002"):
        params = load(tmp_path, "    learning_rate: null", f"    learning_rate: {written}")
        assert params.detector_settings("genai-sentence")["learning_rate"] == 2e-6


def test_a_null_takes_the_profiles_value_and_a_value_wins(tmp_path: Path) -> None:
    profile = yaml.safe_load(DEFAULT)["profiles"]["demo"]["genai-sentence"]
    assert load(tmp_path).detector_settings("genai-sentence")["hidden"] == profile["hidden"]
    params = load(tmp_path, "    hidden: null", "    hidden: 7")
    assert params.detector_settings("genai-sentence")["hidden"] == 7


def test_flat_keys_are_dotted() -> None:
    assert flat({"a": {"b": 1, "c": {"d": 2}}, "e": []}) == {"a.b": 1, "a.c.d": 2, "e": []}


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("detectors.genai-sentence.learning_rat", "detectors.genai-sentence.learning_rate"),
        ("detector.genai-sentence.hidden", "detectors.genai-sentence.hidden"),
        ("trajectory.promts", "trajectory.prompts"),
        ("trian", "train"),
    ],
)
def test_a_misspelt_key_has_the_nearest_one_as_a_hint(key: str, nearest: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"{key!r}: did you mean {nearest!r}?")):
        in_force(load_params(), key)


def test_values_in_force_are_the_profiles_where_none_is_given(tmp_path: Path) -> None:
    params = load(tmp_path, "    hidden: null", "    hidden: 7")
    found = in_force(params, "detectors.genai-sentence")
    assert found["detectors.genai-sentence.hidden"] == 7
    assert found["detectors.genai-sentence.model"] == "pip:minilm"
    assert "generators.gpt-5.4.model" in in_force(params, "generators.gpt-5.4")
    assert in_force(params, "train.fpr") == {"train.fpr": 0.05}
    assert in_force(params, "train.fpr").items() <= in_force(params).items()


def test_dvc_writes_another_value_and_leaves_a_file_that_can_be_read(tmp_path: Path) -> None:
    """Its `--set-param` drops quotes, which some values need within braces."""
    from dvc.utils.serialize import modify_yaml

    path = tmp_path / "params.yaml"
    path.write_text(Path("params.yaml").read_text())
    with modify_yaml(str(path)) as content:
        content["detector"] = "length"
    assert load_params(path) == replace(load_params(), detector="length")


def test_other_values_of_a_mapping_are_merged_as_dvc_merges_them(tmp_path: Path) -> None:
    from dvc.utils.hydra import apply_overrides

    from palimpsest.dvc_queue import written

    path = tmp_path / "params.yaml"
    path.write_text(DEFAULT.replace("reports: 12 ", "reports: 12\n    news: 20"))
    value = {"default": None, "reports": 31}
    params = load_params(path, {"corpus.max_sentences": value})
    apply_overrides(path, [f"corpus.max_sentences={written(value)}"])
    assert load_params(path) == params
    assert params.corpus.max_sentences == {"default": None, "reports": 31, "news": 20}
