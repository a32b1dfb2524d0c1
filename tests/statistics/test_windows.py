"""Windows score each token once, and batches keep every window."""

from hypothesis import given
from hypothesis import strategies as st

from palimpsest.statistics.windows import Window, batches, cut, padded


@given(st.integers(0, 500), st.integers(2, 64))
def test_each_token_is_scored_once_behind_as_many_tokens_as_fit(tokens: int, capacity: int) -> None:
    windows = cut(0, tokens, capacity)
    scored = [token for window in windows for token in range(window.first, window.end)]
    assert scored == list(range(tokens))
    for window in windows:
        assert window.length == min(tokens, capacity)
    for window in windows[1:]:
        assert window.first - window.start >= capacity - capacity // 2


def test_a_text_that_fits_is_one_window() -> None:
    assert cut(3, 10, 10) == [Window(3, 0, 0, 10)]


@given(st.lists(st.integers(1, 90)), st.integers(1, 200))
def test_batches_hold_each_window_once_and_stay_within_their_tokens(
    lengths: list[int], tokens: int
) -> None:
    windows = [Window(text, 0, 0, length) for text, length in enumerate(lengths)]
    found = list(batches(windows, tokens))
    assert sorted(window for batch in found for window in batch) == windows
    for batch in found:
        (width,) = {padded(window.length) for window in batch}
        assert all(width - 32 < window.length <= width for window in batch)
        assert len(batch) == 1 or len(batch) * width <= tokens
