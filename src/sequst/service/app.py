"""The routes of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi_offline import FastAPIOffline
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from sequst.corpus.sentence import Sentence
from sequst.errors import Malformed, SequstError, UsageError, shorten
from sequst.files import as_json
from sequst.service.guard import Gone, Guard, Refused, error_body
from sequst.service.schemas import (
    MOST_CHARACTERS,
    MOST_UNCERTAIN,
    MOST_WORDS,
    ModelAnswer,
    PredictAnswer,
    PredictRequest,
    StatusAnswer,
    errors,
    schema_of,
)
from sequst.service.service import Hosted, Service
from sequst.service.streaming import TYPE as LINES
from sequst.service.streaming import LineStream
from sequst.service.texts import checked
from sequst.tagger.prediction import Prediction
from sequst.version import __version__

T = TypeVar("T")
_LARGE = 1 << 16
"""Bytes of a body from which on a thread reads it, so that others do not wait."""
_STREAM = "/v1/stream"


def new_app(title: str, description: str) -> FastAPI:
    """An application without routes but for its documentation. Every error is `{"error": "..."}`."""
    app = FastAPIOffline(
        title=title,
        version=__version__,
        description=f'{description} An error is `{{"error": "..."}}`.',
        docs_url="/docs",
        redoc_url=None,
        static_url="/docs/static",
    )
    handlers = {
        Refused: _refused,
        Gone: _to_nobody,
        HTTPException: _by_status,
        RequestValidationError: _invalid,
        SequstError: _by_kind,
        Exception: _bug,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    return app


def build_app(service: Service) -> FastAPI:
    app = new_app("sequst", "Predictions of a sequence tagger.")

    async def own() -> Service:
        return service

    add_predicting(app, own)
    _add_model(app, service)
    _add_operation(app, service)
    return app


def guarded(
    app: FastAPI, hosted: Hosted, hosts: Collection[str] | None, large: Collection[str] = (), is_page: bool = False
) -> Guard:
    """`hosts`, `large`, `is_page`: see `Guard`."""
    paths = {route.path for route in app.routes if hasattr(route, "path")}
    limits = hosted.limits
    return Guard(app, hosted.metrics, hosted.tokens, hosts, limits.body_bytes, limits.seconds, paths, {_STREAM}, large, is_page)


def add_predicting(app: FastAPI, serving: Callable[[], Awaitable[Service]]) -> None:
    """Routes that tag texts by whatever `serving` gives."""
    _add_schema(app)
    body = {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/PredictRequest"}}}}

    @app.post(
        "/v1/predict",
        response_model=PredictAnswer,
        responses=errors(422, 503, 504),
        openapi_extra={"requestBody": body},
        tags=["predict"],
    )
    async def predict(request: Request) -> Response:
        """Tag texts, or sentences of words. The records are those of `sequst predict`."""
        require_json(request)
        body = await request.body()
        service = await serving()
        run = service.in_turn if len(body) > _LARGE else _at_once
        asked, sentences = await run(_parsed, body)
        found = await unless_gone(request, service.predict(sentences, asked.uncertainty, asked.min_confidence))
        return Response(await run(_answer_of, asked, found), media_type="application/json")

    lines = {LINES: {"schema": {"type": "string"}, "example": '{"text": "Can Sydney conduct in Verona?"}\n'}}

    @app.post(
        _STREAM,
        response_class=Response,
        responses={**errors(422), 200: {"content": lines, "description": "A line for each line."}},
        openapi_extra={"requestBody": {"required": True, "content": lines}},
        tags=["predict"],
    )
    async def stream(uncertainty: bool = False, min_confidence: Annotated[float | None, Query(ge=0, le=1)] = None) -> Response:
        """Tag JSON lines, `{"text": "..."}` or `{"words": [...]}`, as many as you have. Each is answered by a line: a record
        or `{"line": 3, "error": "..."}`. Read the answer while you send."""
        service = await serving()
        if uncertainty:
            service.model.require_uncertainty()
        return LineStream(service, uncertainty, min_confidence)


def _add_model(app: FastAPI, service: Service) -> None:
    @app.get("/v1/model", response_model=ModelAnswer, responses=errors(), tags=["model"])
    async def model() -> Response:
        """Types, encoder, scores and calibration of the model."""
        return as_response(service.model.described())

    @app.post("/v1/reload", response_model=ModelAnswer, responses=errors(403, 409), tags=["model"])
    async def reload() -> Response:
        """Load the model folder again, beside the old model, and switch when it is ready. Needs a token."""
        if not service.tokens:
            raise Refused(403, "reloading over HTTP needs a server with --token-file; SIGHUP does without")
        try:
            await service.reload()
        except SequstError as error:
            raise Refused(409, f"the old model stays: {error}") from None
        return as_response(service.model.described())


def _add_operation(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", response_model=StatusAnswer, tags=["operation"])
    async def healthz() -> Response:
        """Whether the process answers."""
        return as_response({"status": "ok"})

    @app.get("/readyz", response_model=StatusAnswer, responses=errors(503), tags=["operation"])
    async def readyz() -> Response:
        """Whether requests are taken."""
        if service.stopping.is_set():
            raise Refused(503, "the server stops", {"retry-after": "5"})
        return as_response({"status": "ready"})

    page = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Counters."}

    @app.get("/metrics", response_class=Response, responses={**errors(), 200: page}, tags=["operation"])
    async def metrics() -> Response:
        """Counters, as Prometheus reads them."""
        text, kind = service.metrics.text()
        return Response(text, headers={"content-type": kind})


def _add_schema(app: FastAPI) -> None:
    """Add what FastAPI cannot know: the token, and the body of a route that reads it itself."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        found = plain()
        for operations in found["paths"].values():
            for operation in operations.values():
                operation["summary"] = operation["description"].partition(".")[0].partition(",")[0]
        found["components"]["schemas"]["PredictRequest"] = schema_of(PredictRequest)
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}, {}]
        return found

    app.openapi = openapi  # type: ignore[method-assign]


