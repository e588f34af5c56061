"""Label Studio's ML backend: suggestions for its tasks; the labels that people submit are collected.

It sends `POST /setup` with the labelling interface of a project, `POST /predict` with tasks, and `POST /webhook` with whatever
people do. Offsets are code points.
"""

from __future__ import annotations

import logging
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar
from xml.sax.saxutils import quoteattr

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sequst.corpus.formats.labelstudio import FROM_NAME, TO_NAME, prediction, region
from sequst.corpus.sentence import Sentence
from sequst.errors import Malformed, SequstError, UsageError, shorten
from sequst.service.app import as_response, first_problem, require_json, unless_gone
from sequst.service.collected import Collected, Event, as_text
from sequst.service.guard import Refused
from sequst.service.schemas import MOST_TEXTS, StatusAnswer, errors, schema_of
from sequst.service.service import Service
from sequst.service.texts import checked
from sequst.tagger.prediction import Prediction

log = logging.getLogger(__name__)
Asked = TypeVar("Asked", bound=BaseModel)

PATHS = ("/setup", "/predict", "/webhook")
"""Label Studio shows nobody why one of these was refused."""
_COLOURS = ("#4C78A8", "#F2A33A", "#9C6ADE", "#3FA66B", "#D9536F", "#2FA5B5", "#B0803C", "#7D7D87")
_LONGEST = 1_000_000
_SECONDS = 90.0
"""For the predictions of all tasks that somebody selected; Label Studio waits 100."""


class SetupRequest(BaseModel):
    """A project and its labelling interface."""

    model_config = ConfigDict(extra="allow")
    config: Annotated[str, Field(alias="schema")]


class TasksRequest(BaseModel):
    """Tasks of a project, and its labelling interface."""

    model_config = ConfigDict(extra="allow")
    tasks: Annotated[list[dict[str, Any]], Field(max_length=MOST_TEXTS)]
    label_config: str
    params: dict[str, Any] | None = None


class SetupAnswer(BaseModel):
    model_version: str


class TasksAnswer(BaseModel):
    results: Annotated[list[dict[str, Any]], Field(description="Regions for each task, in order.")]


class Interface(NamedTuple):
    """What a labelling interface has for spans of text."""

    from_name: str
    to_name: str
    key: str
    """Of the text among the data of a task."""
    labels: Mapping[str, str]
    """Type of the model -> label that stands for it."""

    @classmethod
    def read(cls, config: str, types: Sequence[str]) -> Interface:
        """The first tags Labels and Text that belong together. An error if there are none, or no label is one of the types."""
        root = _parsed(config)
        texts = {each.get("name"): each.get("value", "") for each in root.iter("Text")}
        for tag in root.iter("Labels"):
            to_name = tag.get("toName", "")
            if texts.get(to_name, "").startswith("$"):
                stored = {each.get("value", ""): each.get("alias", each.get("value", "")) for each in tag.iter("Label")}
                by_name = {name.lower(): label for value, label in stored.items() for name in (value, label)}
                labels = {type_: by_name[type_.lower()] for type_ in types if type_.lower() in by_name}
                if not labels:
                    raise UsageError(f"none of its labels ({', '.join(stored)}) is a type of the model ({', '.join(types)})")
                return cls(tag.get("name") or FROM_NAME, to_name, texts[to_name][1:], labels)
        raise UsageError('the labelling interface has no <Labels toName="..."> for a <Text value="$...">')

    def text_of(self, task: Mapping[str, Any]) -> str:
        data = task.get("data")
        text = as_text(data.get(self.key)) if isinstance(data, dict) else None
        if not isinstance(text, str):
            raise UsageError(f"task {shorten(task.get('id'))} has no text called {shorten(self.key)} among its data")
        return text

    def regions(self, found: Prediction, version: str) -> dict[str, Any]:
        """A prediction as Label Studio has it: the entities that a label stands for."""
        text, offsets = found.sentence.as_text()
        entities = [entity for entity in found.entities if entity.type in self.labels]
        regions = [
            region(text, offsets[each.start][0], offsets[each.end - 1][1], self.labels[each.type], self.from_name, self.to_name)
            for each in entities
        ]
        return prediction(regions, [round(entity.confidence, 6) for entity in entities], version)


class _Plain(ElementTree.TreeBuilder):
    """Elements alone. Only a document type can declare entities, which may expand to any size."""

    def doctype(self, *_: Any) -> None:
        raise UsageError("the labelling interface declares a document type, which is not read")


def _parsed(config: str) -> ElementTree.Element:
    if len(config) > _LONGEST:
        raise UsageError(f"the labelling interface has {len(config):,} characters; at most {_LONGEST:,} are read")
    try:
        return ElementTree.fromstring(config, ElementTree.XMLParser(target=_Plain()))
    except (ElementTree.ParseError, ValueError) as error:
        raise UsageError(f"the labelling interface is no XML: {error}") from None


