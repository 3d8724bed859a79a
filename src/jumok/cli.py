"""The command line: data on stdout, talk on stderr.

Exit codes: 0 done, 1 the run failed, 2 the input was wrong; a training that was asked to stop has saved and ends with
130 (Ctrl-C) or 143 (SIGTERM). Hyper-parameters live in recipes; `--set` is the only override. What needs torch is
imported when its command runs, so that help is immediate.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jumok.errors import DataError, InputError, JumokError, RecipeError
from jumok.version import __version__

app = typer.Typer(
    help="From raw text to a working, inspectable sequence model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
talk = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)

Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe.")
]
Decoding = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of [decode].")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Ensemble = Annotated[list[Path] | None, typer.Option("--with", metavar="RUN", help="More runs, as an ensemble.")]
OtherData = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="SPLIT=FILE[,FILE]", help="Other data than the recipe's, e.g. test=a.en,a.de."),
]


def main() -> None:
    try:
        app()
    except JumokError as error:
        talk.print("error:", style="bold red", end=" ")
        talk.print(str(error), markup=False)
        sys.exit(error.exit_code)
    except OSError as error:  # a folder that cannot be written, a disk that is full
        talk.print(f"error: {error}", style="bold red", markup=False)
        sys.exit(1)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jumok {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """From raw text to a working, inspectable sequence model."""


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe (TOML).")],
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/FOLDER-RECIPE if not given.")] = None,
    overrides: Overrides = None,
) -> None:
    """Train a recipe. The same command again goes on where it stopped."""
    _train(recipe, out or Path("runs") / _run_name(recipe), overrides)


def _run_name(recipe: Path) -> str:
    """The recipe's name, with its folder's: recipes/ddtp/ko-en.toml trains into ddtp-ko-en."""
    folder = recipe.absolute().parent.name
    return recipe.stem if folder == "recipes" else f"{folder}-{recipe.stem}"


def _train(recipe: Path, out: Path, overrides: list[str] | None = None) -> None:
    from jumok.recipe import load_recipe
    from jumok.report import TrainingReport
    from jumok.training import run_training

    loaded = load_recipe(recipe, overrides or [])
    with TrainingReport(loaded, out, talk) as report:
        outcome = run_training(
            loaded, out, began=report.began, watch=report.watch, scoring=lambda split, n: _bar(f"scoring {split}", n)
        )
    report.finish(outcome.finished)
    if outcome.signal is not None:
        raise typer.Exit(128 + outcome.signal)


@app.command()
def evaluate(
    run: RunArgument,
    data: OtherData = None,
    ensemble: Ensemble = None,
    overrides: Decoding = None,
    as_json: AsJson = False,
) -> None:
    """Score a run on its dev and test data, with intervals and signatures."""
    from jumok.doctor import examine_outputs
    from jumok.predictor import load
    from jumok.report import print_findings, print_scores
    from jumok.training import evaluate as evaluate_predictor

    predictor = load(run, *(ensemble or []))
    results: dict[str, Any] = {}
    findings = {}
    for split, pairs in _splits(run, data).items():
        with _bar(split, len(pairs), quiet=as_json) as done:
            results[split], outputs = evaluate_predictor(predictor, pairs, done=done, **_options(overrides))
        findings[split] = examine_outputs([p.source for p in pairs], outputs, [p.target for p in pairs])
        results[split]["findings"] = [asdict(finding) for finding in findings[split]]
    if as_json:
        _print_json({"run": str(run), "splits": results})
        return
    for split, result in results.items():
        print_scores(Console(soft_wrap=True), split, result)
        print_findings(Console(soft_wrap=True), findings[split])


@app.command()
def predict(
    run: RunArgument,
    file: Annotated[Path | None, typer.Argument(help="Text, one input a line; stdin if not given.")] = None,
    ensemble: Ensemble = None,
    prefix: Annotated[str | None, typer.Option(help="What every output has to begin with.")] = None,
    overrides: Decoding = None,
    as_json: AsJson = False,
) -> None:
    """A line in, a line out. With --json also scores, alternatives and word alignments."""
    from jumok.data.shards import in_chunks
    from jumok.predictor import load

    predictor = load(run, *(ensemble or []))
    options = _options(overrides)
    found: list[dict[str, Any]] = []
    for lines in in_chunks(_input_lines(file), 1 if file is None and sys.stdin.isatty() else 512):
        predictions = predictor.predict(lines, prefixes=None if prefix is None else [prefix] * len(lines), **options)
        for line, prediction in zip(lines, predictions, strict=True):
            if as_json:
                alignment = asdict(predictor.align(line, prediction.text)) if prediction.text else None
                found.append({"input": line, **asdict(prediction), "alignment": alignment})
            else:
                typer.echo(prediction.text.replace("\n", " "))
    if as_json:
        _print_json({"run": str(run), "predictions": found})


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="The run to compare with.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="The run that may be better.")],
    data: OtherData = None,
    as_json: AsJson = False,
) -> None:
    """Is the second run better than the first? Paired tests on the same sentences."""
    from jumok.predictor import load
    from jumok.report import print_comparisons
    from jumok.score.translation import compare_translations

    a, b = load(first), load(second)
    if (a.facts["source"], a.facts["target"]) != (b.facts["source"], b.facts["target"]):
        raise InputError("the runs translate between different languages", where=f"{first} and {second}")
    results = {}
    for split, pairs in _splits(first, data).items():
        sources, references = [p.source for p in pairs], [p.target for p in pairs]
        with _bar(split, 2 * len(pairs), quiet=as_json) as done:
            outputs_a, outputs_b = a(sources, done=done), b(sources, done=done)
        language = a.facts["target"]
        results[split] = compare_translations(outputs_a, outputs_b, references, target_language=language)
    if as_json:
        plain = {split: [asdict(comparison) for comparison in found] for split, found in results.items()}
        _print_json({"runs": [str(first), str(second)], "splits": plain})
        return
    for split, found in results.items():
        print_comparisons(Console(soft_wrap=True), f"{split}: {second} against {first}", found)


@app.command()
def show(
    what: Annotated[Path, typer.Argument(metavar="RECIPE|RUN", help="A recipe or a run folder.")],
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """The effective recipe, its parameter counts and its cost."""
    from jumok.recipe import load_recipe, recipe_tree
    from jumok.report import print_cost
    from jumok.show import cost

    scores: dict[str, Any] = {}
    vocabulary: dict[str, int] = {}
    if what.is_dir():
        recipe = _run_recipe(what)
        if (what / "scores.json").exists():
            from jumok.predictor import load

            scores = json.loads((what / "scores.json").read_text("utf-8"))
            tokenizers = load(what).tokenizers
            vocabulary = {"source_vocab": tokenizers.source.vocab_size, "target_vocab": tokenizers.target.vocab_size}
    else:
        recipe = load_recipe(what, overrides or [], find_data=False)
    counted = cost(recipe, **vocabulary)
    if as_json:
        _print_json({"recipe": recipe_tree(recipe), "cost": asdict(counted), "scores": scores})
        return
    print_cost(Console(soft_wrap=True), recipe, counted, scores)


@app.command()
def doctor(
    what: Annotated[list[Path], typer.Argument(metavar="RECIPE|RUN|FILE...", help="What to look at.")],
    source: Annotated[str | None, typer.Option(help="Language of the source, for files.")] = None,
    target: Annotated[str | None, typer.Option(help="Language of the target, for files.")] = None,
    as_json: AsJson = False,
) -> None:
    """What is wrong with this data, or with this run's output. Exit code 2 if something has to be mended."""
    from jumok.doctor import examine_outputs, examine_pairs, examine_parallel_files
    from jumok.report import print_findings

    if what[0].is_dir():
        from jumok.predictor import load

        pairs = next(iter(_splits(what[0], None).values()))
        with _bar("decoding", len(pairs), quiet=as_json) as done:
            outputs = load(what[0])([pair.source for pair in pairs], done=done)
        findings = examine_outputs([p.source for p in pairs], outputs, [p.target for p in pairs])
    else:
        splits, languages, files = _doctor_splits(what, source, target)
        findings = [finding for pair in files for finding in examine_parallel_files(*pair)]
        # Files of different length cannot be read as pairs; that is the finding.
        if not any(finding.severity == "error" for finding in findings):
            with talk.status("reading"):
                findings += examine_pairs(splits, source=languages[0], target=languages[1])
    if as_json:
        _print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        print_findings(Console(soft_wrap=True), findings, all_well="nothing found that needs a look")
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(2)


