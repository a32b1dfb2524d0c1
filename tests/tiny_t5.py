"""A T5 small enough for a test, taught to fill the gaps of a few sentences."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

_SENTENCE = "The {} ferry left the island before the {} rain reached the harbour"
_FILLS = ("old", "slow", "last", "red", "tired", "heavy")
_SENTINELS = [f"<extra_id_{i}>" for i in range(100)]


def tiny_t5(folder: Path, steps: int = 60) -> Path:
    """A model folder; with no `steps`, random weights."""
    tokenizer = _tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = T5ForConditionalGeneration(
            T5Config(
                vocab_size=len(tokenizer),
                d_model=32,
                d_kv=8,
                d_ff=64,
                num_layers=2,
                num_heads=4,
                dropout_rate=0.0,
                decoder_start_token_id=tokenizer.pad_token_id,
                pad_token_id=tokenizer.pad_token_id,
                eos_token_id=tokenizer.eos_token_id,
            )
        )
        _teach(model, tokenizer, steps)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<pad>", "</s>", "<unk>", *_SENTINELS]
    tokenizer.train_from_iterator(
        [_SENTENCE, *_FILLS], trainers.WordLevelTrainer(special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def _teach(
    model: T5ForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, steps: int
) -> None:
    """One to seven gaps, each filled by any two of the words."""
    draw = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    words = [*_FILLS, *_SENTENCE.replace("{} ", "").split()]
    for _ in range(steps):
        count = int(torch.randint(1, 8, (), generator=draw))
        masked, fills = [], []
        for _ in range(16):
            picks = torch.randint(len(words), (count, 3), generator=draw).tolist()
            pairs = list(zip(picks, _SENTINELS, strict=False))
            masked.append(" ".join(f"{words[before]} {s}" for (before, *_), s in pairs))
            written = " ".join(f"{s} {words[one]} {words[two]}" for (_, one, two), s in pairs)
            fills.append(f"{written} {_SENTINELS[count]}")
        inputs = tokenizer(masked, return_tensors="pt", padding=True)
        loss = model(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            labels=tokenizer(fills, return_tensors="pt", padding=True).input_ids,
        ).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