def interface_for(types: Sequence[str]) -> str:
    """A labelling interface with these types."""
    labels = "\n".join(
        f'    <Label value={quoteattr(type_)} background="{_COLOURS[i % len(_COLOURS)]}"/>' for i, type_ in enumerate(types)
    )
    return (
        f'<View>\n  <Labels name="{FROM_NAME}" toName="{TO_NAME}">\n{labels}\n  </Labels>\n'
        f'  <Text name="{TO_NAME}" value="$text" granularity="word"/>\n</View>\n'
    )


def add_label_studio(app: FastAPI, service: Service, collected: Collected) -> None:
    """Add its routes to those of the service."""

    def takes(model: type[BaseModel]) -> dict[str, Any]:
        return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema_of(model)}}}}

    tags: list[Any] = ["Label Studio"]
    warned: set[int] = set()
    trained: set[int] = set()
    service.at_end.append(collected.close)

    @app.get("/health", response_model=StatusAnswer, responses=errors(), tags=tags)
    async def health() -> Response:
        """Whether Label Studio may go on."""
        return as_response({"status": "UP", "model_class": "sequst"})

    @app.get("/versions", responses=errors(), tags=tags)
    async def versions() -> Response:
        """The version of the model, which is all there is."""
        return as_response({"versions": [service.model.version]})

    @app.get("/interface", response_class=Response, responses=errors(), tags=tags)
    async def interface() -> Response:
        """A labelling interface with the types of the model, to be pasted into a project."""
        return Response(interface_for(service.model.types), media_type="text/plain; charset=utf-8")

    @app.post("/setup", response_model=SetupAnswer, responses=errors(422), openapi_extra=takes(SetupRequest), tags=tags)
    async def setup(request: Request) -> Response:
        """Whether the labelling interface has types of the model."""
        asked = await _asked(request, SetupRequest)
        found = Interface.read(asked.config, service.model.types)
        missing = [type_ for type_ in service.model.types if type_ not in found.labels]
        if missing and hash(asked.config) not in warned:  # it is sent whenever somebody opens a page
            warned.add(hash(asked.config))
            log.warning("the labelling interface has no label for %s; such entities are not suggested", ", ".join(missing))
        return as_response({"model_version": service.model.version})

    @app.post(
        "/predict", response_model=TasksAnswer, responses=errors(422, 503, 504), openapi_extra=takes(TasksRequest), tags=tags
    )
    async def predict(request: Request) -> Response:
        """Suggestions for tasks. While somebody draws regions there are none."""
        asked, model = await _asked(request, TasksRequest), service.model
        found = Interface.read(asked.label_config, model.types)
        if (asked.params or {}).get("context") is not None:  # somebody drew a region; the others are there since it was opened
            return as_response({"results": [{"result": [], "model_version": model.version} for _ in asked.tasks]})
        read = await service.in_turn(lambda: [_sentence(found, task) for task in asked.tasks])
        sentences = {i: each for i, each in enumerate(read) if each is not None}
        predictions = await unless_gone(request, service.predict(list(sentences.values()), seconds=_SECONDS))
        results: list[Any] = [[] for _ in asked.tasks]  # of a task that cannot be tagged nothing is kept
        for i, predicted in zip(sentences, predictions, strict=True):
            results[i] = found.regions(predicted, model.version)
        return as_response({"results": results})

    @app.post("/webhook", response_model=StatusAnswer, responses=errors(422, 507), openapi_extra=takes(Event), tags=tags)
    async def webhook(request: Request) -> Response:
        """Something that happened in a project: labels are collected."""
        event = await _asked(request, Event)
        project = event.project.id if event.project else 0
        if event.action == "START_TRAINING" and project not in trained:  # it may come with every submission
            trained.add(project)
            path = collected.path(project)
            log.info("Label Studio asks for training: sequst train --labeled %s, then kill -HUP %d", path, os.getpid())
        try:
            await collected.take(event)
        except UsageError:
            raise
        except SequstError as error:
            raise Refused(507, f"{error}; the labels are kept in memory and tried again") from None
        return as_response({"status": "ok"})


async def _asked(request: Request, model: type[Asked]) -> Asked:
    require_json(request)
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise UsageError(first_problem(error.errors(include_url=False, include_context=False, include_input=False))) from None


def _sentence(interface: Interface, task: Mapping[str, Any]) -> Sentence | None:
    """The text of a task; None, and a line in the log, where it cannot be tagged."""
    try:
        text = interface.text_of(task)
        return checked(text)
    except (Malformed, UsageError) as error:
        why = f"found {error.found}; expected {error.expected}" if isinstance(error, Malformed) else str(error)
        log.warning("no suggestions for task %s: %s", shorten(task.get("id")), why)
        return None
