import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.dvc_queue import start, written
from palimpsest.errors import InputError

SAFE = st.text(st.characters(codec="utf-8", exclude_characters="'\\$", exclude_categories=["C"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | SAFE | st.sampled_from(["NULL", "nan", "e/5-large"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["default", "reports"]), inner)
    ),
    max_leaves=5,
)


@given(VALUES)
def test_what_is_written_is_what_hydra_reads(value: object) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    override = OverridesParser.create().parse_override(f"key={written(value)}")
    assert override.value() == value
    assert not override.is_sweep_override()


@pytest.mark.parametrize("value", ["it's", "a\\b", "${other}"])
def test_a_string_that_the_grammar_cannot_hold_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="cannot be given"):
        written(value)


def test_a_process_left_in_the_background_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dvc = tmp_path / "dvc"
    dvc.write_text("#!/bin/sh\nsleep 20 &\necho started\n")
    dvc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    begin = time.monotonic()
    start(1)
    assert time.monotonic() - begin < 10


def test_what_dvc_refuses_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dvc = tmp_path / "dvc"
    dvc.write_text("#!/bin/sh\necho 'ERROR: no such thing' >&2\nexit 1\n")
    dvc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InputError, match="dvc queue start --jobs: no such thing"):
        start(1)
