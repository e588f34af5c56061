"""Tables of what the benchmarks measured, made from benchmarks/results/: a function for every block of the pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from statistics import fmean, stdev
from typing import Any

from run_tables import ROOT, table

Rate = Mapping[str, float]


def measured(name: str) -> Any:
    return json.loads((ROOT / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))


def rate(found: Rate) -> str:
    return f"{found['median']:,.0f} ({found['least']:,.0f} to {found['most']:,.0f})"


def times(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.1f}x"


def spread(found: Mapping[str, float], digits: int) -> str:
    return f"{found['mean']:,.{digits}f} ± {found['deviation']:,.{digits}f}"


def against(found: Any, names: Mapping[str, tuple[str, str | None]]) -> list[list[str]]:
    """A row for each contender: its speed, how many times as fast the one of ours beside it is, its share of the limit."""
    speed, share = found["words_a_second"], found.get("shares_of_limit", {})
    return [
        [
            title, rate(speed[name]), times(speed[ours]["median"], speed[name]["median"]) if ours else "",
            f"{100 * share[name]:.0f} %" if name in share else "",
        ]
        for name, (title, ours) in names.items()
    ]  # fmt: skip


def cpu() -> str:
    passes, tagging, step = measured("mc_dropout"), measured("tagging"), measured("training_step")
    rows = [["**MC dropout, T = 20, words a second**"]]
    rows += against(
        passes,
        {
            "usual loop": ("the usual loop: batches of 32 as they come, every pass kept", "ours"),
            "sorted and streamed": ("batches of like length, sums in place of passes", "ours"),
            "baal": ("baal, its faster mode, without the dropout of attention", "ours"),
            "ours": ("sequst", None),
            "sorted and streamed, bf16": ("batches of like length, sums, bf16", "ours, bf16"),
            "ours, bf16": ("sequst, bf16", None),
        },
    )
    rows.append(["**plain tagging, words a second**"])
    rows += against(
        tagging,
        {
            "pipeline": ("transformers' `pipeline`, one sentence at a time", "ours"),
            "pipeline at 32": ("the same, 32 at a time", "ours"),
            "onnxruntime": ("onnxruntime, batches of 32 as they come", "ours"),
            "ours": ("sequst", None),
            "pipeline at 32, bf16": ("the pipeline at 32 in bf16", "ours, bf16"),
            "onnxruntime, int8": ("onnxruntime in int8", "ours, bf16"),
            "ours, bf16": ("sequst, bf16", None),
        },
    )
    rows.append(["**a student's step of 32 sentences, milliseconds**"])
    rows += steps(step, {"ours": "sequst", "ours, fp32": "sequst in fp32"})
    seconds = measured("start_up")["seconds"]
    rows.append(["**to begin, seconds**"])
    for name, title in (
        ("help", "`sequst --help`"),
        ("classes", "importing torch, transformers and the classes that load a model"),
        ("predict", "`sequst predict` of one sentence"),
    ):
        found = seconds[name]
        rows.append([title, f"{found['median']:.2f} ({found['least']:.2f} to {found['most']:.2f})"])
    return speeds(rows)


def speeds(rows: list[list[str]]) -> str:
    heading = ["", "measured", "sequst beside it", "of a plain product"]
    return table(heading, [row + [""] * (len(heading) - len(row)) for row in rows])


def steps(found: Any, ours: Mapping[str, str]) -> list[list[str]]:
    milliseconds = found["milliseconds_a_step"]
    names = {
        "Trainer": "transformers' Trainer",
        "Trainer, bf16 and like lengths": "the same, bf16 and batches of like length",
        **ours,
    }
    return [
        [title, f"{milliseconds[name]:,.{0 if milliseconds['ours'] > 100 else 1}f}",
         "" if name.startswith("ours") else times(milliseconds[name], milliseconds["ours"])]
        for name, title in names.items()
    ]  # fmt: skip


def gpu() -> str:
    rows: list[list[str]] = []
    names = {
        "usual loop": "the usual loop, fp32",
        "usual loop, bf16": "the usual loop, bf16",
        "sorted and streamed": "batches of like length, sums, bf16",
        "ours": "sequst",
    }
    for shape, file in (("BERT-base", "mc_dropout-h200-bert"), ("MPNet-base", "mc_dropout-h200-mpnet")):
        found = measured(file)
        pace, share = found["token_passes_a_second"], found["shares_of_limit"]
        rows.append([f"**MC dropout, T = 20, shape of {shape}, thousand token-passes a second**"])
        for name, title in names.items():
            beside = "" if name == "ours" else times(pace["ours"], pace[name])
            rows.append([title, f"{pace[name] / 1000:,.0f}", beside, f"{100 * share[name]:.1f} %"])
    rows.append(["**a student's step of 32 sentences, shape of BERT-base, milliseconds**"])
    rows += steps(measured("training_step-h200"), {"ours": "sequst"})
    rows.append(["**a whole run of SeqUST, seconds**"])
    whole = [f"{run['seconds']:.0f}" for run in measured("whole_run-h200")["ours"]["runs"]]
    rows.append(["sequst, the first run on a machine and the next", " and ".join(whole)])
    return speeds(rows)


def last_layers() -> str:
    rows = []
    for name, found in measured("last_layers")["last_layers"].items():
        related = f"{found['rank_correlation']:.3f}" if "rank_correlation" in found else ""
        label = name if name.startswith("all") else f"the last {name}"
        rows.append([label, f"{found['words_a_second']:.0f}", related, f"{found['auroc']:.3f}"])
    return table(["layers that drop out", "words a second", "rank correlation with all", "AUROC for wrong words"], rows)


def memory() -> str:
    rows = []
    verbs = {"predict --uncertainty": "memory", "next": "memory-next", "train --unlabeled": "memory-train"}
    for verb, file in verbs.items():
        found = measured(file)
        row = [f"{found['seconds'] / 60:.1f}", f"{found['over_the_model_megabytes']:.0f}", f"{found['growth']:.1f}x"]
        rows.append([f"`sequst {verb}`", *row])
    return table(["a million sentences", "minutes", "MB beside a run on one", "time for ten times as many"], rows)


def efforts() -> str:
    rows = []
    for run in measured("efforts")["runs"]:
        others = [f"`{name}={value}`" for name, value in run.items() if name in ("method", "max_length", "max_rounds")]
        text = f"{run['raw']:,}" if run["raw"] else "none"
        ratio = run["foretold"] / run["seconds"]
        row = [", ".join([f"`{run['effort']}`", *others]), f"`{run['encoder']}`", str(run["labelled"]), text]
        rows.append([*row, f"{run['all_seconds'] / 60:.1f}", f"{ratio:.2f}"])
    return table(["effort", "encoder", "labelled", "raw", "minutes", "foretold / took"], rows)


def method_steps() -> str:
    found = measured("methods")
    passes = {
        "finetune": ("`finetune`", "1 and 1", ""),
        "vat": ("`vat`", "1 and 1", "3 and 2: the clean side, the search for the direction, the perturbed side"),
        "seqvat": ("`seqvat`", "1 and 1", "the same, and three times the k best paths"),
        "cvt, a labelled and an unlabelled step": (
            "`cvt`, a labelled and an unlabelled step", "1 and 1", "1 and 1, and a small BiLSTM",
        ),
        "sst": ("`sst`, student", "", "1 and 1"),
        "sequst": ("`sequst`, student", "", "the same; its consistency term takes the head alone through K more"),
        "metast": (
            "`metast`, student", "1 and 1 (the meta batch)", "1 and 3: the virtual step, its derivative, the real step",
        ),
        "beliefs": ("a pass of MC dropout", "", "1 and 0"),
    }  # fmt: skip
    rows = [[*told, f"{found[name]['ms'][1]:.0f}", f"{found[name]['ratio']:.1f}"] for name, told in passes.items()]
    return table(["", "labelled", "unlabelled", "ms", "of a step of fine-tuning"], rows)


def crf() -> str:
    found = measured("crf")
    rows = [
        [title, *(f"{found[f'{task}_{who}_ms'][1]:.1f}" for who in ("sequst", "pytorch-crf"))]
        for task, title in (("nll", "the loss with its gradient"), ("viterbi", "the best path"))
    ]
    return table(["milliseconds", "sequst", "pytorch-crf"], rows)


def label_next() -> str:
    data, sets, counts = measured("label_next")["data"], ("mit_restaurant", "conll03"), ("50", "100", "200")
    rows = [
        [way, *(f"{data[d]['mean'][way][count]['f1']:.2f}" for d in sets for count in counts)]
        for way in ("random", "information gain, diverse")
    ]
    ahead = [data[d]["mean"]["information gain, diverse"][count]["over_random"] for d in sets for count in counts]
    rows.append(["ahead by", *(f"{each['difference']:+.2f} (p {each['p']:.3f})" for each in ahead)])
    return table(["", "MIT Restaurant, 50", "100", "200", "CoNLL-03, 50", "100", "200"], rows)


STUDIO = {"conll03": "CoNLL-03", "mit_restaurant": "MIT Restaurant"}


def _points(name: str) -> list[Any]:
    points: list[Any] = measured("studio_robot")[name]["studio"]["points"]
    return points


def studio() -> str:
    """Of the robot: the usual way, the studio, and what the studio told of itself."""
    rows = []
    efforts = [each for each in ("quick", "default") if all(each in point for name in STUDIO for point in _points(name))]
    for name, title in STUDIO.items():
        found = measured("studio_robot")[name]
        for point in found["studio"]["points"]:
            usual = [run["test"] for run in found["usual"]["points"] if run["labels"] == point["labels"]]
            told = point["quick"]["judged"]
            interval = f"{told['value']:.1f} ({told['low']:.1f} to {told['high']:.1f})"
            reached = [f"{point[kind]['test']:.1f}" for kind in efforts]
            usual_told = f"{fmean(usual):.1f} ± {stdev(usual):.1f}" if len(usual) > 1 else ""
            rows.append([title, str(point["labels"]), usual_told, *reached, interval, str(told["sentences"])])
    told_by = ["told by the studio", "from sentences"]
    return table(["", "labels", "random, usual fine-tuning", *(f"studio, `{each}`" for each in efforts), *told_by], rows)


def studio_keys() -> str:
    rows = []
    for name, title in STUDIO.items():
        keys = measured("studio_robot")[name]["studio"]["keys"]
        rows.append([title, *(f"{keys[tool]:.1f}" for tool in ("studio", "doccano", "label_studio")), str(keys["sentences"])])
    return table(["keys, clicks and drags for a sentence", "studio", "doccano", "Label Studio", "sentences"], rows)


SUSPECTS = {"MIT Restaurant": "suspects", "CoNLL-03": "suspects-conll03"}


def suspects() -> str:
    found = [measured(file) for file in SUSPECTS.values()]
    names = {
        "ours": "`sequst suspects`",
        "ratio": "the ratio alone, without what is usual for a tag",
        "difference": "the difference of the two probabilities",
        "cleanlab, words": "cleanlab, words by `get_label_quality_scores`",
        "cleanlab, margins": "cleanlab, words by their normalised margin",
        "cleanlab, issues": "cleanlab, `find_label_issues`",
    }
    rows = []
    for name, title in names.items():
        right = [spread(each["mean"][name]["precision"], 1) for each in found]
        ahead = [spread(each["ahead"][name]["precision"], 1) if name in each["ahead"] else "" for each in found]
        rows.append([title, *right, *ahead])
    sets = list(SUSPECTS)
    return table(["", *sets, *(f"ours ahead, {name}" for name in sets)], rows)


def suspects_found() -> str:
    """Recall of each way in which a label was made wrong."""
    ways = {"type": "another type", "edge": "a moved edge", "dropped": "a dropped entity", "spurious": "an entity that is none"}
    rows = []
    for data, file in SUSPECTS.items():
        recall = measured(file)["recall_by_way"]
        for name, title in (("ours", "`sequst suspects`"), ("cleanlab, issues", "cleanlab, `find_label_issues`")):
            rows.append([f"{data}, {title}", *(f"{recall[name][way]:.0f} %" for way in ways)])
    return table(["found, of those wrong by", *ways.values()], rows)


def int8() -> str:
    found = measured("int8")
    few, many = found["mean"].values()
    rows = []
    for way, title in (("torch", "sequst on torch"), ("onnx, fp32", "onnx, fp32"), ("onnx, int8", "onnx, int8")):
        columns = (("f1", 1), ("changed", 2), ("words_a_second", 0))
        rows.append([title, *(spread(each[way][name], digits) for each in (few, many) for name, digits in columns)])
    size = next(iter(found["runs"].values()))[0]["megabytes"]
    for row, each in zip(rows, ("fp32", "fp32", "int8"), strict=True):
        row.append(f"{size[each]:.0f}")
    of_each = ("% of tags changed", "words/s")
    return table(["", "F1, 80 sentences", *of_each, "F1, 1,000 sentences", *of_each, "MB"], rows)


def serving() -> str:
    found = measured("serving")
    names = {
        "pipeline": "FastAPI, transformers' `pipeline` for each request, in threads",
        "pipeline, async": "the same in the event loop",
        "naive batching": "FastAPI, a queue whose requests of 10 ms are one call of the pipeline",
        "ours": "`sequst serve`",
        "ours, bf16": "`sequst serve --precision bf16`",
    }
    rows = []
    for name, title in names.items():
        load = found["throughput"][name]
        speed = f"{load['requests_a_second']:,.0f} ({load['least']:,.0f} to {load['most']:,.0f})"
        beside = "" if name.startswith("ours") else f"{found['ratio'][name]:.1f}x"
        rows.append([title, speed, f"{load['p50']:,.0f}", f"{load['p99']:,.0f}", beside])
    return table(
        [f"{found['clients']} clients", "requests a second", "ms, half of them", "ms, 99 of 100", "sequst in fp32 beside it"],
        rows,
    )


def serving_more() -> str:
    found = measured("serving")
    lone, steady, start = (found[name] for name in ("lone", "steady", "cold_start"))
    share = f"{100 * found['share']:.0f} %"
    rows = [
        ["a lone request, ms; `Tagger.predict` in process", f"{lone['http']:.1f}; {lone['in process']:.1f}"],
        [
            f"{steady['requests_a_second']:,.0f} requests a second by chance, {share} of the most: ms, half and 99 of 100",
            f"{steady['p50']:,.0f}, {steady['p99']:,.0f}",
        ],
        ["from the command to the first answer, s; to load the model alone", f"{start['ready']:.1f}; {start['loaded']:.1f}"],
    ]
    if soak := found.get("soak"):
        rows += [
            [f"{soak['minutes']:.0f} minutes at full load: requests, errors", f"{soak['requests']:,}, {soak['errors']}"],
            [
                "memory then, MB, after two minutes and at the end",
                f"{soak['megabytes_then']:,.0f}, {soak['megabytes_last']:,.0f}",
            ],
        ]
    return table(["", "measured"], rows)


def pipeline() -> str:
    rows = []
    for tags, file in (("`valid_tags: false`", ""), ("valid tags", "-valid"), ("the defaults", "-defaults")):
        for strategy, kinds in measured(f"pipeline_entities{file}")["same_entities"].items():
            cells = (f"{kind['same']} of {kind['sentences']}" for kind in (kinds["plain"], kinds["others"]))
            rows.append([f"`{strategy}`, {tags}", *cells])
    return table(["", "words of letters and digits, or a mark", "others"], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "cpu": cpu,
    "gpu": gpu,
    "last-layers": last_layers,
    "effort-times": efforts,
    "memory": memory,
    "method-steps": method_steps,
    "crf": crf,
    "label-next": label_next,
    "studio": studio,
    "studio-keys": studio_keys,
    "suspects": suspects,
    "suspects-found": suspects_found,
    "int8": int8,
    "serving": serving,
    "serving-more": serving_more,
    "pipeline": pipeline,
}
