"""The network that tags words as human or AI, and how it is trained."""

import math
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import (
    AutoModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from palimpsest.detectors.crf import CRF
from palimpsest.detectors.interface import Log, Runtime
from palimpsest.detectors.word_windows import Window
from palimpsest.errors import InputError
from palimpsest.models import Model, pick_device, weights_dtype

if TYPE_CHECKING:
    from palimpsest.detectors.genai_sentence import Settings

# OpAI-Bench, Appendix D and Table 7; the clip and the weight decay are those of its code.
LORA = {"r": 8, "lora_alpha": 16, "lora_dropout": 0.1}
DROPOUT = 0.3
GRU_LAYERS = 2
WEIGHT_DECAY = 0.01
GRADIENT_CLIP = 1.0

AI = 1

Example = tuple[Window, Sequence[int]]  # a window and the labels of its words


class BiGRU(nn.Module):
    """A bidirectional GRU in which each padded sequence (B, T, width) is read by itself.

    The backward direction sees every sequence reversed within its own length, so padding, which
    stands behind it, reaches no state. A packed sequence does the same, but its gradient on a CPU
    takes three times as long at 340 steps and grows with their square.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        widths = [width] + [2 * hidden] * (GRU_LAYERS - 1)
        self.onward = nn.ModuleList(nn.GRU(n, hidden, batch_first=True) for n in widths)
        self.reverse = nn.ModuleList(nn.GRU(n, hidden, batch_first=True) for n in widths)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        at = torch.arange(states.shape[1], device=states.device)
        ends = lengths.unsqueeze(1)
        mirror = torch.where(at < ends, ends - 1 - at, at)
        for layer, (onward, reverse) in enumerate(zip(self.onward, self.reverse, strict=True)):
            if layer:
                states = self.dropout(states)
            back = _rows(reverse(_rows(states, mirror))[0], mirror)
            states = torch.cat([onward(states)[0], back], dim=2)
        return states


def _rows(states: Tensor, positions: Tensor) -> Tensor:
    """The states (B, N, width) at positions (B, N)."""
    return states.gather(1, positions.unsqueeze(2).expand(-1, -1, states.shape[2]))


class Tagger(nn.Module):
    """Encoder with LoRA -> BiGRU -> two linear layers -> CRF over the words' first sub-words.

    The frozen encoder keeps the dtype that it came in; all that is trained is float32.
    """

    def __init__(self, encoder: Any, width: int, hidden: int) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.dropout = nn.Dropout(DROPOUT)
        self.gru = BiGRU(width, hidden)
        self.head = nn.Sequential(
            nn.LayerNorm(2 * hidden),
            nn.Linear(2 * hidden, 2 * hidden),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            tags := nn.Linear(2 * hidden, 2),
        )
        nn.init.xavier_uniform_(tags.weight)
        self.crf = CRF(2)

    def emissions(self, input_ids: Tensor, attention_mask: Tensor, first: Tensor) -> Tensor:
        """A score (B, W, 2) of both tags for each word, from sub-words (B, T)."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask)
        states = self.dropout(states.last_hidden_state.float())
        states = self.gru(states, attention_mask.sum(1))
        emissions: Tensor = self.head(_rows(states, first))
        return emissions

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, first: Tensor, mask: Tensor, tags: Tensor
    ) -> dict[str, Tensor]:
        """The negative log-likelihood of the words' tags (B, W), per word."""
        emissions = self.emissions(input_ids, attention_mask, first)
        return {"loss": -self.crf.log_likelihood(emissions, tags, mask).sum() / mask.sum()}

    def trained(self) -> dict[str, nn.Parameter]:
        """What training changes: LoRA matrices, GRU, head and CRF."""
        return {name: value for name, value in self.named_parameters() if value.requires_grad}


def build(settings: "Settings", model: Model, runtime: Runtime) -> Tagger:
    """An untrained tagger on the runtime's device; the same seed gives the same one.

    Raises:
        InputError: LoRA targets that the encoder has not.
    """
    with seeded(runtime.seed):
        encoder = model.load(AutoModel, dtype=weights_dtype(runtime.dtype))
        width = encoder.config.hidden_size
        try:
            encoder = get_peft_model(
                encoder, LoraConfig(target_modules=list(settings.lora_targets), **LORA)
            )
        except ValueError as error:
            raise InputError(
                f"genai-sentence.lora_targets is {settings.lora_targets}; {model.name} has no such "
                "layers: name linear layers of its attention, such as query and value"
            ) from error
        return Tagger(encoder, width, settings.hidden).to(pick_device(runtime.device))


