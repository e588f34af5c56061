from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import transformers

from sequst.tagger.encoders.pretrained import load_tokenizer

SCRIPT = """
import resource, sys
from sequst.corpus.generated import generate
from sequst.tagger.predict import annotate
from sequst.tagger.tagger import Tagger

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

tagger = Tagger.from_encoder(sys.argv[1], ["O", "B-X"], seed=1)
sentences = generate().pool[:400]
list(annotate(tagger, sentences))
before = faults()
for _ in range(3):
    list(annotate(tagger, sentences))
print(faults() - before)
"""


def has_glibc() -> bool:
    try:
        return "glibc" in (os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (AttributeError, ValueError):
        return False


@pytest.mark.skipif(not has_glibc(), reason="memory is another library's here")
def test_batches_take_what_those_before_them_left(tmp_path: Path) -> None:
    """Pages that are mapped in: few, unless whoever starts the process has a say in it, here one that leaves glibc as it is."""
    config = transformers.BertConfig(hidden_size=384, num_hidden_layers=2, num_attention_heads=12, intermediate_size=1536)
    transformers.BertForTokenClassification(config).save_pretrained(tmp_path)
    load_tokenizer("minilm").save_pretrained(tmp_path)
    plain = {name: value for name, value in os.environ.items() if "MALLOC" not in name and name != "GLIBC_TUNABLES"}
    found = {
        name: int(
            subprocess.run([sys.executable, "-c", SCRIPT, tmp_path], env=plain | own, check=True, capture_output=True).stdout
        )
        for name, own in {"kept": {}, "given back": {"MALLOC_PERTURB_": "0"}}.items()
    }
    assert found["kept"] < found["given back"] / 5
