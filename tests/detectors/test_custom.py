"""The example of a detector outside of the package runs as CONTRIBUTING.md prints it."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from palimpsest.detectors.interface import Runtime
from palimpsest.detectors.registry import check_settings, detector_class, find, make, title
from palimpsest.errors import InputError
from tests.texts import labelled, plain

TEXT = plain(labelled([("The rain fell.", 0), ("The door closed.", 1)]))
GIVEN = {"target": "tell:Share", "settings": {"word": "the"}}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (code,) = re.findall(r"```python\n(.*?)```", Path("CONTRIBUTING.md").read_text(), re.DOTALL)
    path = tmp_path / "tell.py"
    path.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tell", raising=False)
    return path


def test_the_example_scores_and_is_the_same_when_it_was_saved(module: Path) -> None:
    detector = make("custom", GIVEN, Runtime())
    detector.fit([], [], lambda metric, value, step: None)
    (scores,) = detector.score([TEXT])
    assert scores.document == pytest.approx(2 / 6)
    detector.save(module.parent)
    loaded = detector_class("custom", GIVEN).load(module.parent, Runtime())
    assert loaded.score([TEXT]) == [scores]
    (nothing,) = loaded.score([plain(labelled([]))])
    assert np.isnan(nothing.document)
    assert nothing.reason == "too_short"


def test_the_example_has_its_regime_level_settings_and_name(module: Path) -> None:
    entry = find("custom", GIVEN)
    assert (entry.regime, entry.native) == ("zero-shot", "document")
    assert title("custom", GIVEN) == "tell:Share"
    assert title("length", {}) == "length"
    with pytest.raises(InputError, match="did you mean 'word'"):
        check_settings("custom", {**GIVEN, "settings": {"wrod": "the"}})
