"""Upload a model to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sequst.errors import SequstError, UsageError
from sequst.tagger.save import FACTS


def push_to_hub(
    folder: str | Path, name: str, *, private: bool = False, token: str | None = None, message: str = "A sequst tagger"
) -> str:
    """Upload the folder of a model as NAME, e.g. `you/your-tagger`, and return the page's address.

    The repository is created where there is none. Read the model card first: it names the data, the scores and the command.
    """
    folder = Path(folder)
    if not (folder / FACTS).is_file():
        raise UsageError(f"no model in {folder}: it has no {FACTS}; name a folder that `sequst train` or `save` wrote")
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    try:
        api: Any = HfApi(token=token)
        address = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(folder_path=folder, repo_id=name, commit_message=message)
    except HFValidationError as error:
        raise UsageError(f"{name}: not a name of the hub ({error}); write it as you/your-tagger") from None
    except LocalTokenNotFoundError:
        raise UsageError("not logged in to the hub: run `hf auth login`, or pass token=…") from None
    except (HfHubHTTPError, httpx.HTTPError, OSError) as error:  # those of no network are httpx's own
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise SequstError(f"{name}: the upload is not complete ({reason}); try again") from None
    return str(address)
