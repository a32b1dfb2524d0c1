"""Prompt sets: data files that say how a sentence's revision is asked for."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import Template

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from palimpsest.errors import InputError, unknown
from palimpsest.params import OPERATIONS, Trajectory
from palimpsest.trajectories.requests import Message

USER_FIELDS = {"operation", "task", "low", "high", "style", "guidance", "context", "sentence"}


@dataclass
class Example:
    sentence: str
    reply: str


@dataclass
class OperationPrompt:
    """`length` is the least and the most per cent of the sentence's words that a reply may have."""

    task: str
    guidance: str
    length: list[int]
    style: str = ""
    examples: list[Example] = field(default_factory=list)


@dataclass
class PromptSet:
    """Templates with `$names`, and what varies by operation.

    `user` asks for a sentence. The paragraph stands in it, or in `background`, a turn of its own
    before the examples, to which the model is made to answer `acknowledgement`. `style` is the line
    that `user` shows at `$style`; where an operation has no style target the line is left out.
    """

    name: str
    system: str
    user: str
    operations: dict[str, OperationPrompt]
    style: str = ""
    background: str = ""
    acknowledgement: str = ""

    @cached_property
    def identity(self) -> str:
        """Name and content hash, as they stand in texts and runs."""
        content = OmegaConf.to_yaml(OmegaConf.structured(self), sort_keys=True)
        return f"{self.name}@{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    def messages(self, operation: str, context: str, sentence: str) -> tuple[Message, ...]:
        """The system message, the examples as earlier turns, and the request itself.

        Texts are filled in once and never read as templates themselves.
        """
        parts = self._parts[operation]
        turns = [parts.system]
        if self.background:
            paragraph = Template(self.background).substitute(context=context)
            turns += [Message("user", paragraph), Message("assistant", self.acknowledgement)]
        return (*turns, *parts.examples, _ask(parts.user, context, sentence))

    def examples(self, operation: str) -> tuple[str, ...]:
        """The sentences and replies that an operation's prompt shows."""
        shown = self.operations[operation].examples
        return tuple(text for example in shown for text in (example.sentence, example.reply))

    def length(self, operation: str) -> tuple[int, int]:
        """The least and the most per cent of a sentence's words that a reply may have."""
        low, high = self.operations[operation].length
        return low, high

    @cached_property
    def _parts(self) -> "dict[str, _Parts]":
        """What an operation's requests have in common, made once."""
        return {operation: self._parts_of(operation) for operation in self.operations}

    def _parts_of(self, operation: str) -> "_Parts":
        prompt = self.operations[operation]
        low, high = prompt.length
        known = {
            "operation": operation,
            "task": prompt.task,
            "low": str(low),
            "high": str(high),
            "style": Template(self.style).substitute(style=prompt.style) if prompt.style else "",
            "guidance": prompt.guidance.strip(),
        }
        # What is left to fill in is left to `%`, three times as fast as a template.
        fields = {name: value.replace("%", "%%") for name, value in known.items()}
        fields |= {"context": "%(context)s", "sentence": "%(sentence)s"}
        user = Template(self.user.replace("%", "%%")).substitute(fields)
        examples: list[Message] = []
        for example in prompt.examples:
            examples += [_ask(user, "", example.sentence), Message("assistant", example.reply)]
        system = Template(self.system).substitute(task=prompt.task).strip()
        return _Parts(Message("system", system), tuple(examples), user)


@dataclass(frozen=True, slots=True)
class _Parts:
    system: Message
    examples: tuple[Message, ...]
    user: str  # a format that lacks only the context and the sentence


def _ask(user: str, context: str, sentence: str) -> Message:
    return Message("user", (user % {"context": context, "sentence": sentence}).strip())


def load_prompt_set(params: Trajectory, name: str | None = None) -> PromptSet:
    """The prompt set of that name from the params' folder; without a name, the trajectory's.

    Raises:
        InputError: no such set, or one that `load_prompts` refuses.
    """
    folder = Path(params.prompt_sets)
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    name = name or params.prompts
    if name not in known:
        raise InputError(f"{folder}: {unknown('prompt set', name, known)}")
    return load_prompts(folder / f"{name}.yaml")


def load_prompts(path: Path) -> PromptSet:
    """Read and check a prompt set.

    Raises:
        InputError: an unknown or missing key, an operation that is not described, a
            template with an unknown name or without the sentence.
    """
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        prompts = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(PromptSet), given))
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    except OmegaConfBaseException as error:
        raise InputError(f"{path}: {error.full_key}: {str(error).splitlines()[0]}") from error
    assert isinstance(prompts, PromptSet)

    if missing := set(OPERATIONS) - set(prompts.operations):
        raise InputError(f"{path}: operations lacks {', '.join(sorted(missing))}")
    for key, known in (
        ("system", {"task"}),
        ("user", USER_FIELDS),
        ("style", {"style"}),
        ("background", {"context"}),
    ):
        template = Template(getattr(prompts, key))
        if not template.is_valid() or not set(template.get_identifiers()) <= known:
            raise InputError(
                f"{path}: {key} names {template.get_identifiers()}; known are {sorted(known)}, and "
                "a dollar sign is written $$"
            )
    asked = set(Template(prompts.user).get_identifiers())
    if "sentence" not in asked:
        raise InputError(f"{path}: user must show the $sentence")
    if ("context" in asked) == bool(prompts.background):
        raise InputError(f"{path}: the $context belongs either into user or into background")
    for name, prompt in prompts.operations.items():
        if len(prompt.length) != 2 or not 0 < prompt.length[0] <= prompt.length[1]:
            raise InputError(
                f"{path}: operations.{name}.length is {prompt.length}: give [low, high]"
            )
        if prompt.examples and not prompts.background:
            raise InputError(f"{path}: operations.{name}.examples need a background turn")
    return prompts