@torch.inference_mode()
def tag(
    tagger: Tagger, windows: Sequence[Window], pad: int, batch_size: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each window its words' decoded tags (W,) int8 and probabilities of AI (W,) float32."""
    answers: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for chosen, emissions, mask in _read(tagger, windows, pad, batch_size):
        tags = tagger.crf.viterbi(emissions, mask).to(torch.int8).cpu().numpy()
        scores = tagger.crf.marginals(emissions, mask)[:, :, AI].cpu().numpy()
        for row, i in enumerate(chosen):
            words = len(windows[i].first)
            answers[i] = (tags[row, :words], scores[row, :words])
    return [answers[i] for i in range(len(windows))]


def train(
    tagger: Tagger,
    examples: Sequence[Example],
    dev: Sequence[Example],
    pad: int,
    settings: "Settings",
    runtime: Runtime,
    log: Log,
) -> None:
    """Train the tagger and leave it as it was after its best epoch on dev.

    Best is the highest word F1-AI, among equals the lowest loss; both are reported each epoch. The
    global random states are afterwards as they were before.

    Raises:
        InputError: training that diverges, or a device other than that on which the Trainer runs.
    """
    device = torch.device(pick_device(runtime.device))
    best = BestEpoch(tagger, dev, pad, settings.batch_size, log)
    with seeded(runtime.seed), tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            lr_scheduler_type="linear",
            warmup_steps=settings.warmup,  # below 1 it is a share of all steps
            weight_decay=WEIGHT_DECAY,
            max_grad_norm=GRADIENT_CLIP,
            seed=runtime.seed,
            use_cpu=device.type == "cpu",
            dataloader_pin_memory=device.type == "cuda",
            remove_unused_columns=False,
            logging_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=False,
        )
        same_kind = device.type == arguments.device.type
        if not same_kind or device.index not in (None, arguments.device.index):
            raise InputError(
                f"device is {runtime.device!r}, but training runs on {arguments.device}: "
                "give `device: cuda` and choose the GPU by CUDA_VISIBLE_DEVICES"
            )
        # more GPUs in one process would mean larger batches; torchrun is the way to use them
        arguments._n_gpu = min(arguments.n_gpu, 1)
        trainer = Trainer(
            model=tagger,
            args=arguments,
            train_dataset=list(examples),
            data_collator=lambda rows: collate([w for w, _ in rows], pad, [t for _, t in rows]),
            callbacks=[best],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    restore(tagger, best.weights)
    tagger.eval()


class BestEpoch(TrainerCallback):
    """Judges the tagger on dev after each epoch and keeps, in memory, the best of its weights."""

    def __init__(
        self, tagger: Tagger, dev: Sequence[Example], pad: int, batch_size: int, log: Log
    ) -> None:
        self.tagger = tagger
        self.dev = dev
        self.pad = pad
        self.batch_size = batch_size
        self.log = log
        self.quality = (-math.inf, -math.inf)
        self.weights: dict[str, Tensor] = {}

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        f1, loss = judge(self.tagger, self.dev, self.pad, self.batch_size)
        if not math.isfinite(loss):
            raise InputError(
                f"genai-sentence diverged in epoch {round(state.epoch)}: its dev loss is {loss}; "
                "lower learning_rate"
            )
        if state.is_world_process_zero:
            self.log("dev_f1_ai", f1, step=round(state.epoch))
            self.log("dev_loss", loss, step=round(state.epoch))
        if (f1, -loss) > self.quality:
            self.quality = (f1, -loss)
            self.weights = {k: v.detach().cpu().clone() for k, v in self.tagger.trained().items()}

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, float], **kwargs: Any
    ) -> None:
        if "loss" in logs and state.is_world_process_zero:
            self.log("train_loss", logs["loss"], step=round(state.epoch))


@torch.inference_mode()
def judge(
    tagger: Tagger, examples: Sequence[Example], pad: int, batch_size: int
) -> tuple[float, float]:
    """The word F1-AI of the decoded tags (0 where undefined) and the loss per word."""
    hits, decoded, true, words, total = 0, 0, 0, 0, 0.0
    windows = [window for window, _ in examples]
    for chosen, emissions, mask in _read(tagger, windows, pad, batch_size):
        gold = _padded([examples[i][1] for i in chosen], 0).to(mask.device)
        tags = tagger.crf.viterbi(emissions, mask)
        hits += int(((tags == AI) & (gold == AI)).sum())
        decoded += int((tags == AI).sum())
        true += int((gold == AI).sum())
        words += int(mask.sum())
        total -= float(tagger.crf.log_likelihood(emissions, gold, mask).sum())
    return 2 * hits / max(decoded + true, 1), total / words


def restore(tagger: Tagger, weights: dict[str, Tensor]) -> None:
    """Put trained weights back.

    Raises:
        InputError: weights that are not exactly those that training changes.
    """
    if weights.keys() != tagger.trained().keys():
        odd = sorted(weights.keys() ^ tagger.trained().keys())
        raise InputError(f"the checkpoint does not fit the model: {len(odd)} weights, as {odd[0]}")
    tagger.load_state_dict({**tagger.state_dict(), **weights})


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed Python's, NumPy's and torch's global random states inside, and only inside."""
    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        set_seed(seed)
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])


def _read(
    tagger: Tagger, windows: Sequence[Window], pad: int, batch_size: int
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Batches of windows of like length: their indices, emissions (B, W, 2) and mask (B, W)."""
    device = next(tagger.parameters()).device
    order = sorted(range(len(windows)), key=lambda i: -len(windows[i].input_ids))
    was_training = tagger.training
    tagger.eval()
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        batch = {k: v.to(device) for k, v in collate([windows[i] for i in chosen], pad).items()}
        mask = batch.pop("mask")
        yield chosen, tagger.emissions(**batch), mask
    tagger.train(was_training)


def collate(
    windows: Sequence[Window], pad: int, tags: Sequence[Sequence[int]] | None = None
) -> dict[str, Tensor]:
    """Windows, and their words' tags, as one right-padded batch."""
    batch = {
        "input_ids": _padded([window.input_ids for window in windows], pad),
        "attention_mask": _padded([[1] * len(window.input_ids) for window in windows], 0),
        "first": _padded([window.first for window in windows], 0),
        "mask": _padded([[1] * len(window.first) for window in windows], 0).bool(),
    }
    return batch if tags is None else {**batch, "tags": _padded(tags, 0)}


def _padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    return nn.utils.rnn.pad_sequence(
        [torch.tensor(row) for row in rows], batch_first=True, padding_value=value
    )
