"""The studio's server: the page and the API that it uses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from fastapi import FastAPI, Header, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse, RedirectResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles

from sequst.errors import UsageError, shorten
from sequst.files import as_json
from sequst.service.app import add_predicting, as_response, new_app, require_json
from sequst.service.guard import COOKIE, LOGIN, Refused, Tokens
from sequst.service.model import ServedModel
from sequst.service.schemas import errors
from sequst.service.server import Site
from sequst.service.service import Hosted, Limits, Service
from sequst.studio import exports, jobs, review
from sequst.studio.desk import ANYBODY, NOTHING, Desk, Given
from sequst.studio.project import Missing, Project
from sequst.studio.schemas import (
    AddedAnswer,
    ExportRequest,
    FineRequest,
    JobAnswer,
    LabelsRequest,
    SavedAnswer,
    SentenceAnswer,
    SentencesAnswer,
    StateAnswer,
    TypesAnswer,
    TypesRequest,
    UndoneAnswer,
)
from sequst.studio.state import state_of, told_sentence, told_types
from sequst.studio.supervisor import Supervisor

_EVERY = 0.2
"""Seconds between two states that are sent to a page."""
_PAGE = Path(str(resources.files("sequst.studio"))) / "page"
_HEADERS = {
    "content-security-policy": "default-src 'self'; style-src 'self'; img-src 'self' data:; frame-ancestors 'none';"
    " base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_REPORT_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"}
_LARGE = ("/api/text", "/api/labeled")
"""Routes that take files."""


class Studio(Hosted):
    """A project that people label, and the worker that learns from it."""

    def __init__(self, project: Project, tokens: Tokens) -> None:
        super().__init__(tokens, Limits(body_mb=2.5))
        self.project, self.desk = project, Desk(project)
        self.supervisor = Supervisor(project.folder, self.changed, lambda: jobs.died(project))
        self._version, self._waiting = 0, asyncio.Event()
        self._told, self._telling = (-1, ""), asyncio.Lock()
        self.taking = asyncio.Lock()
        """Held while a file is read: it takes many times its size in memory."""
        self._serving: Service | None = None
        self._served, self._loading = 0, asyncio.Lock()
        self.at_end.append(self.supervisor.stop)

    async def start(self) -> None:
        self.supervisor.start()

    def changed(self) -> None:
        """Tell the pages."""
        self._version += 1
        self._waiting.set()
        self._waiting = asyncio.Event()

    def changed_silently(self) -> None:
        """Time has passed, which the state tells too."""
        self._told = (-1, "")

    def done(self) -> None:
        """Somebody has changed something: tell the pages and the worker."""
        self.changed()
        self.supervisor.wake()

    async def serving(self) -> Service:
        """Predictions of the newest model. It is loaded when somebody asks for the first time, for it takes memory."""
        newest = exports.newest(self.project)
        if newest is None:
            raise Refused(409, "there is no model yet; label some sentences first")
        async with self._loading:
            if self._serving is None:
                self._serving = await asyncio.to_thread(Service, self._load, self.tokens, self.limits)
                self.at_end.append(self._end_serving)
            elif self._served != newest:
                await self._serving.batcher.reload()
            self._served = newest
        return self._serving

    def _load(self) -> ServedModel:
        return ServedModel.load(exports.model_folder(self.project, exports.newest(self.project) or 0))

    async def _end_serving(self) -> None:
        if self._serving is not None:
            self._serving.close()

    async def state(self) -> str:
        """As JSON. It is made once after every change, however many pages ask."""
        async with self._telling:
            if self._told[0] != self._version:
                version = self._version
                found = await asyncio.to_thread(state_of, self.project, dict(self.supervisor.told), self.desk.people)
                self._told = (version, as_json(found))
            return self._told[1]

    async def states(self) -> AsyncIterator[str]:
        """The state now and after every change, as server-sent events."""
        while not self.stopping.is_set():
            version, waiting = self._version, self._waiting
            yield f"event: state\ndata: {await self.state()}\n\n"
            await asyncio.sleep(_EVERY)
            if version == self._version:
                stopping = asyncio.ensure_future(self.stopping.wait())
                changing = asyncio.ensure_future(waiting.wait())
                try:
                    done, _ = await asyncio.wait({stopping, changing}, timeout=15, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    stopping.cancel()
                    changing.cancel()
                if not done:
                    yield ": still here\n\n"


Id = Annotated[int, PathParameter(ge=0, lt=2**63)]
Who = Annotated[str, Header(alias="X-Annotator", description="Your name, percent-encoded.")]
Tab = Annotated[str, Header(alias="X-Tab", description="Of the window that asks: each holds one sentence.")]


def build_studio(project: Project, tokens: Tokens) -> Site:
    studio = Studio(project, tokens)
    app = new_app("sequst studio", "Label sentences while a tagger learns from them.")
    app.add_exception_handler(Missing, _missing)
    app.add_exception_handler(jobs.AlreadyAsked, _already)
    _add_labelling(app, studio)
    _add_state(app, studio)
    _add_models(app, studio)
    _add_review(app, studio)
    _add_types(app, studio)
    _add_files(app, studio)
    add_predicting(app, studio.serving)
    _add_page(app, studio)
    return Site(app, studio, _LARGE, is_page=True)


def _add_labelling(app: FastAPI, studio: Studio) -> None:
    project, desk = studio.project, studio.desk

    @app.get("/api/next", response_model=SentenceAnswer, tags=["label"], responses=errors())
    async def next_(x_annotator: Who = ANYBODY, x_tab: Tab = "") -> Response:
        """The sentence to label next: `{"id", "text", "words", "suggestions", "why", "judging"}` and more. Asked again before
        it is labelled or skipped, it is the same. `id` is null when nothing is left."""

        def work() -> dict[str, Any]:
            given = desk.next(_name(x_annotator), x_tab)
            return {"id": None, "why": NOTHING} if given is None else told_sentence(project, project.row(given.sentence), given)

        return as_response(await asyncio.to_thread(work))

    @app.post("/api/sentences/{id}/labels", response_model=SavedAnswer, tags=["label"], responses=errors(404, 422))
    async def label(id: Id, asked: LabelsRequest, request: Request, x_annotator: Who = ANYBODY) -> Response:
        """Accept `{"entities": [{"type", "start", "end"}]}` as the labels of a sentence; the end of words is exclusive."""
        require_json(request)
        entities = [(each.type, each.start, each.end) for each in asked.entities]
        await asyncio.to_thread(project.label, id, _name(x_annotator), entities, asked.decides)
        desk.done(id)
        studio.done()
        return as_response({"saved": True, "labeled": (await asyncio.to_thread(project.counts))["labeled"]})

    @app.post("/api/sentences/{id}/skip", response_model=SavedAnswer, tags=["label"], responses=errors(404))
    async def skip(id: Id, request: Request, x_annotator: Who = ANYBODY) -> Response:
        """Skip the sentence: it is not given again."""
        require_json(request)
        await asyncio.to_thread(project.skip, id, _name(x_annotator))
        desk.done(id)
        studio.done()
        return as_response({"saved": True})

    @app.post("/api/sentences/{id}/fine", response_model=SavedAnswer, tags=["review"], responses=errors(404))
    async def fine(id: Id, asked: FineRequest, request: Request, x_annotator: Who = ANYBODY) -> Response:
        """The label that looks wrong is right."""
        require_json(request)
        await asyncio.to_thread(project.fine, id, _name(x_annotator), asked.start, asked.end)
        studio.changed()
        return as_response({"saved": True})

    @app.post("/api/undo", response_model=UndoneAnswer, tags=["label"], responses=errors())
    async def undo(request: Request, x_annotator: Who = ANYBODY, x_tab: Tab = "") -> Response:
        """Take back your last labels or skip; the sentence is yours again."""
        require_json(request)
        who = _name(x_annotator)

        def work() -> dict[str, Any]:
            undone = project.undo(who)
            if undone is None:
                return {"undone": None, "sentence": None}
            kind, sentence, entities = undone
            desk.take(who, x_tab, sentence)
            given = desk.next(who, x_tab) or Given(sentence, "", [])
            told = told_sentence(project, project.row(sentence), given)
            return {"undone": kind, "sentence": {**told, "labels": [each._asdict() for each in entities]}}

        told = await asyncio.to_thread(work)
        studio.done()
        return as_response(told)


def _add_state(app: FastAPI, studio: Studio) -> None:
    @app.get("/api/state", response_model=StateAnswer, tags=["state"], responses=errors())
    async def state() -> Response:
        """Counts, types, the model, what is being trained, the F1 to expect with its interval, the curve."""
        studio.changed_silently()
        return Response(await studio.state(), media_type="application/json")

    stream = {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "`event: state` with the state."}

    @app.get("/api/events", tags=["state"], response_class=Response, responses={**errors(), 200: stream})
    async def events() -> Response:
        """The state, now and after every change, as server-sent events."""
        return StreamingResponse(studio.states(), headers={"cache-control": "no-cache"}, media_type="text/event-stream")

    @app.post("/api/settings", response_model=StateAnswer, tags=["state"], responses=errors(422))
    async def settings(request: Request, x_annotator: Who = ANYBODY) -> Response:
        """Change settings: `{"judging_share": 0.2}`."""
        given = await _object(request)
        await asyncio.to_thread(studio.project.change_settings, given, _name(x_annotator))
        studio.done()
        return Response(await studio.state(), media_type="application/json")


def _add_models(app: FastAPI, studio: Studio) -> None:
    project = studio.project

    async def asked(kind: str, data: dict[str, Any] | None = None) -> Response:
        job = await asyncio.to_thread(jobs.ask, project, kind, data)
        studio.done()
        return Response(as_json({"job": job}), 202, media_type="application/json")

    @app.post("/api/train", status_code=202, response_model=JobAnswer, tags=["models"], responses=errors(409))
    async def train(request: Request) -> Response:
        """Train a model: `{"effort": "quick"}`, `default` or `thorough`."""
        given = await _object(request)
        effort = given.get("effort", "quick")
        if effort not in jobs.TRAINING:
            raise UsageError(f"effort {shorten(effort)}: one of {', '.join(jobs.TRAINING)}")
        return await asked(effort)

    @app.post("/api/train/stop", tags=["models"], responses=errors())
    async def stop(request: Request) -> Response:
        """Stop what runs and waits. All labels stay."""
        require_json(request)
        await asyncio.to_thread(jobs.stop_all, project)
        studio.supervisor.kill()
        studio.changed()
        return as_response({"stopped": True})

    @app.get("/api/models", tags=["models"], responses=errors())
    async def models() -> Response:
        """All trainings, the newest first."""
        return as_response({"models": await asyncio.to_thread(exports.models, project)})

    @app.get("/api/models/compare", tags=["models"], responses=errors(404, 422))
    async def compare(a: Annotated[int, Query(ge=0, lt=2**63)], b: Annotated[int, Query(ge=0, lt=2**63)]) -> Response:
        """Two models on the sentences that both were judged on."""
        return as_response(await asyncio.to_thread(review.compared, project, a, b))

    @app.get("/api/models/{id}/report", tags=["models"], response_class=Response, responses=errors(404))
    async def report(id: Id) -> Response:
        """The report of a training, a page."""
        return FileResponse(exports.report(project, id), media_type="text/html", headers=_REPORT_HEADERS)

    @app.post("/api/models/{id}/export", status_code=202, response_model=JobAnswer, tags=["models"], responses=errors(404, 422))
    async def export(id: Id, given: ExportRequest, request: Request) -> Response:
        """Write the model to the folder `exports` of the project, as `folder`, `onnx` or `spacy`."""
        require_json(request)
        await asyncio.to_thread(exports.require_model, project, id)
        return await asked(jobs.EXPORT, {"model": id, "as": given.as_})

    @app.get("/api/exports/{name}", tags=["models"], response_class=Response, responses=errors(404))
    async def exported(name: str) -> Response:
        """An exported model, as a .zip."""
        file = await asyncio.to_thread(exports.zipped, project, name)
        return FileResponse(file, filename=f"{name}.zip", media_type="application/zip")

    @app.get("/api/export", tags=["files"], response_class=Response, responses=errors(422))
    async def labels(format: str = "jsonl", only: Literal["labeled", "learning", "judging"] = "labeled") -> Response:
        """The labelled sentences as a file, in any format that `sequst convert` writes."""
        file = await asyncio.to_thread(exports.labels, project, format, only)
        return FileResponse(file, filename=file.name)

    @app.post("/api/suspects", status_code=202, response_model=JobAnswer, tags=["review"], responses=errors(409))
    async def look(request: Request) -> Response:
        """Look for labels that look wrong. Takes minutes: five models are trained."""
        require_json(request)
        return await asked(jobs.SUSPECTS)


def _add_review(app: FastAPI, studio: Studio) -> None:
    project = studio.project

    @app.get("/api/sentences", response_model=SentencesAnswer, tags=["review"], responses=errors(422))
    async def sentences(
        status: str = "labeled", type: str = "", q: str = "", before_type: str = "",
        offset: Annotated[int, Query(ge=0, lt=2**31)] = 0, limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> Response:  # fmt: skip
        """Sentences by status (labeled, learning, judging, skipped, raw, differ, all), type and text."""
        return as_response(await asyncio.to_thread(review.listed, project, status, type, q, before_type, offset, limit))

    @app.get("/api/sentences/{id}", tags=["review"], responses=errors(404))
    async def sentence(id: Id) -> Response:
        """A sentence with its history."""
        return as_response(await asyncio.to_thread(review.whole, project, id))

    @app.get("/api/suspects", tags=["review"], responses=errors())
    async def suspects() -> Response:
        """Labels that look wrong: models that have not learnt them disagree."""
        return as_response(await asyncio.to_thread(review.suspects, project))

    @app.get("/api/uncertain", tags=["review"], responses=errors())
    async def uncertain() -> Response:
        """Entities of sentences without labels of which the model is least sure."""
        return as_response(await asyncio.to_thread(review.uncertain, project))


def _add_types(app: FastAPI, studio: Studio) -> None:
    project = studio.project

    @app.get("/api/types", response_model=TypesAnswer, tags=["types"], responses=errors())
    async def types() -> Response:
        """The entity types with their keys."""
        return as_response({"types": await asyncio.to_thread(told_types, project)})

    @app.post("/api/types", response_model=TypesAnswer, tags=["types"], responses=errors(422))
    async def change(asked: TypesRequest, request: Request, x_annotator: Who = ANYBODY) -> Response:
        """Add, rename, merge or delete a type, or change its key; with `dry_run` only tell what that changes."""
        require_json(request)
        op = asked.model_dump(exclude_none=True)
        dry_run = op.pop("dry_run")

        def work() -> dict[str, Any]:
            entities, count = project.change_types(op, _name(x_annotator), dry_run)
            told = review.told_op(project, op, entities, count)
            return {"types": told_types(project), "entities": entities, "sentences": count, "told": told}

        told = await asyncio.to_thread(work)
        if not dry_run:
            studio.done()
        return as_response(told)


def _add_files(app: FastAPI, studio: Studio) -> None:
    bytes_ = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string"}}}}}

    @app.put("/api/text", response_model=AddedAnswer, tags=["files"], responses=errors(422), openapi_extra=bytes_)
    async def text(request: Request, name: str = "text.txt") -> Response:
        """Add sentences from a file in any format that sequst reads."""
        return await taken(request, name, False)

    @app.put("/api/labeled", response_model=AddedAnswer, tags=["files"], responses=errors(422), openapi_extra=bytes_)
    async def labeled(request: Request, name: str = "labeled.jsonl") -> Response:
        """Add labelled sentences from a file in any format that sequst reads."""
        return await taken(request, name, True)

    async def taken(request: Request, name: str, with_labels: bool) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/octet-stream":
            raise Refused(415, "send the bytes of the file, with Content-Type application/octet-stream")
        body = await request.body()
        async with studio.taking:
            told = await asyncio.to_thread(exports.take_file, studio.project, body, name, with_labels)
        studio.done()
        return as_response(told)


def _add_page(app: FastAPI, studio: Studio) -> None:
    @app.post(LOGIN, include_in_schema=False)
    async def login(request: Request) -> Response:
        token = (await _object(request)).get("token")
        if not studio.tokens or not isinstance(token, str) or not studio.tokens.accept(f"Bearer {token}"):
            raise Refused(401, "this token is not known; the file that was given with --token-file has it")
        return _with_cookie(as_response({"known": True}), token)

    @app.get("/", include_in_schema=False)
    async def page(token: str | None = None) -> Response:
        if token is not None:
            away = RedirectResponse("/", 303)
            return _with_cookie(away, token) if studio.tokens.accept(f"Bearer {token}") else away
        return FileResponse(_PAGE / "index.html", headers=_HEADERS)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return as_response({"status": "ok"})

    app.mount("/", _Files(directory=_PAGE))  # the last: it takes whatever is left


class _Files(StaticFiles):
    """With headers that let a page load nothing from elsewhere."""

    async def get_response(self, path: str, scope: Any) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


def _with_cookie(response: Response, token: str) -> Response:
    response.set_cookie(COOKIE, token, max_age=30 * 24 * 3600, httponly=True, samesite="strict")
    return response


def _name(header: str) -> str:
    """The name of a person, which is percent-encoded in a header."""
    name = " ".join(unquote(header).split())[:100]
    return name if name and name.isprintable() and not name.startswith("file ") else ANYBODY


async def _object(request: Request) -> dict[str, Any]:
    require_json(request)
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError("the body is no JSON object")
    return found


async def _missing(request: Request, error: Exception) -> Response:
    return Response(as_json({"error": str(error)}), 404, media_type="application/json")


async def _already(request: Request, error: Exception) -> Response:
    return Response(as_json({"error": str(error)}), 409, media_type="application/json")
