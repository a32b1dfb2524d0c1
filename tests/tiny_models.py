"""A chat model of a few thousand weights, made in a second: random, but a real one to its users."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

TEXTS = (
    "The river rose in the night and carried the old bridge away.",
    "Nobody in the village had seen such water since the mill was built.",
    "By morning the baker had drawn a map of every house that still stood dry.",
    "Rewrite the sentence: keep its meaning, its names and its 3 numbers, and answer in one line.",
)
CHAT = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def tiny_chat_model(folder: Path, network: type[Any] = LlamaForCausalLM, **config: Any) -> Path:
    """Write model and tokenizer into `folder`, the same weights every time, and return it.

    `network` and `config` make it another architecture: any whose config takes these names.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    chat = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|start|>", eos_token="<|end|>", pad_token="<|end|>"
    )
    chat.chat_template = CHAT
    chat.save_pretrained(folder)

    settings = network.config_class(
        **{
            "vocab_size": len(chat),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "initializer_range": 0.4,  # with the usual 0.02 every next token is as likely
            "bos_token_id": chat.bos_token_id,
            "eos_token_id": chat.eos_token_id,
            "pad_token_id": chat.pad_token_id,
            **config,
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network(settings).save_pretrained(folder)
    return folder
