"""Choose documents and passages by hashes of ids, so that a larger choice keeps a smaller one."""

import hashlib
import heapq
from collections.abc import Mapping, Sequence

Paragraphs = Sequence[Sequence[str]]


def rank(doc_id: str) -> str:
    """Where a document stands in the fixed random order of all documents."""
    return _hash("draw", doc_id)


def passage(paragraphs: Paragraphs, least: int, most: int, doc_id: str) -> Paragraphs | None:
    """One run of whole paragraphs with `least` to `most` sentences, or None where there is none.

    All such runs are equally likely; the document's id alone decides.
    """
    runs = []
    for start in range(len(paragraphs)):
        count = 0
        for end in range(start, len(paragraphs)):
            count += len(paragraphs[end])
            if count > most:
                break
            if count >= least:
                runs.append((start, end + 1))
    if not runs:
        return None
    start, end = runs[int(_hash("passage", doc_id), 16) % len(runs)]
    return paragraphs[start:end]


def quotas(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """How many of `total` documents each domain gives, in proportion to the domains' sizes.

    Each gives one before any gives two. Sainte-Laguë's rule: unlike largest remainders, no domain
    gives fewer when `total` grows.
    """
    given = dict.fromkeys(sizes, 0)
    turns = [(0.0, -size, domain) for domain, size in sizes.items() if size]
    heapq.heapify(turns)
    for _ in range(min(total, sum(sizes.values()))):
        _, _, domain = heapq.heappop(turns)
        given[domain] += 1
        if given[domain] < sizes[domain]:
            turn = (2 * given[domain] + 1) / sizes[domain]
            heapq.heappush(turns, (turn, -sizes[domain], domain))
    return given


def _hash(purpose: str, doc_id: str) -> str:
    return hashlib.sha256(f"{purpose}\n{doc_id}".encode()).hexdigest()
