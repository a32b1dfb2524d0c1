"""Which sentences of a document a version revises: one fixed order, cut at the coverage."""

import hashlib
import random


def sentence_order(doc_id: str, n: int) -> list[int]:
    """A permutation of 0..n-1 that depends on the document's id alone.

    The rule is the released data's: Python's shuffle, seeded with the first 8 hexadecimal digits of
    SHA-256 of the id, "||" and "sent_order".
    """
    digest = hashlib.sha256(f"{doc_id}||sent_order".encode()).hexdigest()
    order = list(range(n))
    random.Random(int(digest[:8], 16)).shuffle(order)
    return order


def count(n: int, coverage: int) -> int:
    """ceil(coverage x n); `coverage` is a whole per cent, so that the ceiling is exact."""
    return -(-coverage * n // 100)


def chosen(doc_id: str, n: int, coverage: int) -> list[int]:
    """The sentences that a version revises, in document order.

    A larger coverage chooses all that a smaller one does.
    """
    return sorted(sentence_order(doc_id, n)[: count(n, coverage)])
