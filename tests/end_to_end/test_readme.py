"""What the README and the docs promise."""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


@pytest.mark.timeout(900)
def test_the_python_example_runs_as_it_stands(tmp_path: Path) -> None:
    [code] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.search(r"test F1 ([\d.]+)", done.stdout)
    assert found is not None
    assert float(found[1]) > 50  # 60 where this was measured; an untrained head is below 5
    assert re.search(r"^(person|work|place|date) +\S.* \d+%$", done.stdout, re.MULTILINE)


def test_every_verb_of_the_readme_has_the_flags_it_shows(sequst: Callable[..., Any]) -> None:
    shown = [line.split("#")[0] for line in README.splitlines() if line.startswith("sequst ")]
    assert len(shown) >= 7
    for line in shown:
        words = line.split()
        verb = words[1:3] if words[1] == "experiment" else words[1:2]
        help_text = sequst(*verb, "--help").stdout
        for flag in re.findall(r"--[a-z0-9-]+", line):
            assert re.search(rf"{flag}\b(?!-)", help_text), (words[1], flag)


def test_the_error_in_the_readme_is_the_error_that_comes(tmp_path: Path, sequst: Callable[..., Any]) -> None:
    (tmp_path / "labeled.conll").write_text("Anna B-PER\nin O\nOslo I-LOC\n")
    done = sequst("train", "--labeled", "labeled.conll", "--output", "run", cwd=tmp_path)
    expected = next(line for line in README.splitlines() if line.startswith("error: "))
    assert expected in done.stderr


