"""Make the editor that a generator's params ask for."""

import os

from palimpsest.errors import InputError, unknown
from palimpsest.params import EDITORS, Generator
from palimpsest.trajectories.requests import Editor


def make_editor(generator: Generator, device: str, dtype: str) -> Editor:
    """An editor that loads its model when it has a request to answer, not before.

    Raises:
        InputError: an unknown editor, an API key that is not in the environment.
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
        case "openai-compatible":
            from palimpsest.editors.openai_editor import OpenAIEditor

            return OpenAIEditor(generator, _api_key(generator.key_variable))
        case "vllm":
            from palimpsest.editors.vllm_editor import VLLMEditor

            return VLLMEditor(generator, dtype)
        case _:
            raise unknown("editor", generator.editor, EDITORS)


def _api_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if key := os.environ.get(variable, "").strip():
        return key
    raise InputError(
        f"{variable} is not set: put the API key into this environment variable (any value will do "
        "where the journal holds every reply)"
    )