@app.command()
def demo(out: Annotated[Path, typer.Option(help="Run folder.")] = Path("runs/quickstart")) -> None:
    """The quickstart: train, score, show a dozen held-out samples, and leave a model to try."""
    from jumok.predictor import load
    from jumok.report import print_samples, print_scores

    _train(_shipped_recipe("quickstart.toml"), out)
    console = Console(soft_wrap=True)
    for split, result in json.loads((out / "scores.json").read_text("utf-8")).items():
        print_scores(console, split, result)
    samples = _splits(out, None)["test"][:12]
    print_samples(console, samples, load(out)([pair.source for pair in samples]))
    text = "two hundred thirty-four thousand five hundred six"
    console.print(f'\nTry it:\n  echo "{text}" | {sys.argv[0]} predict {out}', markup=False)


def _shipped_recipe(name: str) -> Path:
    """Recipes travel inside the installed package; in a checkout they stand beside it."""
    package = Path(__file__).parent
    for folder in (package / "recipes", package.parents[1] / "recipes"):
        if (folder / name).exists():
            return folder / name
    raise RecipeError("recipe not found", where=name, right="a complete installation of jumok")


def _run_recipe(run: Path) -> Any:
    from jumok.errors import CheckpointError
    from jumok.recipe import parse_recipe
    from jumok.train.folder import RunFolder

    stored = RunFolder(run).stored()
    if stored is None:
        raise CheckpointError("not a run folder: there is no recipe.json", where=run)
    return parse_recipe(stored["recipe"], where=str(run / "recipe.json"))


