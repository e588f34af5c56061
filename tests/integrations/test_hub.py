from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from huggingface_hub.errors import HFValidationError, LocalTokenNotFoundError

from sequst.errors import SequstError, UsageError
from sequst.integrations.hub import push_to_hub
from sequst.tagger.tagger import Tagger


class Hub:
    """The hub, as far as it is called here."""

    fails: Exception | None = None

    def __init__(self, token: str | None = None) -> None:
        self.uploads: list[tuple[str, set[str], str]] = []
        self.made: list[tuple[str, bool]] = []
        self.token = token
        Hub.last = self  # type: ignore[attr-defined]

    def create_repo(self, name: str, private: bool, exist_ok: bool) -> str:
        assert exist_ok
        if self.fails is not None:
            raise self.fails
        self.made.append((name, private))
        return f"https://hub/{name}"

    def upload_folder(self, folder_path: Path, repo_id: str, commit_message: str) -> None:
        self.uploads.append((repo_id, {path.name for path in folder_path.iterdir()}, commit_message))


@pytest.fixture
def model(tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    Tagger.from_encoder(tiny_encoder, ["O", "B-x"], seed=1).save(tmp_path / "model")
    return tmp_path / "model"


def test_the_folder_goes_up_with_its_card(model: Path) -> None:
    assert push_to_hub(model, "me/tagger", private=True, token="t") == "https://hub/me/tagger"
    hub: Any = Hub.last  # type: ignore[attr-defined]
    assert hub.token == "t"
    assert hub.made == [("me/tagger", True)]
    [(name, files, message)] = hub.uploads
    assert (name, message) == ("me/tagger", "A sequst tagger")
    assert files >= {"README.md", "config.json", "model.safetensors", "sequst.json", "tokenizer.json"}


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (HFValidationError("bad"), UsageError, "write it as you/your-tagger"),
        (LocalTokenNotFoundError("no token"), UsageError, "hf auth login"),
        (OSError("no route\nto host"), SequstError, r"the upload is not complete \(no route\)"),
        (
            httpx.ConnectError("[Errno -3] no name\nfor it"),
            SequstError,
            r"the upload is not complete \(\[Errno -3\] no name\); try again",
        ),
        (httpx.ReadTimeout(""), SequstError, r"the upload is not complete \(ReadTimeout\); try again"),
    ],
)
def test_what_goes_wrong_is_said(
    error: Exception, kind: type[Exception], told: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hub, "fails", error)
    with pytest.raises(kind, match=told):
        push_to_hub(model, "me/tagger")


def test_only_a_model_goes_up(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no model in .*sequst\.json"):
        push_to_hub(tmp_path, "me/tagger")
