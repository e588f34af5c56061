from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from sequst.cli.console import note
from sequst.cli.options import Device, MinConfidence, Model, Precision
from sequst.extras import needed

if TYPE_CHECKING:
    from sequst.service.guard import Tokens


def serve(
    model: Model,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any but this machine's own needs --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 = any that is free.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        str | None, typer.Option(help="File with a token on each line; requests need one of them.", metavar="FILE")
    ] = None,
    max_batch_words: Annotated[int, typer.Option(help="Words that are computed at once.", min=1)] = 256,
    max_wait_ms: Annotated[float, typer.Option(help="Longest time to wait for requests that share a batch.", min=0)] = 5.0,
    queue: Annotated[int, typer.Option(help="Requests that may wait; more are answered with 503.", min=1)] = 256,
    max_body_mb: Annotated[float, typer.Option(help="Size of a request; a larger one is answered with 413.", min=0.001)] = 10.0,
    timeout: Annotated[float, typer.Option(help="Seconds for a request to arrive, and to be answered.", min=0.1)] = 30.0,
    label_studio: Annotated[bool, typer.Option("--label-studio", help="Also be an ML backend of Label Studio.")] = False,
    labels: Annotated[
        str, typer.Option(help="Folder for the labels that people submit in Label Studio.", metavar="DIR")
    ] = "labels",
    device: Device = "auto",
    precision: Precision = "fp32",
    min_confidence: MinConfidence = None,
) -> None:
    """Answer requests over HTTP: POST /v1/predict, POST /v1/stream; /docs describes all.

    \b
    Example:
      sequst serve run/model
      curl -s localhost:8000/v1/predict --json '{"texts": ["Can Sydney conduct in Verona?"]}'
    """
    if hasattr(signal, "SIGHUP"):  # not on Windows; until the server takes it, it would end the process
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for module in ("fastapi", "fastapi_offline", "uvicorn", "httptools", "prometheus_client"):
        needed(module, "serve")

    from sequst.integrations.annotator import require_annotator

    require_annotator(model, device, precision)

    from sequst.service.app import build_app
    from sequst.service.model import ServedModel
    from sequst.service.server import Site
    from sequst.service.server import serve as run
    from sequst.service.service import Limits, Service

    def make(tokens: Tokens) -> Site:
        limits = Limits(max_batch_words, max_wait_ms, queue, max_body_mb, timeout)
        service = Service(lambda: ServedModel.load(model, device, precision, min_confidence), tokens, limits)
        app = build_app(service)
        large: tuple[str, ...] = ()
        if label_studio:
            from sequst.service.collected import Collected
            from sequst.service.labelstudio import PATHS, add_label_studio

            add_label_studio(app, service, Collected(labels))
            large = PATHS
        served.append(service)
        return Site(app, service, large)

    served: list[Service] = []

    def ready(address: str) -> None:
        note(f"serving {model} at {address}; try it at {address}/docs; Ctrl-C stops it")
        if label_studio:
            [service] = served
            note(f"in Label Studio: Settings > Model > Connect Model: Name {service.model.version}, Backend URL {address}")
            note(f"{address}/interface is a labelling interface; what people submit goes to {labels}")
            if token_file:
                note("its webhook needs the token too: Settings > Webhooks, header Authorization, Bearer TOKEN")

    run(make, host, port, token_file, ready)