def _splits(run: Path, data: list[str] | None) -> dict[str, list[Any]]:
    """The pairs to evaluate on: the recipe's dev and test, or what --data says."""
    from jumok.assemble import read_split
    from jumok.data.corpus import Corpus
    from jumok.text.formats import read_pairs

    recipe = _run_recipe(run)
    if not data:
        corpora = [Corpus(recipe.data, split, seed=recipe.seed) for split in ("dev", "test")]
        return {corpus.split: read_split(corpus) for corpus in corpora if corpus.exists()}
    splits = {}
    for entry in data:
        split, equals, files = entry.partition("=")
        if not equals:
            raise InputError(f"not a split: {entry}", where="--data", right="--data test=a.en,a.de")
        paths = [Path(file) for file in files.split(",")]
        splits[split] = list(read_pairs(paths, source=recipe.data.source, target=recipe.data.target))
        if not splits[split]:
            raise DataError("no pairs to evaluate on", where=files)
    return splits


def _doctor_splits(
    what: list[Path], source: str | None, target: str | None
) -> tuple[dict[str, Any], tuple[str, str], list[tuple[Path, Path]]]:
    """For the doctor: re-iterable pairs by split, the two languages, and the line-aligned pairs of files."""
    from jumok.data.corpus import Corpus, ParallelData, Split
    from jumok.recipe import load_recipe

    if what[0].suffix == ".toml":
        recipe = load_recipe(what[0])
        data, seed = recipe.data, recipe.seed
    else:
        guessed = [path.name.removesuffix(".gz").rpartition(".")[2] for path in what]
        names = [str(path) for path in what]
        data = ParallelData(source=source or guessed[0], target=target or guessed[-1], train=[names])
        seed = 0
    splits: tuple[Split, ...] = ("train", "dev", "test")
    corpora = {split: Corpus(data, split, seed=seed) for split in splits}
    aligned = []
    if isinstance(data, ParallelData):
        aligned = [(Path(f[0]), Path(f[1])) for split in splits for f in data.files(split) if len(f) == 2]
    present: dict[str, Any] = {split: corpus for split, corpus in corpora.items() if corpus.exists()}
    return present, (data.source, data.target), aligned


def _options(overrides: list[str] | None) -> dict[str, Any]:
    import tomllib

    options = {}
    for override in overrides or []:
        key, equals, text = override.partition("=")
        if not equals:
            raise InputError(f"not an override: {override}", where="--set", right="--set beam=8")
        try:
            options[key.removeprefix("decode.")] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            options[key.removeprefix("decode.")] = text
    return options


def _input_lines(file: Path | None) -> Iterator[str]:
    from jumok.text.formats import read_lines

    if file is not None:
        yield from read_lines(file)
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"not UTF-8: byte {error.start + 1} is 0x{line[error.start]:02x}", where=f"stdin, line {number}"
            ) from error


@contextmanager
def _bar(what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, a line anywhere else; its value is told how many more are done."""
    if quiet or not talk.is_terminal:
        if not quiet:
            talk.print(f"{what}: {total} sentences")
        yield lambda n: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=talk, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
