"""The designs: which versions of a document are made, and what each starts from."""

from dataclasses import dataclass

from palimpsest.params import Trajectory


@dataclass(frozen=True, slots=True)
class Version:
    """`coverage` is a whole per cent of the document's sentences."""

    name: str
    operation: str
    coverage: int


@dataclass(frozen=True, slots=True)
class Route:
    """The versions of one trajectory, after the human one.

    `variant` tells a document's trajectories within a design apart. Each version starts from the
    one before it where the route is `cumulative`, else from the human text.
    """

    variant: str
    human: str
    versions: tuple[Version, ...]
    cumulative: bool


def routes(design: str, params: Trajectory) -> tuple[Route, ...]:
    """The trajectories that a design makes of each document.

    `cumulative` is the paper's schedule (Section 3, Table 3) and `independent` the same with every
    version made from v0. `coverage` varies the coverage within one operation and `operation` the
    operation at one coverage; the paper does not say which text these edit, here it is v0.
    """
    schedule = tuple(Version(name, s.operation, s.coverage) for name, s in params.schedule.items())
    ablations = params.ablations
    match design:
        case "cumulative" | "independent":
            return (Route("", "v0", schedule, cumulative=design == "cumulative"),)
        case "coverage":
            return tuple(
                Route(
                    operation,
                    "c000",
                    tuple(Version(f"c{c:03}", operation, c) for c in ablations.coverages),
                    cumulative=False,
                )
                for operation in ablations.operations
            )
        case "operation":
            return tuple(
                Route(
                    str(coverage),
                    "v0",
                    tuple(Version(o, o, coverage) for o in ablations.operations),
                    cumulative=False,
                )
                for coverage in ablations.fixed_coverages
            )
        case _:
            raise ValueError(f"no design {design}")


def generators(design: str, params: Trajectory) -> list[str]:
    """Who makes a design's trajectories: the paper's ablations within v0 have their own list."""
    return params.ablations.generators if design in ("coverage", "operation") else params.generators
