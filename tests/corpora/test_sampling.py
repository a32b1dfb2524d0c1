from hypothesis import given
from hypothesis import strategies as st

from palimpsest.corpora.sampling import passage, quotas, rank

PARAGRAPHS = st.lists(st.integers(1, 6), max_size=12).map(
    lambda sizes: [[f"{number}.{s}" for s in range(size)] for number, size in enumerate(sizes)]
)
SIZES = st.dictionaries(st.text(min_size=1, max_size=3), st.integers(0, 50), max_size=6)


@given(PARAGRAPHS, st.integers(1, 10), st.integers(0, 6), st.text())
def test_a_passage_is_a_run_of_whole_paragraphs_of_the_right_length(
    paragraphs: list[list[str]], least: int, more: int, doc_id: str
) -> None:
    chosen = passage(paragraphs, least, least + more, doc_id)
    runs = [
        paragraphs[i:j]
        for i in range(len(paragraphs))
        for j in range(i + 1, len(paragraphs) + 1)
        if least <= sum(map(len, paragraphs[i:j])) <= least + more
    ]
    assert chosen in runs if runs else chosen is None


def test_every_fitting_passage_is_chosen_by_some_document() -> None:
    paragraphs = [["a"], ["b"], ["c"], ["d"]]
    chosen = [passage(paragraphs, 2, 3, f"document {number}") for number in range(400)]
    counts = {tuple(s for p in run or [] for s in p): chosen.count(run) for run in chosen}
    assert set(counts) == {tuple("ab"), tuple("bc"), tuple("cd"), tuple("abc"), tuple("bcd")}
    assert min(counts.values()) > 50


def test_the_id_alone_decides_on_the_passage() -> None:
    first = passage([["a"], ["b"], ["c"]], 1, 1, "x")
    second = passage([["d"], ["e"], ["f"]], 1, 1, "x")
    assert first is not None
    assert second is not None
    assert "abc".index(first[0][0]) == "def".index(second[0][0])


def test_the_order_of_documents_is_fixed() -> None:
    assert rank("007") == "a3dd5cda36c339295a7f54dff75f9d3bc9871a305b0f150c70fcd8b3e18768a7"
    assert rank("7") != rank("007")


@given(SIZES, st.integers(0, 100))
def test_quotas_add_up_and_no_domain_gives_more_than_it_has(
    sizes: dict[str, int], total: int
) -> None:
    shares = quotas(sizes, total)
    assert sum(shares.values()) == min(total, sum(sizes.values()))
    assert all(0 <= shares[domain] <= size for domain, size in sizes.items())


@given(SIZES, st.integers(0, 100))
def test_a_larger_total_takes_from_no_domain(sizes: dict[str, int], total: int) -> None:
    fewer, more = quotas(sizes, total), quotas(sizes, total + 1)
    assert all(fewer[domain] <= more[domain] for domain in sizes)


@given(SIZES)
def test_each_domain_gives_one_where_the_total_allows_it(sizes: dict[str, int]) -> None:
    shares = quotas(sizes, sum(1 for size in sizes.values() if size))
    assert all(shares[domain] == min(1, size) for domain, size in sizes.items())


def test_quotas_are_proportional() -> None:
    assert quotas({"a": 600, "b": 300, "c": 100}, 20) == {"a": 12, "b": 6, "c": 2}
