from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.errors import InputError
from palimpsest.params import Generator, load_params
from palimpsest.trajectories.assignments import Size, assignments, share

SIZES = [Size(f"{domain}-{i}", domain, 10) for domain in ("essays", "news") for i in range(20)]


@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_what_a_smaller_share_edits_a_larger_one_edits_too(one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert share(SIZES, small) <= share(SIZES, large)


def test_a_share_is_of_each_domain_and_a_number_of_all() -> None:
    half = share(SIZES, 0.5)
    assert [sum(doc.startswith(domain) for doc in half) for domain in ("essays", "news")] == [
        10
    ] * 2
    assert len(share(SIZES, 7)) == 7
    assert share(SIZES, 1.0) == {size.doc_id for size in SIZES}
    assert share(SIZES, 1000) == {size.doc_id for size in SIZES}


def test_a_generator_brings_its_own_prompts_and_temperatures() -> None:
    params = load_params()
    params.generators["other"] = Generator(
        "transformers", "pip:smollm2", prompts="opai-bench", temperatures=[None, 0.5], documents=3
    )
    params.trajectory = replace(params.trajectory, generators=["smollm2", "other"])
    first, second = assignments(params, ["cumulative"], SIZES)
    assert first.brief.prompts.name == "few-shot"
    assert first.brief.params.temperatures == params.trajectory.temperatures
    assert second.brief.prompts.name == "opai-bench"
    assert second.brief.params.temperatures == [None, 0.5]
    assert len(second.documents) == 3
    # ceil of 15, 25, 40, 50, 60, 75, 90 and 100 per cent of ten sentences
    assert second.revisions == 3 * (2 + 3 + 4 + 5 + 6 + 8 + 9 + 10)


def test_the_designs_over_v0_have_generators_of_their_own() -> None:
    params = load_params()
    params.trajectory.ablations.generators = ["smollm2-held-out"]
    params.generators["smollm2-held-out"] = params.generators["smollm2"]
    found = assignments(params, ["independent", "coverage", "operation"], SIZES)
    assert [(a.brief.design, a.brief.generator) for a in found] == [
        ("independent", "smollm2"),
        ("coverage", "smollm2-held-out"),
        ("operation", "smollm2-held-out"),
    ]


def test_a_misspelt_prompt_set_names_those_there_are() -> None:
    params = load_params()
    params.trajectory = replace(params.trajectory, prompts="fewshot")
    with pytest.raises(InputError, match="did you mean 'few-shot'"):
        assignments(params, ["cumulative"], SIZES)
