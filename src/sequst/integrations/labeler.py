"""A tagger with the interface of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sequst.api import Result, train
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import is_tag
from sequst.errors import UsageError, nearest, shorten
from sequst.evaluation.evaluate import evaluate
from sequst.files import Scratch
from sequst.inputs import read_json
from sequst.integrations.hub import push_to_hub
from sequst.integrations.notebook import HtmlProgress, in_notebook
from sequst.tagger.prediction import as_sentence, as_sentences
from sequst.tagger.save import FACTS
from sequst.tagger.tagger import Tagger
from sequst.training.configure import flatten, from_dict, from_model, layered, nested, of_effort
from sequst.training.data import DataFile
from sequst.training.progress import Progress
from sequst.training.settings import Settings
from sequst.training.sources import Source, read_tagged
from sequst.uncertainty.predict import PASSES, annotate_with_uncertainty

LABELLED = "a file, a list of Sentence with tags, or a list of (words, tags), e.g. (['Oslo'], ['B-place'])"
UNLABELLED = "a file, or a list of texts, of lists of words or of Sentence"


class Labeler:
    """`fit(labeled, unlabeled)`, then `predict`, `score`, `save`.

    `settings` are all others by name, nested or dotted: `{"teacher.epochs": 3}`. Those that are arguments too, e.g. seed, count
    where the argument is left at its default; `fit` raises an error where both are given and differ. The run is kept in
    `output`, or thrown away with the labeler. `progress` shows bars; by default in a notebook only.
    """

    def __init__(
        self, *, encoder: str = "minilm", method: str = "auto", head: str = "softmax", seed: int = 12, device: str = "auto",
        effort: str = "default", settings: Mapping[str, Any] | None = None, output: str | Path | None = None,
        progress: bool | None = None,
    ) -> None:  # fmt: skip
        self.encoder, self.method, self.head, self.seed, self.device = encoder, method, head, seed, device
        self.effort, self.settings, self.output, self.progress = effort, settings, output, progress
        self.run_: Result | None = None
        """The result of `fit`."""
        self._tagger: Tagger | None = None
        self._facts: dict[str, Any] = {}
        self._folder: Scratch | None = None

    def fit(self, labeled: Any, unlabeled: Any = None, *, dev: Any = None) -> Labeler:
        """Learn from labelled sentences and, if given, unlabelled ones. A dev set decides which weights are kept and what
        confidences mean; without one, `dev_shots` or `dev_fraction` among the settings set some aside."""
        settings, shown = self._settings(), in_notebook() if self.progress is None else self.progress
        source = _source(labeled, "labeled", _labelled, LABELLED)
        dev = None if dev is None else _source(dev, "dev", _labelled, LABELLED)
        text = None if unlabeled is None else _source(unlabeled, "unlabeled", as_sentence, UNLABELLED)
        folder = Scratch() if self.output is None else None
        output = Path(folder.name) / "run" if folder is not None else Path(self.output or "")
        progress = HtmlProgress() if shown else Progress()
        run = train(source, output, unlabeled=text, dev=dev, settings=settings, progress=progress)
        self.run_, self._folder = run, folder  # those of an earlier fit stay until this one has ended
        self._tagger, self._facts = run.tagger, read_json(run.path / "model" / FACTS)
        return self

    def predict(self, inputs: Any, *, uncertainty: bool = False, passes: int = PASSES) -> Any:
        """Predictions of a text, a list of words, a `Sentence`, or a list of these; with `uncertainty` also what passes with
        dropout say of every word."""
        if passes < 1:
            raise UsageError(f"passes={passes}: at least 1")
        if not uncertainty:
            return self.tagger_.predict(inputs)
        sentences, single = as_sentences(inputs)
        found = list(annotate_with_uncertainty(self.tagger_, sentences, passes, int(self._argument("seed"))))
        return found[0] if single else found

    def score(self, test: Any) -> float:
        """The F1 of entities, from 0 to 100."""
        sentences, _ = read_tagged(_source(test, "test", _labelled, LABELLED))
        return evaluate(self.tagger_, sentences).total.f1

    def save(self, folder: str | Path) -> None:
        """Write the model's folder, which `load`, `sequst predict` and, for most, transformers read. A model that is there is
        replaced; a folder of other things is an error."""
        self.tagger_.save(folder, self._facts)

    def push_to_hub(self, name: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model as NAME, e.g. `you/your-tagger`; the page's address. Its card says how it was made."""
        with Scratch() as folder:
            self.save(Path(folder) / "model")
            return push_to_hub(Path(folder) / "model", name, private=private, token=token)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", min_confidence: float | None = None) -> Labeler:
        """A labeler from a model's folder. `fit` trains a new model with its settings. `min_confidence`: see `Tagger.load`."""
        tagger, path = Tagger.load(folder, device, min_confidence=min_confidence), Path(folder) / FACTS
        facts = read_json(path) if path.is_file() else {}
        settings, defaults = flatten(from_model(facts.get("settings", {}), f"settings in {path}")), flatten(Settings())
        own = {name: settings.pop(name) for name in ("encoder", "method", "head", "seed")}
        del settings["device"]
        others = {name: value for name, value in settings.items() if value != defaults[name]}
        labeler = cls(**own, device=device, settings=others or None)
        labeler._tagger, labeler._facts = tagger, facts
        return labeler

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in _DEFAULTS}

    def set_params(self, **params: Any) -> Labeler:
        """Change arguments by name; `teacher__epochs=3` is the setting teacher.epochs."""
        unknown = next((name for name in params if name not in _DEFAULTS and "__" not in name), None)
        if unknown is not None:
            raise UsageError(f"unknown argument {unknown!r} of Labeler; {nearest(unknown, _DEFAULTS)}")
        for name in params.keys() & _DEFAULTS.keys():
            setattr(self, name, params[name])
        inner = {name.replace("__", "."): value for name, value in params.items() if name not in _DEFAULTS}
        if inner:
            self.settings = {**(self.settings or {}), **inner}
        return self

    @property
    def tagger_(self) -> Tagger:
        if self._tagger is None:
            raise UsageError("this Labeler is not trained: call fit(labeled, unlabeled) first, or Labeler.load(folder)")
        return self._tagger

    def _settings(self) -> Settings:
        own = {name: self._argument(name) for name in ("encoder", "method", "head", "seed", "device")}
        tree = layered(of_effort(self.effort), nested(self.settings or {}, "Labeler"))
        return from_dict({**tree, **own}, "Labeler")

    def _argument(self, name: str) -> Any:
        """What was given, as an argument or among the settings; an error where both were and they differ."""
        given = getattr(self, name)
        among = (self.settings or {}).get(name, given)
        if among != given and given != _DEFAULTS[name]:
            raise UsageError(f"Labeler: {name}={given!r}, and {name} {among!r} among its settings; give one of them")
        return among

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value != _DEFAULTS[name])
        return f"Labeler({given})"


_DEFAULTS = {
    name: parameter.default for name, parameter in inspect.signature(Labeler.__init__).parameters.items() if name != "self"
}


def _source(source: Any, role: str, sentence_of: Callable[[Any, int], Sentence], expected: str) -> Source:
    """A file as it is, a list as sentences; `sentence_of` raises a UsageError for what is none."""
    if isinstance(source, str | Path | DataFile):
        return source
    if not isinstance(source, Sequence):
        raise UsageError(f"{role}: found {shorten(source)}; give {expected}")
    found = []
    for number, item in enumerate(source, 1):
        try:
            found.append(sentence_of(item, number))
        except UsageError:
            raise UsageError(f"{role}: its item {number} is {shorten(item)}; give {expected}") from None
    return found


def _labelled(item: Any, number: int) -> Sentence:
    """A sentence, or a tuple of words and tags as one."""
    if isinstance(item, Sentence):
        return item
    if isinstance(item, tuple) and len(item) == 2 and not isinstance(item[0], str):
        words, tags = map(tuple, item)
        if len(words) == len(tags) and all(isinstance(tag, str) and is_tag(tag) for tag in tags):
            return Sentence(words, tags, number)
    raise UsageError("no labelled sentence")
