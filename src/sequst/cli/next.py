from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from sequst.cli.console import note, show
from sequst.cli.options import FORMAT_HELP, Device, InputFormat, LastLayers, Precision, WordColumn
from sequst.errors import SequstError, UsageError
from sequst.files import atomic_text, require_writable


def next(
    model: Annotated[
        str,
        typer.Argument(
            help="Folder of a model, e.g. RUN/model. Before there is one, a pretrained encoder: minilm, a folder or OWNER/NAME."
        ),
    ],
    unlabeled: Annotated[str, typer.Argument(help="Sentences to choose from; - is standard input.")],
    output: Annotated[str, typer.Option(help="File to write.", metavar="FILE")],
    labeled: Annotated[
        list[str] | None,
        typer.Option(
            help="Sentences that are labelled already. They are not chosen. May be given several times.", metavar="FILE"
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="Sentences to choose.")] = 50,
    strategy: Annotated[str, typer.Option(help="information-gain, confidence or random.")] = "information-gain",
    diverse: Annotated[
        bool | None, typer.Option("--diverse/--no-diverse", help="Avoid near-copies. [default: diverse, unless random]")
    ] = None,
    judging: Annotated[
        float | None,
        typer.Option(
            help="Share of the sentences that is drawn at random, without tags, to judge models by. 0 = none. "
            "[default: 0.2; 0 with --format conll]",
            metavar="SHARE",
        ),
    ] = None,
    format: Annotated[
        str, typer.Option(help="Format of the output: jsonl, conll, labelstudio, doccano, prodigy or argilla.")
    ] = "jsonl",
    passes: Annotated[int, typer.Option(help="Passes of MC dropout for the information gain.")] = 20,
    last_layers: LastLayers = 0,
    seed: Annotated[int, typer.Option(help="Decides the passes and the draw.")] = 12,
    labeled_format: Annotated[str, typer.Option(help=f"Format of --labeled: {FORMAT_HELP}")] = "auto",
    input_format: InputFormat = "auto",
    word_column: WordColumn = None,
    device: Device = "auto",
    precision: Precision = "fp32",
) -> None:
    """Choose the sentences to label next. Those whose labels would teach the model most, tagged so that you only correct them.

    \b
    Example:
      sequst next minilm raw.txt --count 50 --output first.jsonl
      sequst next run/model raw.txt --labeled labeled.conll --count 50 --output next.jsonl
    """
    from sequst.annotation.export import find_writer, share_for
    from sequst.annotation.first import choose_first, is_encoder
    from sequst.annotation.judging import require_share
    from sequst.annotation.next import STRATEGIES, Chosen, choose_next, require_choice
    from sequst.cli.progress import make_progress
    from sequst.cli.reading import open_stream
    from sequst.corpus.formats.read import read_file, stream
    from sequst.inputs import require_one_stdin
    from sequst.tagger.precision import in_precision
    from sequst.tagger.tagger import Tagger

    writer = find_writer(format)
    require_choice(count, strategy, passes)
    share = share_for(format, judging)
    require_share(share)
    first = is_encoder(model)
    if first and (strategy != STRATEGIES[0] or diverse is not None):
        raise UsageError(f"{model} is an encoder that has learnt no labels; --strategy and --diverse need a trained model")
    files = labeled or []
    require_one_stdin([unlabeled, *files])
    readings = [read_file(each, format=labeled_format, word_column=word_column) for each in files]
    done = [sentence for reading in readings for sentence in reading.require()]
    require_writable(output, "--output", read=[unlabeled, *files, model])
    source, how = open_stream(unlabeled, input_format, word_column)
    tagger, progress = None if first else Tagger.load(model, device), make_progress()
    within = contextlib.nullcontext() if tagger is None else in_precision(tagger.device, precision)
    progress.begin("choose", 0, unit="sentences")
    try:
        with within:
            if tagger is None:
                some = choose_first(
                    model, stream(source, how), count, seed=seed, judging=share, labeled=done, device=device,
                    advance=progress.advance,
                )  # fmt: skip
                chosen = list(map(Chosen.unpredicted, some))
            else:
                chosen = choose_next(
                    tagger, stream(source, how), count, strategy=strategy, diverse=diverse, passes=passes,
                    last_layers=last_layers, seed=seed, judging=share, labeled=done, advance=progress.advance,
                )  # fmt: skip
    finally:
        progress.end()
    if not chosen:
        what = "has no sentence to choose from that is not labelled" if done else "is empty: no sentence in it to choose from"
        raise SequstError(f"{source.name} {what} (read as {how})")
    if len(chosen) < count:
        others = " that are not labelled" if done else ""
        note(f"{source.name} has only {len(chosen)} different sentences{others}: all are chosen")
    with atomic_text(output) as file:
        file.writelines(writer(chosen))
    marked = sum(each.judging for each in chosen)
    order = "typical ones first, without tags" if first else "best first"
    told = f"; {marked} of them {'are' if marked > 1 else 'is'} random, for judging" if marked else ""
    bare = ", and without tags" if marked and not first else ""
    show(f"{len(chosen)} sentences to label are in {output}, {order}{told}{bare}")
    if format == "conll" and judging is None:
        note("conll has no place for marks for judging, so none is random; --format jsonl has")
