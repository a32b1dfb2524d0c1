"""A causal language model small enough for a test, with a byte-level vocabulary of its own."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

_TRAINED_ON = (
    "The ferry left the island before the rain reached the harbour, and nobody waved.",
    "She counted the lamps along the river and found that one of them was missing.",
    "When the baker opened his shop, the whole street already smelled of warm bread.",
)


def tiny_causal_lm(
    folder: Path, config: Any = None, *, bos: bool = False, positions: int = 2048
) -> Path:
    """A model folder with random weights, peaked enough to prefer some tokens to others.

    Args:
        folder: where to write; made if missing.
        config: a transformers config of a causal model; a two-layer Llama by default.
        bos: whether the tokenizer puts a BOS in front of each text.
        positions: the context of the default model.
    """
    tokenizer = _tokenizer(bos)
    if config is None:
        config = LlamaConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=positions,
            initializer_range=0.3,
        )
    config.vocab_size = len(tokenizer)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(bos: bool) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        _TRAINED_ON,
        trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=["<s>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="<s>")
