"""A BERT-like encoder small enough for a test, with a word-piece vocabulary of its own."""

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoModel, BertConfig, PreTrainedConfig, PreTrainedTokenizerFast

_SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_TRAINED_ON = (
    "The ferry left the island before the rain reached the harbour, and nobody waved.",
    "She counted the lamps along the river and found that one of them was missing.",
    "渡船在下雨之前离开了小岛，没有人挥手。她数了河边的灯。",
)


def tiny_encoder(
    folder: Path,
    texts: Iterable[str] = _TRAINED_ON,
    *,
    positions: int = 64,
    kind: type[PreTrainedConfig] = BertConfig,
) -> Path:
    """A model folder with random weights; characters outside `texts` are unknown to it.

    Args:
        folder: where to write; made if missing.
        texts: what the vocabulary is trained on.
        positions: the most tokens, special ones included, that the encoder reads.
        kind: the transformers config class of the encoder.
    """
    tokenizer = Tokenizer(models.WordPiece(unk_token=_SPECIAL["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        texts,
        trainers.WordPieceTrainer(
            vocab_size=400, special_tokens=list(_SPECIAL.values()), show_progress=False
        ),
    )
    config = kind(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=positions,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AutoModel.from_config(config).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=positions,
        **{f"{name}_token": token for name, token in _SPECIAL.items()},
    ).save_pretrained(folder)
    return folder
