from pathlib import Path
from typing import Any

import pytest
import yaml

from palimpsest.editors.factory import make_editor
from palimpsest.errors import InputError
from palimpsest.params import Generator, load_params
from palimpsest.trajectories.prompts import load_prompt_set


def check(tmp_path: Path, **given: Any) -> None:
    params = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    url = "http://localhost:1/v1"
    params["generators"]["g"] = {
        "editor": "openai-compatible", "model": "m", "base_urls": [url], **given
    }  # fmt: skip
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(params), encoding="utf-8")
    load_params(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("editor", "openai", "unknown value 'openai'"),
        ("model", "", "name a model"),
        ("limit_field", "tokens", "known are max_completion_tokens, max_tokens"),
        ("documents", 0, "give a share up to 1"),
        ("documents", float("inf"), "give a share up to 1"),
        ("concurrency", 0, "give a number from 1"),
        ("batch_size", 0, "give a number from 1"),
        ("top_k", 0, "give a number from 1"),
        ("requests_per_minute", 0, "give a number from 1, or null"),
        ("tokens_per_minute", -5, "give a number from 1, or null"),
        ("thinking_tokens", -1, "give a number from 0"),
        ("timeout", 0, "give seconds above 0"),
        ("temperatures", [], "name at least one, or null"),
        ("temperatures", [0.4, -1], "no temperature is below 0"),
        ("price", {"input": -1, "output": 1, "as_of": "2026"}, "no price is below 0"),
        ("base_urls", [], "give the URL of at least one server"),
        ("base_urls", ["localhost:8000"], "each begins with http:// or https://"),
        ("extra_body", {"seed": 1, "model": "x"}, "the editor fills in model, seed itself"),
    ],
)
def test_a_mistake_in_a_generator_names_its_key(
    tmp_path: Path, key: str, value: Any, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        check(tmp_path, **{key: value})
    assert f"params.yaml: generators.g.{key}" in str(caught.value)
    assert message in str(caught.value)


def test_the_presets_are_sound() -> None:
    params = load_params(Path("params.yaml"))
    generators = params.generators
    assert next(iter(generators)) == "smollm2"
    held_out = {name for name, generator in generators.items() if generator.held_out}
    assert held_out == {"smollm2-held-out", "qwen3-8b"}
    for generator in generators.values():
        load_prompt_set(params.trajectory, generator.prompts)


def test_a_key_that_is_not_in_the_environment_is_named_before_any_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = Generator("openai-compatible", "m", key_variable="STUB_KEY", base_urls=["http://x"])
    for value in ("", "  "):
        monkeypatch.setenv("STUB_KEY", value)
        with pytest.raises(InputError, match="STUB_KEY is not set"):
            make_editor(generator, "cpu", "float32")
    monkeypatch.setenv("STUB_KEY", "k\n")
    assert make_editor(generator, "cpu", "float32").model == "m"


def test_a_server_without_keys_and_vllm_need_nothing_to_be_made() -> None:
    make_editor(Generator("openai-compatible", "m", base_urls=["http://x"]), "cpu", "float32")
    make_editor(Generator("vllm", "m"), "cpu", "bfloat16")


def test_an_unknown_editor_is_an_error() -> None:
    with pytest.raises(InputError, match="unknown editor 'trasnformers': did you mean"):
        make_editor(Generator("trasnformers", "m"), "cpu", "float32")
