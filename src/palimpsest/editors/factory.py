"""Make the editor that a generator's params ask for."""

from palimpsest.errors import unknown
from palimpsest.params import Generator
from palimpsest.trajectories.requests import Editor


def make_editor(generator: Generator, device: str, dtype: str) -> Editor:
    """An editor that loads its model when it has a request to answer, not before.

    Raises:
        InputError: an unknown editor.
    """
    match generator.editor:
        case "transformers":
            from palimpsest.editors.transformers_editor import TransformersEditor

            return TransformersEditor(
                generator.model,
                generator.revision,
                device=device,
                dtype=dtype,
                top_k=generator.top_k,
                batch_size=generator.batch_size,
            )
        case _:
            raise unknown("editor", generator.editor, ["transformers"])
