import logging
import time
from pathlib import Path
from threading import Thread

import pytest

from palimpsest.locks import alone


def test_two_are_never_inside_at_once_and_the_second_says_that_it_waited(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "locks" / "one"
    order = []
    waits = []

    def work(name: str) -> None:
        with alone(path, "the other") as waited:
            waits.append(waited)
            order.append(f"{name} begins")
            time.sleep(0.2)
            order.append(f"{name} ends")

    threads = [Thread(target=work, args=(name,)) for name in ("one", "two")]
    with caplog.at_level(logging.INFO):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [step.split()[1] for step in order] == ["begins", "ends", "begins", "ends"]
    assert waits == [False, True]
    assert f"waiting for the other ({path})" in caplog.text


def test_a_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), alone(tmp_path / "one", "the other"):
        _ = 1 / 0
    with alone(tmp_path / "one", "the other") as waited:
        assert not waited
