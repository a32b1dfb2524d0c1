"""Which documents each generator edits, under which design, with which prompts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from palimpsest.corpora.sampling import quotas, rank
from palimpsest.params import Generator, Params
from palimpsest.trajectories.build import Brief, revisions
from palimpsest.trajectories.designs import generators
from palimpsest.trajectories.prompts import load_prompt_set


class Size(NamedTuple):
    doc_id: str
    domain: str
    n_sentences: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """One generator's work under one design; `revisions` counts its sentence revisions."""

    brief: Brief
    generator: Generator
    documents: frozenset[str]
    revisions: int


def assignments(params: Params, designs: Iterable[str], sizes: Sequence[Size]) -> list[Assignment]:
    """The work of every generator that a design asks for, in the order of params.

    Raises:
        InputError: a prompt set that is missing or wrong.
    """
    result = []
    for design in designs:
        for name in generators(design, params.trajectory):
            generator = params.generators[name]
            trajectory = params.trajectory
            if generator.temperatures is not None:
                trajectory = replace(trajectory, temperatures=generator.temperatures)
            prompts = load_prompt_set(trajectory, generator.prompts)
            brief = Brief(design, name, prompts, trajectory)
            documents = share(sizes, generator.documents)
            total = sum(revisions(brief, s.n_sentences) for s in sizes if s.doc_id in documents)
            result.append(Assignment(brief, generator, documents, total))
    return result


def share(sizes: Sequence[Size], wanted: float) -> frozenset[str]:
    """The documents that a generator edits: a share of them up to 1, a number above.

    Domains give in proportion to their sizes, each its first documents in the order of their ids'
    hashes, so what a smaller share edits a larger one edits, too.
    """
    by_domain = defaultdict(list)
    for size in sizes:
        by_domain[size.domain].append(size.doc_id)
    number = round(wanted * len(sizes)) if wanted <= 1 else int(wanted)
    counts = quotas({d: len(ids) for d, ids in by_domain.items()}, max(1, number))
    return frozenset(
        doc_id
        for domain, ids in by_domain.items()
        for doc_id in sorted(ids, key=rank)[: counts[domain]]
    )
