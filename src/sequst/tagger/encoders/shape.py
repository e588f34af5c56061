"""The shape of a BiLSTM, and names of encoders. Needs no torch, so settings can import it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sequst.errors import UsageError, shorten
from sequst.files import as_folder

BILSTM = "bilstm"
"""The name of an encoder that is not pretrained."""
GLOVE = "glove"
"""The name of the packaged word vectors."""
SHAPE = "bilstm.json"
"""The file in a model's folder that tells its shape."""


def require_folder(name: str) -> None:
    """Raise an error for a name that can only be one of a folder, if there is none: those of the hub are NAME or OWNER/NAME."""
    is_path = not re.fullmatch(r"[\w][\w.-]*(/[\w][\w.-]*)?", name, re.ASCII)
    if is_path and not (name and as_folder(name).is_dir()):
        raise UsageError(f"the encoder {shorten(name)}: there is no such folder; name one, `minilm`, `bilstm` or a hub model")


@dataclass(frozen=True)
class BiLstmShape:
    """Sizes and word vectors of a BiLSTM."""

    vectors: str = ""
    """Word vectors: `glove` (GloVe 6B, 50 dimensions, an installed package), a text file of them, or empty: learnt ones."""
    layers: int = 2
    """Layers, each of which reads in both directions; a word's state is what all of them make of it."""
    hidden: int = 128
    """Size of a layer's state in each direction."""
    word_size: int = 50
    """Size of learnt word vectors; those of a file have their own."""
    character_size: int = 25
    """Size of the vectors of characters."""
    filters: int = 50
    """What the convolution over a word's characters gives: so many numbers."""
    dropout: float = 0.33
    """Rate at which inputs, states between layers and states before the head are dropped, and whole word vectors too."""