def as_response(value: object) -> Response:
    return Response(as_json(value), media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return Response(error_body(str(error)), error.status, error.headers, "application/json")


async def _to_nobody(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nginx's number for it; the metrics show it


async def _by_status(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Response(error_body(str(error.detail)), error.status_code, error.headers, "application/json")


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return Response(error_body(first_problem(error.errors())), 422, media_type="application/json")


async def _by_kind(request: Request, error: Exception) -> Response:
    return Response(error_body(str(error)), 422 if isinstance(error, UsageError) else 500, media_type="application/json")


async def _bug(request: Request, error: Exception) -> Response:
    return Response(error_body("this is a bug in sequst; the server's log shows where"), 500, media_type="application/json")


def require_json(request: Request) -> None:
    """Raise an error for other types: a web page cannot send JSON to another server than its own without asking that first."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, f"Content-Type {shorten(kind or 'none')}; send application/json")


async def _at_once(work: Callable[..., T], *arguments: Any) -> T:
    return work(*arguments)


def _parsed(body: bytes) -> tuple[PredictRequest, list[Sentence]]:
    try:
        asked = PredictRequest.model_validate_json(body)
    except ValidationError as error:
        raise UsageError(first_problem(error.errors(include_url=False, include_context=False, include_input=False))) from None
    what = "texts" if asked.sentences is None else "sentences"
    inputs: Sequence[str | list[str]] = asked.texts or asked.sentences or ()
    characters = sum(len(each) if isinstance(each, str) else sum(map(len, each)) for each in inputs)
    if characters > MOST_CHARACTERS:
        raise UsageError(f"{characters:,} characters; at most {MOST_CHARACTERS:,} in a request; make several, or use {_STREAM}")
    sentences: list[Sentence] = []
    for number, each in enumerate(inputs, 1):
        try:
            sentences.append(checked(each, number))
        except Malformed as bad:
            raise UsageError(f"{what}[{number - 1}]: found {bad.found}; expected {bad.expected}") from None
    words, most = sum(map(len, sentences)), MOST_UNCERTAIN if asked.uncertainty else MOST_WORDS
    if words > most:
        raise UsageError(f"{words:,} words; at most {most:,} in a request; make several, or use {_STREAM}")
    return asked, sentences


def first_problem(problems: Sequence[Any]) -> str:
    """The place and the message of the first problem that pydantic found."""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problems[0]["loc"]).lstrip(".")
    return f"{place[:100]}: {problems[0]['msg']}" if place else problems[0]["msg"]


def _answer_of(asked: PredictRequest, predictions: Sequence[Prediction]) -> str:
    records = [prediction.to_dict() for prediction in predictions]
    answer: dict[str, Any] = {"predictions": records}
    if asked.probabilities:
        for record, prediction in zip(records, predictions, strict=True):
            record["probabilities"] = prediction.confidences
        answer["entity_calibration"] = predictions[0].entity_calibration.to_dict() if predictions else {}
    return as_json(answer)


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which is cancelled when the client hangs up."""
    working = asyncio.current_task()
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone = True
        if working is not None:
            working.cancel()

    watching = asyncio.get_running_loop().create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if gone:
            raise Gone from None
        raise
    finally:
        watching.cancel()