def test_links_lead_somewhere() -> None:
    for page in [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("results/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), (page, target)


def test_the_settings_page_is_what_the_command_prints(sequst: Callable[..., Any]) -> None:
    assert (REPOSITORY / "docs/reference/settings.yaml").read_text(encoding="utf-8") == sequst("settings").stdout


def test_the_table_of_the_readme_is_what_the_results_say() -> None:
    import statistics

    from sequst.experiments.results import KEYS, read_results

    lines = read_results(REPOSITORY / "results" / "finetune.jsonl")
    assert all(tuple(line) == KEYS for line in lines)
    for dataset in ("conll03", "snips", "mit_restaurant", "mit_movie"):
        scores = [line["f1"] for line in lines if (line["experiment"], line["dataset"]) == ("main-10shot", dataset)]
        assert len(scores) == 5
        assert f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}" in README
    [full] = [line["f1"] for line in lines if line["experiment"] == "full-data"]
    assert f"{full:.2f}" in README


def test_the_pages_say_what_the_default_encoder_reaches_with_the_defaults() -> None:
    import statistics

    from sequst.evaluation.paired import paired_test
    from sequst.experiments.results import read_results

    found: dict[tuple[str, str], dict[int, float]] = {}
    for line in read_results(REPOSITORY / "results" / "minilm-defaults.jsonl"):
        found.setdefault((line["head"], line["dataset"]), {})[line["seed"]] = line["f1"]
    sets = ("conll03", "snips", "mit_restaurant", "mit_movie")
    for head, name in (("softmax", "the defaults, 10 sentences of each type"), ("crf", "with `--head crf`")):
        cells = (f"{statistics.mean(f1):.2f} ± {statistics.stdev(f1):.2f}" for f1 in (found[head, s].values() for s in sets))
        assert f"| {name} | {' | '.join(cells)} |" in README
    assert all(set(f1) == {12, 21, 42} for f1 in found.values())
    apart = [f1 - found["softmax", s][seed] for s in sets for seed, f1 in found["crf", s].items()]
    error = statistics.stdev(apart) / len(apart) ** 0.5
    methods = " ".join((REPOSITORY / "docs/concepts/methods.md").read_text(encoding="utf-8").split())
    assert f"by {-statistics.mean(apart):.1f} ± {error:.1f} points of test F1 over {len(apart)} pairs of runs" in methods
    assert f"by {-statistics.mean(apart):.1f} ± {error:.1f} on `minilm`" in recipe_section("The head")
    told, taught = recipe_section("What the defaults reach"), scores_of("minilm-self-training")
    means = {method: set_means(taught, method, (12,)) for method in ("finetune", "sst", "sequst")}
    for method, name in (("finetune", "fine-tuning"), ("sst", "SST"), ("sequst", "SeqUST")):
        assert f"| {name} | {' | '.join(f'{f1:.2f}' for f1 in means[method])} |" in told
    tuned, plain, ours = means.values()
    worth = f"worth {ours[-1] - tuned[-1]:.1f} points"
    lost = [tuned[5] - each[5] for each in (ours, plain)]
    assert f"raw text is {worth} on average with it, and takes away {lost[0]:.1f} on OntoNotes" in " ".join(README.split())
    assert f"takes away {lost[0]:.1f} on OntoNotes, with SST {lost[1]:.1f}" in told
    on_cpu = scores_of("minilm-self-training-cpu")
    apart = {key: f1[12] - taught[key][12] for key, f1 in on_cpu.items()}
    lines = " ".join((REPOSITORY / "results/README.md").read_text(encoding="utf-8").split())
    assert (
        "F1 is {:.2f} less and {:.2f} more with SST, {:.2f} and {:.2f} more with SeqUST".format(
            -apart["mit_restaurant", "sst"], apart["snips", "sst"], apart["mit_restaurant", "sequst"], apart["snips", "sequst"]
        )
        in lines
    )
    assert [each for each, a, b in zip(SETS, ours, plain, strict=False) if a > b] == ["snips", "mit_movie"]
    assert f"level on average (p = {paired_test(ours[:6], plain[:6]).p:.2f})" in told
    large = scores_of("best-10shot")
    larger = [set_means(large, method, (12,))[-1] for method in ("finetune", "sequst")]
    assert f"Raw text is {worth}, to `mpnet` with this seed {larger[1] - larger[0]:.1f}" in told
    more = [statistics.mean(large[s, "finetune"][seed] - f1 for seed, f1 in found["softmax", s].items()) for s in sets]
    assert [round(min(more)), round(max(more))] == [7, 10]
    assert "is seven to ten points better" in (REPOSITORY / "docs/how-to/choose-an-encoder.md").read_text(encoding="utf-8")


def test_every_file_of_results_can_be_run_again() -> None:
    from sequst.experiments.recipe import load_cells
    from sequst.experiments.results import FINDINGS, read_results

    files = [path for path in (REPOSITORY / "results").glob("*.jsonl") if path.suffixes[0].strip(".") not in FINDINGS]
    assert len(files) >= 12
    for path in files:
        cells = load_cells(str(path))
        assert len(cells) == len(read_results(path))
        for recipe in {cell.recipe: cell for cell in cells}.values():
            recipe.settings()  # its overrides are still understood


MAIN = [REPOSITORY / "results" / f"{name}.jsonl" for name in ("main-10shot", "full-data", "self-training")]
DEFAULTS = [REPOSITORY / "results" / f"{name}.jsonl" for name in ("best-10shot", "best-full-data")]


@pytest.mark.parametrize(("files", "folder"), [(MAIN, "docs/images"), (DEFAULTS, "docs/images/defaults")])
def test_the_figures_of_the_docs_are_of_the_results(files: list[Path], folder: str) -> None:
    """After new results: `sequst experiment figures` of these files with --output FOLDER, without the SVG."""
    from sequst.experiments.figures import figures_of
    from sequst.experiments.results import Results

    for figure in figures_of(Results.load(files)):
        assert (REPOSITORY / folder / f"{figure.name}.csv").read_text(encoding="utf-8") == figure.csv()
        assert (REPOSITORY / folder / f"{figure.name}.png").is_file()


def test_the_tables_of_self_training_are_what_the_results_say() -> None:
    import statistics

    from sequst.evaluation.paired import paired_test
    from sequst.experiments import paper
    from sequst.experiments.grouping import rows_of, scores_of
    from sequst.experiments.results import KEYS, Results

    page = (REPOSITORY / "docs/concepts/self-training.md").read_text(encoding="utf-8")
    results = Results.load(MAIN)
    assert all(tuple(line) == KEYS for line in results.lines)
    [scored] = scores_of(results, rows_of(results)).values()
    datasets = paper.datasets()
    for method, name in (("finetune", "fine-tuning"), ("sst", "SST"), ("sequst", "SeqUST")):
        found = [list(scored.scores[dataset, method].values()) for dataset in datasets]
        assert {len(runs) for runs in found} == {5}
        row = [name, *(f"{statistics.mean(runs):.2f} ± {statistics.stdev(runs):.2f}" for runs in found)]
        row.append(f"{statistics.mean(map(statistics.mean, found)):.2f}")
        for text in (README, page):
            assert f"| {' | '.join(row)} |" in text
    full = [f"{scored.ceiling[dataset]:.2f}" for dataset in datasets if dataset in scored.ceiling]
    assert all(f"| all of the training set, one seed | {' | '.join(full)} | " in text for text in (README, page))
    row, all_ours, all_theirs = ["SeqUST less SST (p)"], [], []
    for dataset in datasets:
        ours, theirs = ([scored.scores[dataset, m][seed] for seed in (12, 21, 42, 87, 100)] for m in ("sequst", "sst"))
        gain = paired_test(ours, theirs)
        row.append(f"{gain.difference:+.2f} ({gain.p:.3f})")
        all_ours += ours
        all_theirs += theirs
    gain = paired_test(all_ours, all_theirs)
    assert f"| {' | '.join(row)} | {gain.difference:+.2f} ({gain.p:.3f}) |" in page
    rounds = results.found("rounds")
    for name, method, number, keys in (
        ("round 1, words", "sequst", 1, ("error", "selected_error")),
        ("round 1, entity words", "sequst", 1, ("entity_error", "selected_entity_error")),
        ("round 2, words, SST", "sst", 2, ("error",)),
        ("round 2, words, SeqUST", "sequst", 2, ("error", "selected_error")),
    ):
        row = [name]
        for dataset in datasets:
            runs = [line for line in rounds if (line["dataset"], line["method"], line["round"]) == (dataset, method, number)]
            assert len(runs) == 5
            row.append(" / ".join(f"{statistics.mean(line[key] for line in runs):.1f}" for key in keys))
        assert f"| {' | '.join(row)} |" in page


def test_the_tables_of_the_methods_are_what_the_results_say() -> None:
    import statistics

    from sequst.experiments.results import KEYS, read_results

    page = (REPOSITORY / "docs/concepts/methods.md").read_text(encoding="utf-8")
    lines = [line for name in ("methods", "encoder-heads") for line in read_results(REPOSITORY / "results" / f"{name}.jsonl")]
    assert all(tuple(line) == KEYS for line in lines)

    def cell(**facts: str) -> list[dict[str, Any]]:
        found = [line for line in lines if all(line[name] == value for name, value in facts.items())]
        assert sorted(line["seed"] for line in found) == [12, 21, 42]
        return found

    def shown(found: list[dict[str, Any]]) -> str:
        scores = [line["f1"] for line in found]
        return f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"

    datasets = ("conll03", "mit_restaurant")
    names = {"finetune": "fine-tuning", "vat": "VAT", "seqvat": "SeqVAT", "cvt": "CVT", "sst": "SST", "metast": "MetaST"}
    for method, name in {**names, "sequst": "SeqUST"}.items():
        recipe = "paper max_rounds=2" if method in ("sst", "metast", "sequst") else "paper"
        found = [cell(method=method, recipe=recipe, encoder="minilm", head="softmax", dataset=each) for each in datasets]
        seconds = " / ".join(f"{statistics.mean(line['seconds'] for line in each):.0f}" for each in found)
        assert f"| {name} | {shown(found[0])} | {shown(found[1])} | {seconds} |" in page
    for encoder, head in itertools.product(("minilm", "bilstm"), ("softmax", "crf")):
        pair = {"encoder": encoder, "head": head}
        row = [shown(cell(method=method, dataset=each, **pair)) for each in datasets for method in ("finetune", "sequst")]
        name = f"{encoder.replace('bilstm', 'BiLSTM')}, {head.replace('crf', 'CRF')}"
        assert f"| {name} | {' | '.join(row)} |" in page
        if encoder == "minilm":
            for score in (row[1], row[3]):
                assert score.split()[0] in README


def test_results_md_is_what_the_command_renders(sequst: Callable[..., Any]) -> None:
    """No cell is filled by hand. After new results: the commands that stand before the tables."""
    page = (REPOSITORY / "RESULTS.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    sequst (experiment table .*)$", page, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        rendered = sequst(*command.split(), cwd=REPOSITORY)
        assert rendered.returncode == 0, rendered.stderr
        assert f"    sequst {command}\n\n{rendered.stdout}" in page


def speed_page() -> str:
    return " ".join((REPOSITORY / "docs/concepts/speed.md").read_text(encoding="utf-8").split())


def measured(name: str) -> Any:
    """What a benchmark wrote, which must be listed with its command."""
    import json

    results = REPOSITORY / "benchmarks/results"
    assert f"| {name}.json |" in (results / "README.md").read_text(encoding="utf-8")
    return json.loads((results / f"{name}.json").read_text(encoding="utf-8"))


def test_the_page_on_speed_says_what_was_measured_on_cpus() -> None:
    page = speed_page()

    def rate(found: dict[str, float]) -> str:
        return f"{found['median']:,.0f} ({found['least']:,.0f} to {found['most']:,.0f}) |"

    mc, tagging, start, memory = map(measured, ("mc_dropout", "tagging", "start_up", "memory"))
    baal = max(rate["median"] for name, rate in mc["words_a_second"].items() if name.startswith("baal"))
    for name, speed in mc["words_a_second"].items():
        assert rate(speed) in page or (name.startswith("baal") and speed["median"] < baal)
    for speed in tagging["words_a_second"].values():
        assert rate(speed) in page
    again = measured("tagging-again")["ratio"]["pipeline at 32"]
    assert f"varied more, it was {again:.1f} times" in page
    older = measured("tagging-avx2")
    assert (
        f"{older['words_a_second']['ours']['median']:,.0f} words a second, {older['ratio']['pipeline at 32']:.1f} times the "
        f"pipeline at 32 and {older['ratio']['onnxruntime']:.1f} times onnxruntime"
    ) in page
    old = measured("mc_dropout-avx2")
    usual, sorted_, peer, own, labelled = (
        f"{old['words_a_second'][name]['median']:.0f}"
        for name in ("usual loop", "sorted and streamed", "baal", "ours", "ours, words labelled")
    )
    assert (
        f"the usual loop reaches {usual} words a second, sorted batches {sorted_}, baal {peer}, and sequst {own} with the "
        f"passes alone, {old['ratio_naive']:.1f} times the usual loop, {old['ratio_sorted']:.1f} times sorted batches and "
        f"{old['ratio_baal']:.1f} times baal; {labelled} with the labels."
    ) in page
    naive, sorted_, other = (f"{mc[f'ratio_{name}']:.1f} times" for name in ("naive", "sorted", "baal"))
    seconds = start["seconds"]
    for figure in (
        f"{naive} the usual loop, {sorted_} sorted batches and {other} baal",
        f"{100 * mc['share_of_limit']:.0f} % of what a plain matrix product",
        f"{tagging['ratio']['pipeline at 32']:.1f} times the pipeline at 32",
        *(f"{seconds[name]['median']:.2f} ({seconds[name]['least']:.2f} to" for name in ("help", "predict", "classes")),
        f"`predict` takes {start['predict_over_import']:.2f} s beyond",
        f"{memory['seconds'] / 60:.1f} minutes, {memory['sentences_a_second']:,.0f} sentences a second",
        f"at most {memory['over_the_model_megabytes']:.0f} MB over",
        f"took {memory['growth']:.1f} times the time",
    ):
        assert figure in page
    for name in ("words", "words-8", "words-xlmr"):
        found = measured(f"training_step-{name}")
        cells = (f"{found['milliseconds_a_step'][way]:,.0f}" for way in ("ours, whole table", "ours"))
        assert f"| {' | '.join(cells)} | {found['ratio_whole_table']:.1f} times" in page
        assert len(set(found["loss_after"].values())) == 1
    for row in (
        f"the usual loop | 4x | {mc['ratio_naive']:.1f}x |",
        f"batches of like length | 1.5x | {mc['ratio_sorted']:.1f}x |",
        f"baal's faster mode | 2.5x | {mc['ratio_baal']:.1f}x |",
        f"the pipeline at 32 | 3.5x | {tagging['ratio']['pipeline at 32']:.1f}x; another day {again:.1f}x; in bf16",
        f"`sequst --help` | 0.3 s | {seconds['help']['median']:.2f} s |",
        f"over the imports | 1.5 s | {start['predict_over_import']:.2f} s |",
        f"| {memory['seconds'] / 60:.1f} minutes, {memory['over_the_model_megabytes']:.0f} MB |",
        f"| 10.5 times the time | {memory['growth']:.1f} times |",
    ):
        assert row in page

    for name, found in measured("last_layers")["last_layers"].items():
        related = "" if "rank_correlation" not in found else f"{found['rank_correlation']:.3f}"
        label = {"all": "all", "all, another seed": "all, another seed"}.get(name, f"the last {name}")
        row = f"| {label} | {found['words_a_second']:.0f} | {related} | {found['auroc']:.3f} |"
        assert " ".join(row.split()) in page


def test_the_page_on_speed_says_what_was_measured_on_a_gpu() -> None:
    import statistics

    from sequst.evaluation.paired import paired_test
    from sequst.experiments.results import read_results

    page = speed_page()
    bert, mpnet = measured("mc_dropout-h200-bert"), measured("mc_dropout-h200-mpnet")
    for name in bert["words_a_second"]:
        cells = (
            f"{found['token_passes_a_second'][name] / 1000:,.0f} ({100 * found['shares_of_limit'][name]:.1f} %)"
            for found in (bert, mpnet)
        )
        assert f"| {' | '.join(cells)} |" in page
    assert f"{bert['ratio_naive']:.1f} and {mpnet['ratio_naive']:.1f} times the usual loop" in page
    step, run = measured("training_step-h200"), measured("whole_run-h200")
    for milliseconds in step["milliseconds_a_step"].values():
        assert f"| {milliseconds:.1f} |" in page
    assert f"{step['ratio_trainer']:.1f} and {step['ratio_trainer_bf16_grouped']:.1f} times as fast" in page
    weighed = measured("training_step-h200-weighed")
    times = weighed["milliseconds_a_step"]
    assert f"takes {times['ours, weighed']:.2f} ms with them and {times['ours']:.2f} ms without" in page
    spans = [weighed["words_a_second"][name] for name in ("ours", "ours, weighed")]
    assert max(span["least"] for span in spans) < min(span["most"] for span in spans)
    again = measured("mc_dropout-h200-bert-again")
    assert f"{100 * again['share_of_limit']:.1f} % and {again['ratio_naive']:.1f} times for BERT" in page
    assert f"from {again['words_a_second']['ours']['least']:,.0f}"[:-3] in page
    alone = measured("mc_dropout-h200-bert-passes")
    shares, speeds = alone["shares_of_limit"], {name: each["median"] for name, each in alone["words_a_second"].items()}
    of_loop = {name: f"{each / speeds['usual loop']:.1f} times" for name, each in speeds.items()}
    for name, told in (("ours", "it was"), ("ours, words labelled", "with it")):
        assert f"{told} {100 * shares[name]:.1f} % and {of_loop[name]}" in page
    loops = [found["token_passes_a_second"]["usual loop"] / 1000 for found in (alone, bert)]
    assert f"{loops[0]:.0f} thousand token-passes a second in place of {loops[1]:.0f}" in page
    first, second = run["ours"]["runs"]
    assert f"{first['seconds']:.0f} s on a machine" in page
    assert f"{second['seconds']:.0f} s the next time" in page
    plain = {each["seed"]: each["f1"] for each in measured("whole_run-h200-plain")["plain"]["runs"]}
    earlier, now = (
        {(line["dataset"], line["seed"]): line["f1"] for line in read_results(REPOSITORY / f"results/{name}.jsonl")}
        for name in ("one-teacher-earlier", "one-teacher")
    )
    assert [earlier["mit_restaurant", each["seed"]] for each in run["ours"]["runs"]] == [first["f1"], second["f1"]]
    ours = dict(sorted((seed, f1) for (dataset, seed), f1 in now.items() if dataset == "mit_restaurant"))
    moved = [now[key] - f1 for key, f1 in earlier.items()]
    told = (
        f"{statistics.mean(moved):.2f} ± {statistics.stdev(moved) / len(moved) ** 0.5:.2f} over {len(moved)} runs on six sets"
    )
    assert told in page
    assert 0.8 < statistics.stdev(moved) < 1.2
    for name, found in (("the plain path", plain), ("ours", ours)):
        row = [*(found[seed] for seed in ours), statistics.mean(found[seed] for seed in ours)]
        assert f"| {name} | {' | '.join(f'{f1:.2f}' for f1 in row)} |" in page
    apart = [f1 - plain[seed] for seed, f1 in ours.items()]
    gain, error = statistics.mean(apart), statistics.stdev(apart) / len(apart) ** 0.5
    p = paired_test(list(ours.values()), [plain[seed] for seed in ours]).p
    assert f"The difference is {gain:.2f} ± {error:.2f} (p = {p:.2f})" in page
    for row in (
        f"| 50 % | {100 * bert['share_of_limit']:.1f} % |",
        f"| 40x | {alone['ratio_naive']:.1f}x; on other days",
        f"{bert['ratio_naive']:.1f}x and {again['ratio_naive']:.1f}x |",
        f"| 25 % | {100 * mpnet['share_of_limit']:.1f} % |",
        f"| 5x | {step['ratio_trainer']:.1f}x |",
        f"| 2x | {step['ratio_trainer_bf16_grouped']:.1f}x |",
        f"| 60 s | {second['seconds']:.0f} s |",
        f"| within 0.3 | {gain:.2f} above, ± {error:.2f}, five seeds |",
    ):
        assert row in page


def test_the_tables_of_the_bilstm_are_what_the_results_say() -> None:
    import statistics

    from sequst.experiments.results import read_results

    page = (REPOSITORY / "docs/how-to/train-a-bilstm.md").read_text(encoding="utf-8")
    lines = read_results(REPOSITORY / "results" / "bilstm-defaults.jsonl")
    glove = "paper bilstm.vectors=glove"
    changes = ("", " bilstm.rate=10", " bilstm.rate=40", " bilstm.dropout=0.5", " bilstm.layers=1", " bilstm.hidden=64")
    means = []
    for change in (*changes, " standardise=false"):
        scores = [line["f1"] for line in lines if line["recipe"] == glove + change]
        assert len(scores) == 4
        means.append(f"{statistics.mean(scores):.1f}")
    assert f"| {' | '.join(means)} |" in page
    for name, recipe in (("learnt vectors", "paper"), ("GloVe, 50 dimensions", glove)):
        row = [name]
        for dataset in ("conll03", "mit_restaurant"):
            found = {line["seed"]: line["f1"] for line in lines if (line["recipe"], line["dataset"]) == (recipe, dataset)}
            row.append(f"{found[12]:.1f} / {found[21]:.1f}")
        assert f"| {' | '.join(row)} |" in page


@pytest.mark.timeout(1200)
def test_demo(tmp_path: Path) -> None:
    """Of one of its methods: SST goes the way of SeqUST, fine-tuning is the example in Python, and each would take minutes."""
    import json

    from sequst.experiments.demo import METHODS

    assert METHODS == ("finetune", "sst", "sequst")
    command = [sys.executable, "-m", "sequst", "demo", "--seed", "12", "--output", str(tmp_path / "d"), "--method", "sequst"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "d" / "summary.json").read_text())
    assert list(summary) == ["sequst"]
    assert io.StringIO(done.stdout).readline().split() == ["method", "test", "F1", "dev", "F1", "rounds", "seconds"]
    for method, row in summary.items():
        assert row["f1"] > 50
        assert row["rounds"] == 2
        assert f"{row['f1']:.2f}" in done.stdout
        assert (tmp_path / "d" / "runs" / method / "report.html").is_file()
    assert all(row["seconds"] > 0 for row in summary.values())


def test_the_page_on_the_recipe_says_what_was_measured() -> None:
    import json
    import statistics

    def rounds(name: str) -> list[dict[str, Any]]:
        lines = (REPOSITORY / f"results/{name}.rounds.jsonl").read_text(encoding="utf-8").splitlines()
        return [line for line in map(json.loads, lines) if "f1" in line and line["method"] == "sequst"]

    def finals(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (REPOSITORY / f"results/{name}.jsonl").read_text(encoding="utf-8").splitlines()]

    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    by_round: dict[int, dict[tuple[str, int], float]] = {}
    for line in rounds("recipe"):
        by_round.setdefault(line["round"], {})[line["dataset"], line["seed"]] = line["f1"]
    assert [len(found) for found in by_round.values()] == [18] * 6
    means = [f"{statistics.mean(found.values()):.2f}" for found in by_round.values()]
    assert f"| F1 | {' | '.join(means)} |" in page
    before = [
        line for name in ("main-10shot", "self-training") for line in finals(name) if line["recipe"] == "paper max_rounds=2"
    ]
    for method, told in (("sequst", "with SeqUST"), ("sst", "with SST")):
        scores = [e["f1"] for e in before if e["method"] == method and (e["dataset"], e["seed"]) in by_round[0]]
        assert len(scores) == 18
        assert f"{statistics.mean(scores):.2f} {told}" in " ".join(page.split())
    raw = {(e["dataset"], e["seed"]): e["f1"] for e in rounds("main-10shot") if e["round"] == 0 and e["encoder"] == "mpnet"}
    both = raw.keys() & by_round[0].keys()
    assert len(both) == 9
    assert f"{statistics.mean(raw[key] for key in both):.2f}, where that with valid tags" in " ".join(page.split())
    assert f"valid tags is {statistics.mean(by_round[0][key] for key in both):.2f}" in " ".join(page.split())


SETS = ["snips", "multiwoz", "mit_movie", "mit_restaurant", "conll03", "ontonotes"]
TAUGHT = ("sst", "sequst")


def round_scores(name: str, method: str = "sequst") -> dict[int, dict[tuple[str, int], float]]:
    """By round, dataset and seed: the F1 of the teachers of a file of results, where it is known."""
    from sequst.experiments.results import read_findings

    found: dict[int, dict[tuple[str, int], float]] = {}
    for line in read_findings(REPOSITORY / f"results/{name}.jsonl", "rounds"):
        if line["method"] == method and line.get("f1") is not None:
            found.setdefault(line["round"], {})[line["dataset"], line["seed"]] = line["f1"]
    return found


def mean_finding(name: str, kind: str, figure: str, dataset: str, **where: object) -> float:
    import statistics

    from sequst.experiments.results import read_findings

    asked = {"dataset": dataset, **where}.items()
    found = read_findings(REPOSITORY / f"results/{name}.jsonl", kind)
    return statistics.mean(line[figure] for line in found if asked <= line.items())


def benchmark(name: str) -> Any:
    """A module of benchmarks/ that imports nothing from there."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, REPOSITORY / f"benchmarks/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LAST, FIRST, ECE = "after the last round", "first teacher", "calibration error of entities"
"""What changes have effects on."""


def effects_of(name: str, of: str = LAST) -> tuple[int, list[dict[str, Any]]]:
    """(runs, what each change is worth in them)."""
    found: tuple[int, list[dict[str, Any]]] = benchmark("effects").tables_of(REPOSITORY / f"results/{name}.jsonl")[of]
    return found


@pytest.mark.parametrize(
    ("name", "runs", "changes"),
    [
        ("screening", 37, 11),
        ("screening-more", 48, 4),
        ("screening-draws", 48, 7),
        ("screening-rest", 48, 3),
        ("best-parts", 48, 7),
    ],
)
def test_the_page_on_the_recipe_says_what_each_change_brings(name: str, runs: int, changes: int) -> None:
    page = " ".join((REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8").split())
    counted, effects = effects_of(name)
    assert (counted, len(effects)) == (runs, changes)
    for row in effects:
        names = row["change"].replace(" ", "` `")
        assert f"| `{names}` | {row['effect']:+.2f} ± {row['error']:.2f} | {row['p']:.3f} |" in page


def test_the_picture_of_changes_is_of_the_results() -> None:
    names = ("screening", "screening-more", "screening-draws", "screening-rest", "best-parts", "screening-selection")
    figure = benchmark("effects").figure_of({name: effects_of(name) for name in names})
    assert (REPOSITORY / "docs/images/effects.csv").read_text(encoding="utf-8") == figure.csv()
    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    assert f"![What {len(figure.rows)} changes bring" in page


def test_the_page_on_the_recipe_says_what_seven_more_changes_bring() -> None:
    import statistics

    from sequst.experiments.results import read_results

    page = " ".join((REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8").split())
    for row in effects_of("screening-draws", ECE)[1]:
        told = page[page.index("## Seven more") :]
        change = told.index(f"| `{row['change'].replace(' ', '` `')}` |")
        assert told[change:].split(" | ")[3].split(" |")[0] == f"{row['effect']:+.2f} ± {row['error']:.2f}"
    asked = ("screening", "screening-more", "screening-draws")
    soft = {
        (name, of): next(row for row in effects_of(name, of)[1] if row["change"] == "pseudo_labels=mean")
        for name in asked
        for of in (LAST, ECE)
    }
    weights = {name: soft[name, LAST]["error"] ** -2 for name in asked}
    mean = sum(weight * soft[name, LAST]["effect"] for name, weight in weights.items()) / sum(weights.values())
    assert f"they bring {mean:.2f} ± {sum(weights.values()) ** -0.5:.2f}" in page
    for name, told in (("screening-more", "smaller by {}, in `screening`"), ("screening", "in `screening` by {}, here")):
        found = soft[name, ECE]
        assert told.format(f"{-found['effect']:.2f} ± {found['error']:.2f}") in page

    heads: dict[str, dict[str, float]] = {"softmax": {}, "crf": {}}
    lines = [
        *read_results(REPOSITORY / "results/screening-heads.jsonl"),
        *read_results(REPOSITORY / "results/screening-draws.jsonl"),
    ]
    for line in lines:
        if line["recipe"].endswith(" successions=0 abstain=false max_rounds=2 adapt=false ensemble.teachers=1"):
            heads[line["head"]][line["dataset"]] = line["f1"]
    for head, name in (("softmax", "softmax"), ("crf", "CRF")):
        row = [*(heads[head][each] for each in SETS), statistics.mean(heads[head].values())]
        assert f"| {name} | {' | '.join(f'{f1:.2f}' for f1 in row)} |" in page


def test_the_page_on_the_recipe_says_what_other_names_bring() -> None:
    import json

    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    measured = json.loads((REPOSITORY / "benchmarks/results/retuning.json").read_text(encoding="utf-8"))
    assert [run["data"] for run in measured["runs"]] == SETS
    for way, name in (
        ("none", "as it is"),
        ("labelled", "labelled entities"),
        ("text", "those of the text too, all alike"),
        ("trusted", "those of the text too, by trust"),
        ("long", "twice as long"),
        ("long, text", "twice as long, those of the text too"),
    ):
        row = [name, *(f"{run['f1'][way]:.2f}" for run in measured["runs"])]
        if way != "none":
            row.append(f"{measured['gain'][way]['mean']:.2f} ± {measured['gain'][way]['error']:.2f}")
        assert f"| {' | '.join(row)} |" in page


def test_the_page_on_the_recipe_says_what_becomes_of_the_rest() -> None:
    import json

    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")

    def runs(name: str) -> Any:
        return json.loads((REPOSITORY / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))["runs"]

    students = [*runs("students-short"), *runs("students")]
    assert [run["data"] for run in students] == ["mit_restaurant", "snips", "mit_restaurant", "conll03"]
    for way, name in (
        ("drawn", "half of them, drawn"),
        ("all", "all of them"),
        ("surest", "the surest 60 % of each class"),
        ("surest, rest as mean", "these, and the rest as MC dropout sees it"),
        ("all, mean", "all of them as MC dropout sees them"),
    ):
        ways = [run["ways"].get(way) for run in students]
        cells = ["" if found is None else f"{found['student']:.2f}, {found['retune']:.2f}" for found in ways]
        assert f"| {name} | {' | '.join(cells)} |" in page
    for run in students:
        drawn, surest = run["ways"]["drawn"], run["ways"]["surest, rest as mean"]
        errors = (drawn["entity_error"], drawn["selected_entity_error"], surest["selected_entity_error"])
        assert ", ".join(f"{error:.1f}" for error in errors) in page
    merged = runs("merging")
    assert [run["data"] for run in merged] == ["mit_restaurant", "snips"]
    for way, name in (
        ("last", "the last round"),
        ("last 2", "weights of the last two"),
        ("last 3", "weights of the last three"),
        ("last 3, together", "probabilities of the last three"),
        ("first", "the first teacher"),
        ("first, merged", "weights of two"),
        ("first, together", "probabilities of two"),
    ):
        cells = [f"{run['ways'][way]['f1']:.2f}" for run in merged]
        assert f"| {name} | {' | '.join(cells)} |" in page


def test_the_page_on_the_recipe_says_what_weighing_words_brings() -> None:
    told, found = recipe_section("Weighed, not drawn"), measured("students-weighed")
    places = {"mit_restaurant": "MIT Restaurant", "conll03": "CoNLL-03", "snips": "SNIPS", "mit_movie": "MIT Movie"}
    runs = found["runs"]
    assert f"| words that are learnt | {' | '.join(places[run['data']] for run in runs)} | gain |" in told
    for way, name in (("drawn", "half of them, drawn"), ("all", "all of them"), ("weighed", "all of them, weighed")):
        cells = [f"{run['ways'][way]['student']:.2f}, {run['ways'][way]['retune']:.2f}" for run in runs]
        gain = "" if way == "drawn" else "{mean:.2f} ± {error:.2f}".format(**found["gain"]["retune"][way])
        assert " ".join(f"| {name} | {' | '.join(cells)} | {gain} |".split()) in told
    ways = [[run["ways"]["weighed"][kind] for kind in ("entity_error", "selected_entity_error")] for run in runs]
    assert "; ".join(f"{all_:.1f} and {weighed:.1f}" for all_, weighed in ways) in told
    drawn = [run["ways"]["drawn"]["selected_entity_error"] for run in runs]
    assert f"fewer than a draw has ({', '.join(f'{error:.1f}' for error in drawn)})" in told
    others = measured("students-powers")["runs"]
    assert [run["data"] for run in others] == [run["data"] for run in runs]
    for way, name in (
        ("weighed, squared", "by the squares of the scores"),
        ("weighed, cubed", "by their third powers"),
        ("weighed within classes", "by the scores, within each predicted class"),
    ):
        ways = [run["ways"][way] for run in others]
        apart = [way["retune"] - run["ways"]["drawn"]["retune"] for way, run in zip(ways, runs, strict=True)]
        cells = [*(f"{way['student']:.2f}, {way['retune']:.2f}" for way in ways), _mean_and_error(apart)]
        assert f"| {name} | {' | '.join(cells)} |" in told

    gains = measured("students-again")["gain"]["retune"]
    assert [run["data"] for run in measured("students-again")["runs"]] == ["mit_restaurant", "snips"]
    assert (
        "all words have {:.2f}, weighed ones {:.2f}, those weighed within each predicted class {:.2f}.".format(
            *(gains[way]["mean"] for way in ("all", "weighed", "weighed within classes"))
        )
        in told
    )


def _mean_and_error(apart: list[float], sign: str = "") -> str:
    import statistics

    return f"{statistics.mean(apart):{sign}.2f} ± {statistics.stdev(apart) / len(apart) ** 0.5:.2f}"


def test_the_page_on_the_recipe_says_what_weighing_words_brings_to_a_large_encoder() -> None:
    import statistics

    from sequst.experiments.results import read_findings, read_results

    told, path = recipe_section("Weighed, not drawn"), REPOSITORY / "results/screening-weighed.jsonl"
    kept = [line for line in read_results(REPOSITORY / "results/screening-doubts.jsonl") if "doubtful" not in line["recipe"]]
    endings = {
        "all words alike": "selector=all",
        "weighed": "selector=weighed",
        "weighed by the third power": "power=3",
        "weighed within each predicted class": "selector=weighed-of-class",
    }
    found = {name: [each for each in read_results(path) if each["recipe"].endswith(ending)] for name, ending in endings.items()}
    scores = {
        name: {(line["dataset"], line["seed"]): line["f1"] for line in lines}
        for name, lines in {"drawn": kept, **found}.items()
    }
    assert [len(each) for each in scores.values()] == [12] * 5
    drawn, plain, classes = (scores[name] for name in ("drawn", "weighed", "weighed within each predicted class"))
    ahead = [_mean_and_error([f1 - other[key] for key, f1 in classes.items()]) for other in (plain, drawn)]
    assert f"It is {ahead[0]} ahead of them, {ahead[1]} ahead of a draw" in told
    goals = recipe_section("Goals")
    assert f"weighing within classes [another {ahead[1]}](#within-each-predicted-class) over the draw" in goals
    others = [f1 - plain[key] for key, f1 in classes.items() if key[0] != "conll03"]
    assert f"without CoNLL-03 it is {_mean_and_error(others)} ahead of plain weights" in told
    alike = [f1 - scores["all words alike"][key] for key, f1 in classes.items()]
    assert f"Over all words alike it has {_mean_and_error(alike)}." in told
    for name, own in scores.items():
        means = [statistics.mean(f1 for (dataset, _), f1 in own.items() if dataset == each) for each in SETS]
        row = [f"{mean:.2f}" for mean in (*means, statistics.mean(means))]
        row += [""] if name == "drawn" else [_mean_and_error([f1 - scores["drawn"][key] for key, f1 in own.items()], "+")]
        assert " ".join(f"| {name} | {' | '.join(row)} |".split()) in told
    lines = {
        name: [each for each in read_findings(path, "rounds") if each["recipe"].endswith(endings[name])] for name in endings
    }
    lines["drawn"] = [
        line
        for line in read_findings(REPOSITORY / "results/screening-doubts.jsonl", "rounds")
        if "doubtful" not in line["recipe"]
    ]
    errors = {}
    for name, own in lines.items():
        first = {each: [line for line in own if (line["dataset"], line["round"]) == (each, 1)] for each in SETS}
        errors[name] = [
            100 * statistics.mean(line["selected_entity_error"] for line in some)
            / statistics.mean(line["entity_error"] for line in some)
            for some in first.values()
        ]  # fmt: skip
        assert (
            name in ("drawn", "all words alike")
            or f"| {name} | {' | '.join(f'{error:.0f}' for error in errors[name])} |" in told
        )
    spans = {name: f"{min(some):.0f} to {max(some):.0f} %" for name, some in errors.items()}
    assert (
        f"by the scores themselves {spans['weighed']}, within classes {spans['weighed within each predicted class']}, "
        f"drawn {spans['drawn']}" in goals
    )


@pytest.mark.parametrize(
    ("name", "drawn"),
    [("screening-more", "half of them, drawn by the weights of SeqUST"), ("screening-rest", "half of them, drawn")],
)
def test_the_page_on_the_recipe_says_how_wrong_the_selected_words_are(name: str, drawn: str) -> None:
    import statistics

    from sequst.experiments.results import read_findings

    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    rounds = [line for line in read_findings(REPOSITORY / f"results/{name}.jsonl", "rounds") if line["round"] == 1]
    for words, surest, figure in (
        ("all words", False, "entity_error"),
        (drawn, False, "selected_entity_error"),
        ("the surest 60 % of each class", True, "selected_entity_error"),
    ):
        row = [
            statistics.mean(
                line[figure] for line in rounds if line["dataset"] == each and ("top-of-class" in line["recipe"]) == surest
            )
            for each in SETS
        ]
        assert f"| {words} | {' | '.join(f'{error:.1f}' for error in row)} |" in page


def test_the_page_on_the_recipe_says_what_fewer_errors_cost() -> None:
    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    surest = next(row for row in effects_of("screening-more")[1] if "top-of-class" in row["change"])
    costs = " | ".join(f"{-surest['by_dataset'][each]:.1f}" for each in SETS)
    assert f"| what the surest cost in F1 | {costs} |" in page


def test_the_page_on_the_recipe_says_what_three_changes_bring_together() -> None:
    page = " ".join((REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8").split())
    told = page[page.index("## Three, in all combinations") :]
    for row in effects_of("screening-rest", ECE)[1]:
        change = told.index(f"| `{row['change'].replace(' ', '` `')}` |")
        assert told[change:].split("|")[5].strip() == f"{row['effect']:+.2f} ± {row['error']:.2f}"
    long = [
        next(row for row in effects_of(name)[1] if row["change"] == "retune.epochs=10 retune.min_steps=400")
        for name in ("screening-draws", "screening-rest")
    ]
    weights = [row["error"] ** -2 for row in long]
    mean = sum(weight * row["effect"] for weight, row in zip(weights, long, strict=True)) / sum(weights)
    assert f"both together say {mean:.2f} ± {sum(weights) ** -0.5:.2f}" in told


def test_the_page_on_the_recipe_says_what_is_drawn_and_when(tmp_path: Path) -> None:
    from sequst.experiments.results import read_results

    told = recipe_section("What is drawn, and when")
    ece = {row["change"]: row for row in effects_of("screening-selection", ECE)[1]}
    runs, effects = effects_of("screening-selection")
    assert f"{runs} of 48 runs" in told
    path = REPOSITORY / "results/screening-selection.jsonl"
    (tmp_path / "some.jsonl").write_text(
        "".join(line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if "robust.warmup=0" not in line)
    )
    count, some = benchmark("effects").tables_of(tmp_path / "some.jsonl")[LAST]
    assert f"the {count} runs with cross-entropy first" in told
    of_some = {row["change"]: f"{row['effect']:+.2f} ± {row['error']:.2f}" for row in some}
    for row in effects:
        name, errors = row["change"], ece[row["change"]]
        cells = (f"{row['effect']:+.2f} ± {row['error']:.2f}", f"{row['p']:.3f}", of_some.get(name, ""))
        last = f"{errors['effect']:+.2f} ± {errors['error']:.2f}"
        assert " ".join(f"| `{name}` | {' | '.join(cells)} | {last} |".split()) in told
    by_change = {row["change"]: row for row in effects}
    two = [next(row for row in rows if row["change"] == "ensemble.students=2") for rows in (some, effects)]
    ratios = [row["effect"] / row["error"] for row in two]
    assert f"{ratios[0]:.1f} standard errors in a table that was not planned, {ratios[1]:.1f} in the one that was" in told
    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    students = by_change["ensemble.students=2"]
    assert f"[{students['effect']:+.2f} ± {students['error']:.2f} for twice the steps]" in page
    lines = read_results(path)
    found = {
        name: [f"{line['f1']:.2f}" for line in lines if line["dataset"] == name and "robust.warmup=0" in line["recipe"]]
        for name in ("ontonotes", "conll03")
    }
    assert found["ontonotes"] == ["75.39"] * 4
    assert len(found["conll03"]) == 4
    worst, *others = sorted(found["conll03"])
    assert f"the worst of CoNLL-03, {worst}, has it too, and the three others have {float(others[0]):.0f} to" in told
    assert min(line["f1"] for line in lines if line["dataset"] == "conll03") == pytest.approx(float(worst), abs=0.01)


Pairs = dict[str, list[tuple[float, float]]]
"""By set: F1 without capitals and with them, run by run."""
WITH_CAPITALS = ("conll03", "ontonotes")
CAPITALS_OF = {"finetune": "fine-tuning", "sst": "SST", "sequst": "SeqUST"}


def gain_of(pairs: Iterable[tuple[float, float]]) -> str:
    import statistics

    more = [after - before for before, after in pairs]
    return f"{statistics.mean(more):+.2f} ± {statistics.stdev(more) / len(more) ** 0.5:.2f}"


def capitals_row(name: str, pairs: Pairs) -> str:
    import statistics

    means = [f"{statistics.mean(column):.2f}" for each in WITH_CAPITALS for column in zip(*pairs[each], strict=True)]
    return f"| {name} | {' | '.join(means)} | {gain_of(itertools.chain(*pairs.values()))} |"


def held_out_capitals(name: str) -> dict[str, Pairs]:
    """By method."""
    from sequst.experiments.results import read_results

    runs: dict[tuple[str, str, int], dict[bool, float]] = {}
    for line in read_results(REPOSITORY / f"results/{name}.jsonl"):
        runs.setdefault((line["method"], line["dataset"], line["seed"]), {})["capitals=1" in line["recipe"]] = line["f1"]
    found: dict[str, Pairs] = {}
    for (method, dataset, _), f1 in runs.items():
        found.setdefault(method, {each: [] for each in WITH_CAPITALS})[dataset].append((f1[False], f1[True]))
    return found


def test_the_page_on_the_recipe_says_what_capitals_bring_to_held_out_sentences() -> None:
    told = recipe_section("Capitals")
    large, small = (held_out_capitals(name) for name in ("screening-capitals", "screening-capitals-minilm"))
    for method, name in CAPITALS_OF.items():
        assert capitals_row(name, large[method]) in told
    every = [pair for pairs in large.values() for found in pairs.values() for pair in found]
    assert f"Over all {len(every)} pairs that is {gain_of(every).removeprefix('+')}" in told
    assert len(every) == 18
    assert capitals_row("fine-tuning, `minilm`", small["finetune"]) in told
    assert all(after > before for found in small["finetune"].values() for before, after in found)
    [(before, after)] = small["sequst"]["conll03"]
    assert f"SeqUST goes from {before:.2f} to {after:.2f} on CoNLL-03 with seed 12" in told


def test_the_page_on_the_recipe_says_what_capitals_bring_on_test() -> None:
    import statistics

    from sequst.experiments.results import read_results

    told = recipe_section("Capitals")
    plain = scores_of("best-10shot")
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in read_results(REPOSITORY / "results/capitals.jsonl"):
        if line["encoder"] == "mpnet":
            lines.setdefault(line["experiment"], []).append(line)
    found: dict[str, Pairs] = {method: {each: [] for each in WITH_CAPITALS} for method in CAPITALS_OF}
    for line in lines["best-10shot"]:
        before = plain[line["dataset"], line["method"]][line["seed"]]
        found[line["method"]][line["dataset"]].append((before, line["f1"]))
    for method, name in CAPITALS_OF.items():
        assert [len(pairs) for pairs in found[method].values()] == [5, 5]
        assert capitals_row(name, found[method]) in told
    more = [after - before for pairs in found.values() for before, after in pairs["ontonotes"]]
    gains = f"in {sum(each > 0 for each in more)} of {len(more)} pairs"
    assert f"by {statistics.mean(more):.1f} in the mean of five seeds, {gains}" in told
    whole = {line["dataset"]: line["f1"] for line in lines["best-full-data"]}
    full = scores_of("best-full-data")
    ends = " | ".join(f"{f1:.2f}" for each in WITH_CAPITALS for f1 in (full[each, "finetune"][12], whole[each]))
    assert f"| all of the training set, one seed | {ends} | |" in told
    few, all_text = (
        {line["method"]: line["f1"] for line in lines[name] if (line["dataset"], line["seed"]) == ("conll03", 12)}
        for name in ("best-10shot", "best-full-pools")
    )
    changes = [f"{name} {{}}from {few[m]:.2f} to {all_text[m]:.2f}" for m, name in (("sst", "SST"), ("sequst", "SeqUST"))]
    assert " and ".join(changes).format("goes ", "") in recipe_section("Full pools")


def test_pages_say_what_capitals_bring_to_fine_tuning() -> None:
    """What other pages say of capitals is what these tables have for fine-tuning."""
    found = [held_out_capitals(name)["finetune"] for name in ("screening-capitals", "screening-capitals-minilm")]
    gains = [float(gain_of(itertools.chain(*pairs.values())).split()[0]) for pairs in found]
    on_test = float(next(line for line in recipe_section("Capitals").split("| fine-tuning |")[2:3]).split("|")[4].split()[0])
    told = f"{min(*gains, on_test):.1f} to {max(*gains, on_test):.1f} points"
    for name in ("README.md", "docs/how-to/choose-an-encoder.md", "docs/concepts/recipe.md"):
        assert told in (REPOSITORY / name).read_text(encoding="utf-8")


def test_the_page_on_the_recipe_says_what_each_part_of_the_defaults_brings() -> None:
    from sequst.evaluation.paired import t_tail

    told = recipe_section("The parts of the defaults")
    runs, parts = effects_of("best-parts")
    first, ece = ({row["change"]: row for row in effects_of("best-parts", of)[1]} for of in (FIRST, ECE))

    def cell(row: dict[str, Any]) -> str:
        return f"{row['effect']:+.2f} ± {row['error']:.2f}"

    for row in parts:
        change = row["change"]
        of_first = cell(first[change]) if change in ("abstain=false", "successions=0") else ""
        row_told = f"| `{change}` | {cell(row)} | {row['p']:.3f} | {of_first} | {cell(ece[change])} |"
        assert " ".join(row_told.split()) in told
    ours = [row for row in parts if row["change"] in ("selection.selector=all", "gcr.weight=0", "robust.loss=cross-entropy")]
    worth, error = -sum(row["effect"] for row in ours), sum(row["error"] ** 2 for row in ours) ** 0.5
    freedom = runs - len(parts) - len(SETS)
    assert f"together they are worth {worth:.2f} ± {error:.2f} (p = {t_tail(worth / error, freedom):.3f})" in told
    goals = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8").partition("## Goals")[2]
    assert f"[together worth {worth:.2f} ± {error:.2f}]" in goals
    all_words = first["selection.selector=all"]
    assert f"are {all_words['effect']:.2f} ± {all_words['error']:.2f} better" in told


def test_the_page_on_the_recipe_says_what_the_best_round_on_dev_brings() -> None:
    import statistics

    told = recipe_section("The parts of the defaults")

    def gain(name: str) -> tuple[int, float, str]:
        """(runs, what the round that dev chooses has more than the last, its standard error) where there were five rounds."""
        from sequst.experiments.results import read_findings

        runs: dict[tuple[Any, ...], dict[int, tuple[float, float]]] = {}
        for line in read_findings(REPOSITORY / f"results/{name}.jsonl", "rounds"):
            if line.get("f1") is not None and line["method"] in ("sst", "sequst"):
                which = (line["dataset"], line["method"], line["recipe"], line["seed"])
                runs.setdefault(which, {})[line["round"]] = (line["teacher_f1"], line["f1"])
        apart = [rounds[chosen_round(rounds)][1] - rounds[5][1] for rounds in runs.values() if len(rounds) == 6]
        return len(apart), statistics.mean(apart), f"{statistics.stdev(apart) / len(apart) ** 0.5:.2f}"

    def chosen_round(rounds: dict[int, tuple[float, float]], patience: int = 2) -> int:
        best = risen = 0
        for number in range(1, 6):
            risen = number if rounds[number][0] > rounds[best][0] else risen
            best = number if rounds[number][0] >= rounds[best][0] else best
            if number - risen >= patience:
                break
        return best

    runs, more, error = gain("best-parts")
    assert f"in the {runs} that went through all five rounds" in told
    assert f"has {more:.2f} ± {error} more than the last" in told
    runs, more, error = gain("best-10shot")
    assert f"it has {-more:.2f} ± {error} less ({runs} runs of SST and SeqUST)" in told
    runs, more, error = gain("best-10shot-reading")
    assert f"in the earlier defaults {-more:.2f} ± {error} less ({runs} runs)" in told


def test_the_page_on_the_recipe_says_what_every_round_of_the_defaults_brings() -> None:
    import statistics

    told, later = recipe_section("What the defaults reach"), []
    both = {method: round_scores("best-10shot", method) for method in TAUGHT}
    for method, name in (("sst", "SST"), ("sequst", "SeqUST")):
        scores = {number: {key: found[key] for key in both["sst"][0]} for number, found in both[method].items()}
        assert {len(found) for found in scores.values()} == {23}
        row = " | ".join(f"{statistics.mean(scores[number].values()):.2f}" for number in range(6))
        assert f"| {name} | {row} |" in told
        later.append(
            [
                statistics.mean(f1 - scores[1][key] for key, f1 in scores[5].items() if key[0] != left_out)
                for left_out in ("", "conll03")
            ]
        )
    (sst, sst_less), (ours, ours_less) = later
    drawn = round_scores("best-10shot-drawn")
    between = statistics.mean(f1 - drawn[1][key] for key, f1 in drawn[5].items() if key[0] != "conll03")
    known = sum(dataset != "conll03" for dataset, _ in drawn[5])
    assert f"with words drawn {between:.1f} too, in {known} runs" in told
    assert f"Later ones bring SST {sst:.1f} and SeqUST {ours:.1f} on average; without CoNLL-03 " in told
    assert f"without CoNLL-03 {sst_less:.1f} and {ours_less:.1f}, so there" in told


def test_the_page_on_the_recipe_says_what_hiding_words_brings() -> None:
    import statistics

    from sequst.evaluation.paired import paired_test

    page = " ".join((REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8").split())
    seen, hidden = round_scores("recipe"), round_scores("hidden-words")
    both = sorted(seen[0].keys() & hidden[0].keys())
    for name, way in (("all words seen", seen), ("15 % hidden", hidden)):
        means = [f"{statistics.mean(way[n][key] for key in both):.2f}" for n in range(6)]
        assert f"| {name} | {' | '.join(means)} |" in page
    gain = paired_test([hidden[5][key] for key in both], [seen[5][key] for key in both])
    assert f"{gain.difference:.2f} points (p = {gain.p:.3f}, a paired t-test over {gain.pairs} runs)" in page
    for name, number in (("fine-tuning", 0), ("SeqUST", 5)):
        means = [statistics.mean(f1 for (of, _), f1 in hidden[number].items() if of == each) for each in SETS]
        assert f"| {name} | {' | '.join(f'{mean:.2f}' for mean in means)} | {statistics.mean(means):.2f} |" in page

    assert f"| {' | '.join(format(mean_finding('hidden-words', 'reliability', 'ece', each), '.1f') for each in SETS)} |" in page
    for score in ("plain confidence", "confidence", "certainty", "confidence x certainty"):
        kinds = ({"of": "words", "score": score}, {"of": "entities", "score": f"mean {score}"})
        told = [
            statistics.mean(mean_finding("hidden-words", "detection", "auroc", each, **kind) for each in SETS) for kind in kinds
        ]
        assert f"| {told[0]:.3f} | {told[1]:.3f} |" in page


def test_the_page_on_the_recipe_says_what_reading_first_brings() -> None:
    import statistics

    from sequst.evaluation.paired import paired_test

    page = " ".join((REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8").split())
    one, best = round_scores("one-teacher"), round_scores("best-10shot-reading")
    both = sorted(one[0].keys() & best[0].keys())
    assert len(both) == 30
    for name, way in (("one teacher, as the encoder is", one), ("three, that have read the text", best)):
        means = [f"{statistics.mean(way[n][key] for key in both):.2f}" for n in range(6)]
        assert f"| {name} | {' | '.join(means)} |" in page
    gains = {n: paired_test([best[n][key] for key in both], [one[n][key] for key in both]) for n in (0, 2, 4, 5)}
    by_set = [[statistics.mean(way[5][key] for key in both if key[0] == each) for each in SETS] for way in (best, one)]
    assert gains[0].p < 0.001
    assert f"The first teacher is {gains[0].difference:.2f} points better (p < 0.001)" in page
    assert f"After two rounds {gains[2].difference:.2f} of them are left (p = {gains[2].p:.3f})" in page
    assert f"after the last {gains[5].difference:.2f} (p = {gains[5].p:.3f} over 30 pairs" in page
    assert f"{paired_test(*by_set).p:.2f} by the means of the sets, and {gains[4].p:.2f} over the pairs a round earlier" in page
    before = round_scores("one-teacher-earlier")[5]
    again = statistics.mean(one[5][key] - f1 for key, f1 in before.items())
    assert f"moved {len(before)} of the 30 by {again:.2f} on average" in page


def test_the_page_on_the_recipe_says_what_reading_longer_brings() -> None:
    import statistics

    from sequst.experiments.results import read_findings, read_results

    page = " ".join((REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8").split())
    path = REPOSITORY / "results/screening-reading.jsonl"

    def by_epochs(lines: list[dict[str, Any]]) -> dict[str, list[float]]:
        found: dict[str, dict[str, float]] = {}
        for line in lines:
            if line["seed"] == 42:
                asked = re.search(r"adaptation\.epochs=(\d+)", line["recipe"])
                found.setdefault(asked[1] if asked else "5", {})[line["dataset"]] = line["f1"]
        return {epochs: [scores[each] for each in SETS] for epochs, scores in found.items()}

    lines = read_results(path)
    assert f"The {len(lines)} of 36 runs that had ended" in page
    assert {line["recipe"] for line in lines if line["seed"] != 42} == {
        "selection.selector=sampled successions=0 abstain=false adapt=true max_rounds=2 ensemble.teachers=1"
    }
    last = by_epochs(lines)
    first = by_epochs([line for line in read_findings(path, "rounds") if line["round"] == 0])
    for epochs, scores in last.items():
        row = [*scores, statistics.mean(scores)]
        assert f"| {epochs} | {' | '.join(f'{f1:.2f}' for f1 in row)} |" in page

    def gain(found: dict[str, list[float]], epochs: str) -> tuple[float, float]:
        apart = [f1 - other for f1, other in zip(found[epochs], found["5"], strict=True)]
        return statistics.mean(apart), statistics.stdev(apart) / len(apart) ** 0.5

    (more, of_more), (most, of_most) = (gain(last, epochs) for epochs in ("20", "80"))
    assert f"Twenty are {more:.2f} ± {of_more:.2f} better than five, eighty {-most:.2f} ± {of_most:.2f} worse" in page
    (more, of_more), (most, of_most) = (gain(first, epochs) for epochs in ("20", "80"))
    assert f"of the first teachers it is {more:.2f} ± {of_more:.2f} and {most:.2f} ± {of_most:.2f}" in page


def scores_of(name: str, experiment: str = "") -> dict[tuple[str, str], dict[int, float]]:
    """(dataset, method): F1 by seed; of one experiment of the file, or of all."""
    from sequst.experiments.results import read_results

    found: dict[tuple[str, str], dict[int, float]] = {}
    for line in read_results(REPOSITORY / f"results/{name}.jsonl"):
        if line["experiment"] == (experiment or line["experiment"]):
            found.setdefault((line["dataset"], line["method"]), {})[line["seed"]] = line["f1"]
    return found


def full_data(name: str = "best-full-data") -> list[float]:
    """F1 with all of the training set, by set, and on average."""
    import statistics

    from sequst.experiments.results import read_results

    full = {line["dataset"]: line["f1"] for line in read_results(REPOSITORY / f"results/{name}.jsonl")}
    return [*(full[each] for each in SETS), statistics.mean(full.values())]


def set_means(found: dict[tuple[str, str], dict[int, float]], method: str, seeds: Collection[int]) -> list[float]:
    """Of every set, and on average."""
    import statistics

    means = [statistics.mean(found[each, method][seed] for seed in seeds) for each in SETS]
    return [*means, statistics.mean(means)]


def recipe_section(name: str) -> str:
    """Of the page on the recipe, down to the next heading of its level, on one line."""
    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    begin = page.index(f"## {name}\n")
    return " ".join(page[begin : page.find("\n## ", begin)].split())


@pytest.mark.parametrize(
    ("name", "section", "full"),
    [
        ("best-10shot", "What the defaults reach", "best-full-data"),
        ("best-10shot-reading", "What the earlier defaults reached", "best-full-data-earlier"),
    ],
)
def test_the_pages_say_what_the_defaults_reach(name: str, section: str, full: str) -> None:
    import statistics

    from sequst.evaluation.paired import paired_test

    seeds = (12, 21, 42, 87, 100)
    texts = [recipe_section(section), *([README] if name == "best-10shot" else [])]
    found, names = scores_of(name), {"finetune": "fine-tuning", "sst": "SST", "sequst": "SeqUST"}
    assert {tuple(sorted(found[each, method])) for each in SETS for method in names} == {seeds}
    for method, called in names.items():
        runs = [list(found[each, method].values()) for each in SETS]
        row = [called, *(f"{statistics.mean(f1):.2f} ± {statistics.stdev(f1):.2f}" for f1 in runs)]
        row.append(f"{statistics.mean(map(statistics.mean, runs)):.2f}")
        assert all(f"| {' | '.join(row)} |" in text for text in texts)
    for method, called in (("sst", "SST"), ("finetune", "fine-tuning")):
        pairs = [[(found[each, "sequst"][seed], f1) for seed, f1 in found[each, method].items()] for each in SETS]
        gains = [paired_test(*zip(*some, strict=True)) for some in (*pairs, [pair for some in pairs for pair in some])]
        row = [f"{gain.difference:+.2f} ({gain.p:.3f})" for gain in gains]
        assert f"| SeqUST less {called} (p) | {' | '.join(row)} |" in texts[0]
    most, few, ours = full_data(full), set_means(found, "finetune", seeds), set_means(found, "sequst", seeds)
    row = [f"{f1:.2f}" for f1 in most]
    assert all(f"| all of the training set, one seed | {' | '.join(row)} |" in text for text in texts)
    shares = [f"{100 * (b - a) / (c - a):.0f} %" for a, b, c in zip(few, ours, most, strict=True)]
    assert f"| of the way there, SeqUST goes | {' | '.join(shares)} |" in texts[0]
    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    own = [mean_finding(name, "reliability", "ece", each, method="sequst") for each in SETS]
    assert f"| {' | '.join(f'{ece:.1f}' for ece in own)} |" in page
    readme = " ".join(README.split())
    if name == "best-10shot":
        beyond = [each for each, gain in zip(SETS, gains, strict=False) if gain.p < 0.05]  # of fine-tuning, which came last
        assert set(SETS) - set(beyond) == {"mit_movie"}
        assert f"is worth {ours[-1] - few[-1]:.1f} points, beyond chance on five sets of six: {shares[-1]}" in readme
        movie = gains[SETS.index("mit_movie")]
        assert f"On MIT Movie it is {movie.difference:.2f} (p = {movie.p:.3f})" in texts[0]
        assert (
            f"is {min(own):.1f} to {max(own):.1f} % by set, {statistics.mean(own):.1f} % on average, in these 30 runs" in readme
        )
        assert f"| {own[-1]:.1f} | {statistics.mean(own):.2f} |" in page
        drawn = [mean_finding("best-10shot-drawn", "reliability", "ece", each) for each in SETS]
        listed = f"{', '.join(f'{ece:.1f}' for ece in drawn[:-1])} and {drawn[-1]:.1f}"
        assert f"In the 24 runs with words drawn: {listed}, on average {statistics.mean(drawn):.2f}." in " ".join(page.split())
        third = [mean_finding("third-power", "reliability", "ece", each, experiment=name) for each in SETS]
        listed = f"{', '.join(f'{ece:.1f}' for ece in third[:-1])} and {third[-1]:.1f}"
        assert f"In the 30 runs with the third power: {listed}, on average {statistics.mean(third):.2f}." in page
        of_three = ", ".join(f"{third[SETS.index(each)]:.1f}" for each in ("conll03", "mit_movie", "snips"))
        assert f"with the third power {of_three} %" in recipe_section("Goals")
    else:
        teachers = [round_scores(name, method)[0] for method in ("sst", "sequst")]
        assert sum(f1 != teachers[1][key] for key, f1 in teachers[0].items()) == 3
        assert "in three of the thirty pairs" in texts[0]
        assert f"[{ours[-1] - few[-1]:.1f} points](docs/concepts/recipe.md#what-the-earlier-defaults-reached)" in readme


def test_the_pages_say_what_decoding_brings() -> None:
    import statistics

    from sequst.evaluation.paired import paired_test

    told = recipe_section("Tags that follow one another")
    found = [measured(name)["gain"] for name in ("decoding", *(f"decoding-mpnet-{way}" for way in ("finetune", "sequst")))]
    for strength in found[0]:
        cells = []
        for gains in found:
            for way in ("over none", "of abstaining"):
                one = gains[strength][way]
                cells.append("" if (strength, way) == ("0", "over none") else f"{one['mean']:+.2f} ± {one['error']:.2f}")
        assert " ".join(f"| {strength} | {' | '.join(cells)} |".split()) in told
    now, before, bare = (scores_of(name) for name in ("best-10shot", "best-10shot-reading", "one-teacher"))

    def gain(method: str, other: dict[tuple[str, str], dict[int, float]], of: str) -> Any:
        pairs = [(f1, other[each, of][seed]) for each in SETS for seed, f1 in now[each, method].items()]
        return paired_test(*zip(*pairs, strict=True))

    drawn = scores_of("best-10shot-drawn")
    pairs = [(f1, bare[each, "sequst"][seed]) for each in SETS for seed, f1 in drawn[each, "sequst"].items()]
    tuned, same = gain("finetune", before, "finetune"), paired_test(*zip(*pairs, strict=True))
    assert max(tuned.p, same.p) < 0.001
    for section in ("What is better left out", "What the defaults reach"):
        assert f"{tuned.difference:.2f} (p < 0.001)" in recipe_section(section)
    assert f"{same.difference:.2f} (p < 0.001)" in recipe_section("What is better left out")
    reach = recipe_section("What the defaults reach")
    earlier = gain("sequst", before, "sequst")
    assert earlier.p < 0.001
    assert f"SeqUST by {earlier.difference:.2f} (p < 0.001)" in reach
    others, third = [], scores_of("third-power", "best-10shot")
    for name, found in (("third power", third), ("words drawn, four seeds", drawn)):
        runs = [list(found[each, "sequst"].values()) for each in SETS]
        row = [*(f"{statistics.mean(f1):.2f} ± {statistics.stdev(f1):.2f}" for f1 in runs)]
        row.append(f"{statistics.mean(map(statistics.mean, runs)):.2f}")
        assert f"| SeqUST, {name} | {' | '.join(row)} |" in reach
        pairs = [(now[each, "sequst"][seed], f1) for each in SETS for seed, f1 in found[each, "sequst"].items()]
        others.append((paired_test(*zip(*pairs, strict=True)), len(pairs)))
    (cubed, many), (weighed, fewer) = others
    assert (
        f"the defaults have {cubed.difference:.2f} (p = {cubed.p:.3f}) over the third power in {many} pairs, "
        f"{weighed.difference:.2f} (p = {weighed.p:.3f}) over a draw in {fewer}." in reach
    )
    first = [set_means(found, "sequst", (12, 21))[-1] for found in (now, third, drawn)]
    assert [f"{first[0] - other:.1f}" for other in first[1:]] == ["0.3", "0.3"]
    assert "With the first two seeds alone it had looked like 0.3." in reach
    most = full_data(), full_data("best-full-data-earlier")
    assert f"gains nothing by it ({most[0][-1]:.2f}, without {most[1][-1]:.2f})" in reach
    ahead = [now["conll03", "sequst"][seed] - f1 for seed, f1 in now["conll03", "sst"].items() if seed != 12]
    assert f"SST has {now['conll03', 'sst'][12]:.2f} there and SeqUST {now['conll03', 'sequst'][12]:.2f}" in reach
    assert f"with the four others SeqUST is {statistics.mean(ahead):.1f} ahead" in reach
    more = [gain("sequst", before, of).difference for of in ("finetune", "sst")]
    assert f"SeqUST has {more[0]:.1f} and {more[1]:.1f} more" in reach
    assert f"SeqUST is {more[0]:.1f} above what fine-tuning had then" in " ".join(README.split())


def test_the_page_on_the_recipe_says_what_doubtful_pseudo_labels_bring() -> None:
    import statistics

    from sequst.experiments.results import read_results

    told = recipe_section("What is better left out")
    found: dict[str, dict[tuple[str, int], float]] = {}
    for line in read_results(REPOSITORY / "results/screening-doubts.jsonl"):
        way = line["recipe"].partition("selection.doubtful=")[2] or "kept"
        found.setdefault(way, {})[line["dataset"], line["seed"]] = line["f1"]
    assert [len(each) for each in found.values()] == [12, 12, 12]
    for way, scores in found.items():
        means = [statistics.mean(f1 for (of, _), f1 in scores.items() if of == each) for each in SETS]
        row = " | ".join(f"{mean:.2f}" for mean in (*means, statistics.mean(means)))
        assert f"| {way} | {row} |" in told
        apart = [f1 - found["kept"][key] for key, f1 in scores.items()]
        if way != "kept":
            assert _mean_and_error(apart, "+") in told


def test_the_goals_of_the_recipe_stand_beside_what_was_found() -> None:
    import statistics

    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    goals = page[page.index("## Goals") :]
    now, before = scores_of("best-10shot"), scores_of("best-10shot-reading")
    seeds, movie, most = (12, 21, 42, 87, 100), SETS.index("mit_movie"), full_data()
    few, sst, ours = (set_means(now, method, seeds) for method in ("finetune", "sst", "sequst"))
    bare, bare_sst = (set_means(before, method, seeds) for method in ("finetune", "sst"))
    bare_most = full_data("best-full-data-earlier")
    of_paper = {
        method: float(re.findall(rf"\| {name} \|.*\| ([\d.]+) \|", README)[-1])  # held to the results by another test
        for method, name in (("finetune", "fine-tuning"), ("sst", "SST"))
    }
    behind = [each for each, a, b in zip(SETS, ours, sst, strict=False) if a < b]
    assert behind == ["mit_movie", "conll03"]
    wrong = [
        [mean_finding("best-10shot", "selection", "entity_error", each, method="sequst", strategy=s) for each in SETS]
        for s in ("both", "none")
    ]
    left = [100 * some / all_ for some, all_ in zip(*wrong, strict=True)]
    of_third = {"experiment": "best-10shot", "method": "sequst"}
    cubed = [
        100
        * mean_finding("third-power", "selection", "entity_error", each, strategy="both", **of_third)
        / mean_finding("third-power", "selection", "entity_error", each, strategy="none", **of_third)
        for each in SETS
    ]
    assert sum(share <= 50 for share in cubed) == 3
    assert f"the third power has {min(cubed):.0f} to {max(cubed):.0f} %, half or less on three sets of six" in goals
    ece = [
        mean_finding("best-10shot", "reliability", "ece", each, method="sequst") for each in ("conll03", "mit_movie", "snips")
    ]

    def way(of: list[float], to: list[float], place: int) -> str:
        return f"{100 * (ours[place] - of[place]) / (to[place] - of[place]):.0f} %"

    def auroc(of: str, score: str) -> str:
        kind = {"method": "sequst", "of": of, "score": score}
        return f"{statistics.mean(mean_finding('best-10shot', 'detection', 'auroc', each, **kind) for each in SETS):.3f}"

    for row in (
        f"| SeqUST over fine-tuning, average | 7.99 | {ours[-1] - few[-1]:.2f} | {ours[-1] - bare[-1]:.2f} | "
        f"{ours[-1] - of_paper['finetune']:.2f} | fine-tuning stands {few[-1] - 69.79:.1f} points higher than the paper's",
        f"| SeqUST over SST, average | 3 | {ours[-1] - sst[-1]:.2f} | {ours[-1] - bare_sst[-1]:.2f} | "
        f"{ours[-1] - of_paper['sst']:.2f} |",
        f"average | 42 % | {way(few, most, -1)} | {way(bare, bare_most, -1)} | | OntoNotes, {way(few, most, 5)}:",
        f"MIT Movie | 42 % | {way(few, most, movie)} | {way(bare, bare_most, movie)} |",
        f"| by {sst[4] - ours[4]:.2f} and {sst[movie] - ours[movie]:.2f}, within chance |",
        f"| CoNLL-03 | 79.1 | {ours[4]:.2f} |",
        f"| SNIPS | 90 | {ours[0]:.2f} |",
        f"| half | {min(left):.0f} to {max(left):.0f} % |",
        f"| 3 % | {', '.join(f'{each:.1f}' for each in ece)} % |",
        f"| {auroc('words', 'confidence')} against {auroc('words', 'plain confidence')} of words, "
        f"{auroc('entities', 'mean confidence')} against {auroc('entities', 'mean plain confidence')} of entities |",
    ):
        assert row in goals, row


def test_the_page_on_the_recipe_says_what_more_text_brings() -> None:
    import statistics

    from sequst.evaluation.paired import paired_test

    told, apart, chances = recipe_section("Full pools"), [], []
    few, all_ = scores_of("best-10shot"), scores_of("best-full-pools")
    places = [each for each in SETS if each != "ontonotes"]
    assert set(all_) == {(each, method) for each in places for method in TAUGHT}
    for name, method in (("SST", "sst"), ("SeqUST", "sequst")):
        row = [found[each, method][12] for each in places for found in (few, all_)]
        assert f"| {name} | {' | '.join(f'{f1:.2f}' for f1 in row)} |" in told
        apart.append([less - many for less, many in zip(row[::2], row[1::2], strict=True)])
        chances.append(paired_test(row[::2], row[1::2]).p)
    assert sum(less > 0 for some in apart for less in some) == 9
    others = statistics.mean(less for some in apart for less in some[:-1])
    assert places[-1] == "conll03"
    assert (
        f"F1 is less in nine pairs of ten, by {others:.1f} on average without CoNLL-03, and there by {apart[0][-1]:.1f} and "
        f"{apart[1][-1]:.1f}." in told
    )
    assert f"within chance (p = {chances[0]:.2f} with SST, {chances[1]:.2f} with SeqUST)" in told

    def of_round(name: str, kind: str, method: str, number: int, dataset: str) -> float:
        return mean_finding(f"best-{name}", "rounds", kind, dataset, method=method, round=number, seed=12)

    def of_conll(name: str, kind: str, method: str, number: int) -> str:
        return f"{of_round(name, kind, method, number, 'conll03'):.1f}"

    both = ("full-pools", "10shot")
    more = []
    for each in places[:-1]:
        for method in TAUGHT:
            many, less = (of_round(name, "agreement", method, 2, each) for name in both)
            more.append(many - less)
    assert [sum(each > 0 for each in more), len(more)] == [7, 8]
    assert f"they agree more too in seven cases of eight, by {statistics.mean(more):.1f} points on average" in told

    agreed = [of_conll(name, "agreement", method, 2) for name in ("10shot", "full-pools") for method in TAUGHT]
    assert "on {} % of the words with SST, {} with SeqUST, and on {} and {} of the larger pool's".format(*agreed) in told
    wrong = [
        of_conll(name, "entity_error", method, number)
        for name in ("10shot", "full-pools")
        for method, number in (("sst", 1), ("sst", 5), ("sequst", 5))
    ]
    assert (
        "from {} % in the first round to {} and {} in the last, and with all text from {} only to {} and {}".format(*wrong)
        in told
    )


def test_the_page_on_the_recipe_says_how_long_students_of_much_text_should_learn() -> None:
    import statistics

    from sequst.experiments.results import read_results

    told = recipe_section("Full pools")
    found: dict[tuple[int, int], dict[tuple[str, int], float]] = {}
    for line in read_results(REPOSITORY / "results/screening-pools.jsonl"):
        limit = re.findall(r"max_steps=(\d+)", line["recipe"])
        as_many = "epochs=1" in line["recipe"] or line["pool"] == 4000  # as 4,000 sentences four times in batches of 32
        steps = int(limit[0]) if limit else 500 if as_many else 1375
        found.setdefault((line["pool"], steps), {})[line["dataset"], line["seed"]] = line["f1"]
    runs = [(each, seed) for each in ("conll03", "snips") for seed in (12, 42)]
    names = {
        (4000, 250): "4,000 sentences, 250 steps",
        (4000, 500): "4,000 sentences, 500 steps: four passes",
        (11000, 500): "11,000 sentences, 500 steps",
        (11000, 1375): "11,000 sentences, 1,375 steps: four passes",
    }
    for which, name in names.items():
        cells = [f"{found[which][run]:.2f}" if run in found[which] else "" for run in runs]
        assert " ".join(f"| {name} | {' | '.join(cells)} |".split()) in told

    def gain(dataset: str, more: tuple[int, int], less: tuple[int, int]) -> float:
        return statistics.mean(found[more][dataset, seed] - found[less][dataset, seed] for seed in (12, 42))

    few, capped, passes = (4000, 500), (11000, 500), (11000, 1375)
    by = [gain(each, more, few) for each in ("snips", "conll03") for more in (capped, passes)]
    assert f"by {by[0]:.1f} points with as many steps and by {by[1]:.1f} with as many passes" in told
    assert f"it is {by[2]:.1f} more and {-by[3]:.1f} less" in told
    fewer = [gain(each, capped, passes) for each in ("conll03", "snips")]
    assert f"gains {fewer[0]:.1f} on the one and loses {-fewer[1]:.1f} on the other" in told


def test_the_page_on_the_recipe_says_what_other_methods_reach() -> None:
    import statistics

    from sequst.evaluation.paired import paired_test

    told, found = recipe_section("The other methods"), scores_of("best-10shot")
    names = {"finetune": "fine-tuning", "vat": "VAT", "seqvat": "SeqVAT", "cvt": "CVT", "sst": "SST", "sequst": "SeqUST"}
    for method, name in names.items():
        runs = [list(found[each, method].values()) for each in SETS]
        row = [*(f"{statistics.mean(f1):.2f} ± {statistics.stdev(f1):.2f}" for f1 in runs)]
        row.append(f"{statistics.mean(map(statistics.mean, runs)):.2f}")
        assert f"| {name} | {' | '.join(row)} |" in told
    first = {method: set_means(found, method, (12,)) for method in ("metast", "sst", "sequst")}
    for method, name in (("metast", "MetaST"), ("sst", "SST"), ("sequst", "SeqUST")):
        assert f"| {name}, seed 12 | {' | '.join(f'{f1:.2f}' for f1 in first[method])} |" in told
    seeds = {
        method: {each: tuple(sorted(found[each, method])) for each in SETS} for method in ("vat", "seqvat", "cvt", "metast")
    }
    five, four = (12, 21, 42, 87, 100), (12, 21, 42, 87)
    assert set(seeds["vat"].values()) == {five}
    assert set(seeds["seqvat"].values()) == {four}
    assert seeds["cvt"] == {each: five if each in ("conll03", "ontonotes") else four for each in SETS}
    assert set(seeds["metast"].values()) == {(12,)}
    for method in ("vat", "seqvat", "cvt"):
        pairs = [[(found[each, "sequst"][seed], f1) for seed, f1 in found[each, method].items()] for each in SETS]
        gains = [paired_test(*zip(*some, strict=True)) for some in (*pairs, [pair for some in pairs for pair in some])]
        assert all(gain.difference > 0 for gain in gains)
        row = [f"{gain.difference:+.2f} ({gain.p:.3f})" for gain in gains]
        assert f"| over {names[method]} | {' | '.join(row)} |" in told
    gain = paired_test(first["sequst"][:6], first["metast"][:6])
    assert min(a - b for a, b in zip(first["sequst"], first["metast"], strict=True)) > 0
    assert f"SeqUST has {gain.difference:.2f} (p = {gain.p:.3f}, six pairs) more" in told
    assert f"SST {first['sst'][-1] - first['metast'][-1]:.2f}." in told
    rounds = round_scores("best-10shot", "metast")
    two = statistics.mean(rounds[2].values())
    assert f"After two rounds it had {two:.2f}, so the other three bring it {first['metast'][-1] - two:.1f}:" in told
    conll, onto = (rounds[5][each, 12] - rounds[2][each, 12] for each in ("conll03", "ontonotes"))
    below = rounds[0]["ontonotes", 12] - rounds[5]["ontonotes", 12]
    assert f"CoNLL-03 gains {conll:.1f} by them, and OntoNotes loses {-onto:.1f} and ends {below:.1f} below fine-tuning" in told
    lost = []
    for method in ("vat", "seqvat", "cvt"):
        pairs = [f1 - found[each, "finetune"][seed] for each in SETS for seed, f1 in found[each, method].items()]
        lost.append(-statistics.mean(pairs))
        beyond = abs(statistics.mean(pairs)) > 2 * statistics.stdev(pairs) / len(pairs) ** 0.5
        assert beyond is (method != "vat")
    assert f"SeqVAT and CVT take away {lost[1]:.1f} and {lost[2]:.1f};" in told


def test_the_page_on_the_recipe_says_what_confidences_mean() -> None:
    import json

    page = (REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8")
    measured = json.loads((REPOSITORY / "benchmarks/results/calibration.json").read_text(encoding="utf-8"))["data"]
    ways = ("as they are", "one function for all", "a shift for every type", "another dev set", "random sentences")
    for way in (*ways, "1,000 random sentences"):
        means = [found["mean"][way] for found in measured.values()]
        figures = " | ".join(f"{each['ece']:.1f} | {each['auroc']:.3f}" for each in means)
        assert f"| {way} | {figures} |" in page
    chance = " |  | ".join(f"{found['mean']['a shift for every type']['chance']:.1f}" for found in measured.values())
    assert f"| by chance alone | {chance} |" in page


def test_the_page_on_the_recipe_says_what_a_dev_set_flatters(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import statistics

    from sequst.calibration.calibrate import SMALL
    from sequst.training.settings import Settings

    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    script = importlib.import_module("optimism")
    page = " ".join((REPOSITORY / "docs/concepts/recipe.md").read_text(encoding="utf-8").split())
    found = measured("optimism")
    screened = [REPOSITORY / f"results/screening-{name}.reliability.jsonl" for name in ("draws", "more", "rest")]
    assert script.shifts(script.read(screened)) == {key: pytest.approx(value) for key, value in found["groups"].items()}
    groups = [each for seeds in found["groups"].values() for each in seeds.values()]
    assert round(-found["shift"], 2) == Settings().optimism
    assert f"in the {found['runs']} runs" in page
    assert f"a shift of {found['shift']:.2f} ± {found['error']:.2f} of the logits would have been right ({len(groups)}" in page
    by_set = sorted(statistics.mean(seeds.values()) for seeds in found["groups"].values())
    assert f"{by_set[0]:.2f} to {by_set[-1]:.2f} by set" in page
    assert f"more than {SMALL:,} entities are found less, as {SMALL:,} / n" in page
    for method, name in (("finetune", "fine-tuning"), ("sst", "SST"), ("sequst", "SeqUST")):
        for way, told in (("as_it_is", name), ("shifted", "shifted")):
            row = [found["judged"][method]["by_dataset"][each][way] for each in SETS]
            assert f"| {told} | {' | '.join(f'{ece:.1f}' for ece in row)} | {statistics.mean(row):.2f} |" in page
        new = found["judged"][method]["new_dev_sets"]
        goes = "goes from" if method == "sequst" else "from"
        assert f"{name} {goes} {new['as_it_is']:.2f} to {new['shifted']:.2f} ({new['change']:+.2f} ± {new['error']:.2f}" in page
        assert new["runs"] == 12

    def told_of(name: str, **where: object) -> tuple[list[float], float]:
        """(calibration errors by set, by how many points confidences are too high)."""
        lines = script.read([REPOSITORY / f"results/{name}.reliability.jsonl"])
        some = [[line for line in lines if where.items() <= line.items() and line["dataset"] == each] for each in SETS]
        errors = [statistics.mean(line["ece"] for line in own) for own in some]
        return errors, 100 * statistics.mean(statistics.mean(script.gap(line["bins"]) for line in own) for own in some)

    assert (
        f"SeqUST with the earlier defaults by {told_of('best-10shot-reading', method='sequst')[1]:.1f} points on average"
        in page
    )
    (after, high), (_, higher) = told_of("one-teacher"), told_of("one-teacher-earlier")
    errors = [f"{each:.1f}" for each in after]
    assert f"{', '.join(errors[:-1])} and {errors[-1]}, on average {statistics.mean(after):.2f}" in page
    again, first = (
        {
            (line["dataset"], line["seed"]): line["ece"]
            for line in script.read([REPOSITORY / f"results/{name}.reliability.jsonl"])
        }
        for name in ("one-teacher", "one-teacher-earlier")
    )
    new = [key for key in first if key[1] in (12, 100)]
    went = [statistics.mean(way[key] for key in new) for way in (first, again)]
    assert f"the {len(new)} with the seeds 12 and 100 went from {went[0]:.2f} to {went[1]:.2f}" in page
    assert f"too high by {high:.1f} points on average, where in 29 of them it had been {higher:.1f} before" in page


def test_the_page_on_what_to_label_says_what_was_measured() -> None:
    import json

    page = (REPOSITORY / "docs/concepts/what-to-label.md").read_text(encoding="utf-8")
    measured = json.loads((REPOSITORY / "benchmarks/results/label_next.json").read_text(encoding="utf-8"))["data"]
    for name, title in (("mit_restaurant", "MIT Restaurant"), ("conll03", "CoNLL-03")):
        seeds = ", ".join(str(run["seed"]) for run in measured[name]["runs"])
        assert re.search(rf"{title}: (the mean of )?\w+ seeds? \({seeds}\)", " ".join(page.split()))
    for way in ("random", "information gain, diverse"):
        cells = [
            measured[name]["mean"][way][count]["f1"] for name in ("mit_restaurant", "conll03") for count in ("50", "100", "200")
        ]
        assert f"| {way} | {' | '.join(f'{f1:.2f}' for f1 in cells)} |" in page
    over = [
        measured[name]["mean"]["information gain, diverse"][count]["over_random"]
        for name in ("mit_restaurant", "conll03")
        for count in ("50", "100", "200")
    ]
    told = [f"{each['difference']:+.2f} (p {each['p']:.3f})" for each in over]
    assert f"| ahead by | {' | '.join(told)} |" in page
    memory = json.loads((REPOSITORY / "benchmarks/results/memory-next.json").read_text(encoding="utf-8"))
    for figure in (
        f"Fifty of {memory['sentences']:,} generated sentences, T = {memory['passes']}",
        f"{memory['seconds'] / 60:.1f} minutes, at most {memory['over_the_model_megabytes']:.0f} MB over",
        f"took {memory['growth']:.1f} times the time",
    ):
        assert figure in " ".join(page.split())
