"""The five stages, one module each: it reads files, calls pure functions, writes files."""

STAGES = ("corpus", "generate", "split", "train", "evaluate")
