from hypothesis import given
from hypothesis import strategies as st

from palimpsest.editors.prefix_tree import Node, PrefixTree, pack

prompts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=8)


def told(leaf: Node) -> list[int]:
    return [token for node in leaf.path() for token in node.tokens]


def stored(tree: PrefixTree) -> int:
    return sum(len(node.tokens) for node in tree.root.below())


@given(prompts)
def test_every_path_spells_its_prompt_and_shared_prefixes_are_stored_once(
    prompts: list[list[int]],
) -> None:
    tree = PrefixTree(limit=100)
    leaves = [tree.add(prompt, room=3) for prompt in prompts]
    assert [told(leaf) for leaf in leaves] == prompts
    shared = {tuple(prompt[:end]) for prompt in prompts for end in range(1, len(prompt))}
    assert stored(tree) == len(shared) + len(prompts)  # each prompt's last token is its own


@given(prompts, st.integers(1, 20))
def test_packs_read_every_token_once_and_parents_first(prompts: list[list[int]], size: int) -> None:
    tree = PrefixTree(limit=100)
    leaves = [tree.add(prompt, room=3) for prompt in prompts]
    read, ready = 0, []
    while any(leaf.unread for leaf in leaves):
        batch = pack(tree.root, leaves, size, "cpu")
        assert 0 < len(batch.tokens) <= size
        ready += batch.ready
        for end, leaf in zip(batch.ends, batch.ready, strict=True):
            prompt = told(leaf)
            assert (batch.tokens[end], batch.positions[end]) == (prompt[-1], len(prompt) - 1)
        for block in batch.blocks:
            block.node.read += block.new
        for node in tree.root.below():
            assert node.parent is not None
            assert not (node.read and node.parent.unread)
        read += len(batch.tokens)
    assert read == stored(tree)
    assert sorted(map(id, ready)) == sorted(map(id, leaves))


def test_a_running_prompt_keeps_its_prefix_and_a_finished_one_is_forgotten_over_the_limit() -> None:
    tree = PrefixTree(limit=0)
    first, second = tree.add([1, 2, 3, 4], room=5), tree.add([1, 2, 7], room=5)
    tree.finish(first)
    assert told(second) == [1, 2, 7]
    assert stored(tree) == 3
    tree.finish(second)
    assert stored(tree) == 0


def test_within_the_limit_the_least_recently_used_prompt_goes_first() -> None:
    tree = PrefixTree(limit=6)
    for prompt in ([1, 1, 1], [2, 2, 2], [1, 1, 5], [3, 3]):
        tree.finish(tree.add(prompt, room=1))
    assert [child.tokens[0] for child in tree.root.children] == [1, 3]
