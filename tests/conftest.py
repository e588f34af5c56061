"""Shared pieces of the tests: a tiny encoder that loads in a blink, small taggers, and the command line."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run on all cores already: threads would wait for one another

import io
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.generated import generate
from sequst.corpus.sampling import Split, sample

REPOSITORY = Path(__file__).parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process is left with one of them at the end."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT of 2 layers x 32 with random weights and a character-level word-piece vocabulary, as a local folder."""
    import tokenizers
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    characters = [chr(c) for c in range(33, 127)]
    words = sorted({word.lower() for s in generate().pool for word in s.words if word.isalpha()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{c}" for c in characters)]
    vocabulary = list(dict.fromkeys([*vocabulary, *words]))
    backend = tokenizers.BertWordPieceTokenizer(vocab={word: i for i, word in enumerate(vocabulary)}, lowercase=True)
    backend.enable_truncation(16)  # as published encoders have it; sequst must switch it off
    backend.enable_padding(length=16)
    tokenizer = transformers.BertTokenizerFast(tokenizer_object=backend._tokenizer)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=128,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def split() -> Split:
    """A five-shot split of the generated corpus."""
    return sample(generate().pool, 5)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file into the test's folder."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


Done = subprocess.CompletedProcess[str]


@pytest.fixture
def sequst_process() -> Callable[..., Done]:
    """Run the command line in a process of its own."""

    def run(*arguments: object, **options: Any) -> Done:
        command = [sys.executable, "-m", "sequst", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, check=False, text=True, stdin=subprocess.DEVNULL, **options)

    return run


@pytest.fixture
def sequst(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run the command line in this process, which has its imports behind it; everything else is as from a shell."""
    from sequst.cli import main

    def run(*arguments: object, stdin: str | bytes = b"", cwd: Path | None = None) -> Done:
        streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for name in ("stdout", "stderr")}
        content = stdin.encode() if isinstance(stdin, str) else stdin
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["sequst", *map(str, arguments)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            if cwd is not None:
                patch.chdir(cwd)
            try:
                main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            except Exception:
                traceback.print_exc()
                code = 1
        shown = {}
        for name, stream in streams.items():
            stream.flush()
            shown[name] = stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
        return subprocess.CompletedProcess(list(map(str, arguments)), code, shown["stdout"], shown["stderr"])

    return run
