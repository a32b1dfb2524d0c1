import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.dvc_queue import written
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
