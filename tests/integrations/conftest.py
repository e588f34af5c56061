"""Taggers that have learnt nothing, and yet are decided: their tags vary from word to word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from sequst.corpus.generated import generate
from sequst.tagger.tagger import Tagger, labels_of

MakeTagger = Callable[..., Tagger]


@pytest.fixture(scope="session")
def encoders(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of small encoders by the name of their architecture."""
    torch.manual_seed(0)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    words = len(transformers.AutoTokenizer.from_pretrained(tiny_encoder))
    others = {
        "mpnet": transformers.MPNetConfig(vocab_size=words, pad_token_id=0, **small),
        "distilbert": transformers.DistilBertConfig(vocab_size=words, dim=32, n_layers=1, n_heads=2, hidden_dim=48),
        "roberta": transformers.RobertaConfig(vocab_size=words, pad_token_id=0, **small),
        "modernbert": transformers.ModernBertConfig(
            vocab_size=words, pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3, **small
        ),
        "deberta": transformers.DebertaV2Config(
            vocab_size=words, pad_token_id=0, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8, **small
        ),
    }
    found = {"bert": tiny_encoder}
    for name, config in others.items():
        folder = tmp_path_factory.mktemp("encoders") / name
        transformers.AutoModel.from_config(config).save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(folder)
        found[name] = str(folder)
    return found


@pytest.fixture(scope="session")
def make_tagger() -> MakeTagger:
    def make(encoder: str, **options: Any) -> Tagger:
        tagger = Tagger.from_encoder(encoder, labels_of(generate().pool), max_length=16, overlap=4, seed=1, **options)
        generator = torch.Generator().manual_seed(2)
        with torch.no_grad():
            tagger.head.linear.weight.normal_(0.0, 0.5, generator=generator)
            for parameter in tagger.head.parameters(recurse=False):  # the transitions of a CRF
                parameter.normal_(0.0, 2.0, generator=generator)
        return tagger

    return make


@pytest.fixture
def model(make_tagger: MakeTagger, tiny_encoder: str, tmp_path: Path) -> Path:
    """One of them, saved."""
    make_tagger(tiny_encoder, valid=True).save(tmp_path / "model")
    return tmp_path / "model"
