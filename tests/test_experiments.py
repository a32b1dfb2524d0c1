from pathlib import Path

import pytest

from palimpsest import dvc_queue, experiments, tracking
from palimpsest.errors import InputError
from palimpsest.experiments import Size, load, members, names


@pytest.mark.parametrize("size", ["demo", "paper"])
@pytest.mark.parametrize("name", names())
def test_every_experiment_of_the_project_is_a_grid_of_valid_and_different_runs(
    name: str, size: str
) -> None:
    group = members(getattr(load(name), size))
    assert len(group) > 1
    assert len({member.key for member in group}) == len(group)


def test_a_member_is_one_combination_with_what_all_have() -> None:
    size = Size(
        {"train.seed": 3},
        {"detector": ["length", "random"], "evaluate.select.design": ["cumulative", "coverage"]},
    )
    group = members(size)
    assert [str(member) for member in group] == [
        f"detector={detector}, evaluate.select.design={design}"
        for detector in ("length", "random")
        for design in ("cumulative", "coverage")
    ]
    assert all(member.overrides["train.seed"] == 3 for member in group)


def test_what_changes_no_result_changes_no_key() -> None:
    plain, other = (members(Size(given, {"detector": ["length"]}))[0]
                    for given in ({}, {"device": "cuda"}))  # fmt: skip
    assert plain.key == other.key


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (Size({}, {"detektor": ["length"]}), "did you mean 'detector'"),
        (Size({}, {"detector": ["lenght"]}), "did you mean 'length'"),
        (Size({"train.fpr": 2}, {"detector": ["length"]}), "train.fpr is 2"),
    ],
)
def test_a_mistake_in_a_grid_is_found_before_anything_is_queued(size: Size, message: str) -> None:
    with pytest.raises(InputError, match=message):
        members(size)


def test_a_misspelt_file_names_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new.yaml").write_text("question: why\nredraw: [Table 1]\ndemo: {}\npaper: {}\n")
    (tmp_path / "sizes").symlink_to(experiments.FOLDER.resolve() / "sizes")
    (tmp_path / "broken.yaml").write_text("question: ?\n")
    monkeypatch.setattr(experiments, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"new\.yaml: redraw"):
        load("new")
    with pytest.raises(InputError, match=r"broken\.yaml is not YAML"):
        load("broken")
    with pytest.raises(InputError, match="did you mean 'new'"):
        load("nwe")


class Queue:
    """DVC's queue, whose runs are at each look where the script says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: dict[str, str]) -> None:
        self.names: list[str] = []
        self.looks = iter(looks)
        monkeypatch.setattr(experiments, "POLL", 0)
        monkeypatch.setattr(dvc_queue, "put", lambda name, _: self.names.append(name))
        monkeypatch.setattr(dvc_queue, "start", lambda _: None)
        monkeypatch.setattr(dvc_queue, "statuses", self.statuses)
        monkeypatch.setattr(dvc_queue, "result", lambda name, _: f'{{"evaluate": "of {name}"}}')

    def statuses(self) -> dict[str, str]:
        look = next(self.looks)
        return {name: look[str(i)] for i, name in enumerate(self.names) if str(i) in look}


def test_a_member_whose_results_dvc_had_is_found_by_their_runs_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = members(Size({}, {"detector": ["length", "random"]}))
    queue = Queue(monkeypatch, {}, {"0": "Success", "1": "Queued"}, {}, {"1": "Success"})
    noted = []
    monkeypatch.setattr(tracking, "add_configuration", lambda *given: noted.append(given))
    assert experiments._work_off("test", "bench", group, 1) == {}
    assert noted == [
        ("bench", f"of {name}", member.key) for name, member in zip(queue.names, group, strict=True)
    ]


def test_a_run_that_was_taken_out_of_the_queue_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(name: str) -> str:
        raise InputError(f"no {name}")

    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setattr(dvc_queue, "output", gone)
    monkeypatch.setattr(tracking, "add_configuration", lambda *_: None)
    group = members(Size({}, {"detector": ["length", "random"]}))
    looks = [{"1": "Running"}] * experiments.LOOKS
    queue = Queue(monkeypatch, {}, *looks, {"1": "Success"})
    (failed,) = experiments._work_off("test", "bench", group, 1).items()
    assert failed[0] == group[0].key
    assert Path(failed[1]).read_text() == f"no {queue.names[0]}\n"


def test_a_member_with_an_earlier_run_of_its_params_is_stale_until_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = members(Size({}, {"detector": ["length", "random", "majority"], "train.seed": [0, 1]}))
    done = {group[0].key: "r0", "another key": "r1"}
    earlier = [
        {**group[0].logged, "texts": "abc"},
        {**group[1].logged, "texts": "abc"},
        {**group[2].logged, "select.design": "coverage"},
    ]
    monkeypatch.setattr(tracking, "runs_by_configuration", lambda _: done)
    monkeypatch.setattr(tracking, "params_of", lambda *_: earlier)
    assert experiments.stale("bench", "test", group) == [group[1]]


def test_a_custom_detectors_runs_are_found_by_its_target() -> None:
    target = "palimpsest.detectors.baselines:Length"
    (member,) = members(Size({"detector": "custom", "detectors.custom.target": target}, {}))
    assert member.logged["detector"] == target


def test_the_listing_tells_each_experiments_state_and_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(experiments, "names", lambda: ["trained"])
    group = members(load("trained").demo)
    monkeypatch.setattr(tracking, "runs_by_configuration", lambda _: {group[0].key: "r0"})
    monkeypatch.setattr(tracking, "params_of", lambda *_: [group[1].logged])
    _, state, question, _ = experiments.listing("demo")
    assert state.split()[:4] == ["trained", "1/2", "1", "Table"]
    assert question.strip() == load("trained").question
