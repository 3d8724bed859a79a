"""The command line: data on stdout, talk on stderr.

Exit codes: 0 done, 1 the run failed, 2 the input was wrong; a training that was asked to stop has saved and ends with
130 (Ctrl-C) or 143 (SIGTERM). Hyper-parameters live in recipes; `--set` is the only override. What needs torch is
imported when its command runs, so that help is immediate.
"""

import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from jumok.errors import InputError, JumokError
from jumok.version import __version__

if TYPE_CHECKING:
    from jumok.doctor import Finding

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
Decoding = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of \\[decode], or what the task can be asked."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
OtherFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A Hugging Face folder: BERT, GPT-2 or Marian.")]
OtherLayout = Annotated[Literal["huggingface"], typer.Option("--to", help="Who is to open it.")]
Ensemble = Annotated[list[Path] | None, typer.Option("--with", metavar="RUN", help="More runs, as an ensemble.")]
OtherData = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="SPLIT=FILE[,FILE]", help="Other data than the recipe's, e.g. test=a.en,a.de."),
]


def main() -> None:
    warnings.showwarning = lambda message, *_: talk.print(f"note: {message}", markup=False)
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
    from jumok.report import TrainingReport, print_short_scores
    from jumok.series import gather, series
    from jumok.training import prepare_folds, run_training

    loaded = load_recipe(recipe, overrides or [])
    parts = series(loaded)
    prepare_folds(parts)
    for name, part in (parts or {"": loaded}).items():
        with TrainingReport(part, out / name, talk) as report:
            outcome = run_training(part, out / name, report)
        report.finish(outcome.finished)
        if outcome.signal is not None:
            raise typer.Exit(128 + outcome.signal)
    if parts and report.rank == 0:
        gather(loaded, out, [*parts])
    if report.rank == 0:
        print_short_scores(talk, out)


@app.command()
def evaluate(
    run: RunArgument,
    data: OtherData = None,
    ensemble: Ensemble = None,
    overrides: Decoding = None,
    as_json: AsJson = False,
) -> None:
    """Score a run on its dev and test data, with intervals and signatures."""
    from jumok.arguments import examined, options, splits, stored_beside
    from jumok.predictor import load
    from jumok.report import print_findings, print_scores, print_which_model, progress_bar
    from jumok.series import refuse_other_test_data

    for other in ensemble or [] if not data else []:
        refuse_other_test_data(run, other)
    print_which_model(talk, run)
    predictor = load(run, *(ensemble or []))
    results: dict[str, Any] = {}
    findings = {}
    for split, examples in splits(run, data).items():
        with progress_bar(talk, split, len(examples), quiet=as_json) as done:
            results[split], outputs = predictor.score(examples, done=done, **options(overrides))
        if not data:
            results[split] |= stored_beside(run, split)
        findings[split] = examined(predictor, examples, outputs, results[split])
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
    file: Annotated[Path | None, typer.Argument(help="Lines, or data as in training; stdin if not given.")] = None,
    ensemble: Ensemble = None,
    prefix: Annotated[str | None, typer.Option(help="What every output has to begin with.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Show a text while it is written.")] = False,
    entities: Annotated[
        list[Path] | None, typer.Option(metavar="RUN", help="Relations: runs that find the entities of raw text.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option(metavar="FOUND=MEANT", help="Relations: names of types, e.g. protein=GENE.")
    ] = None,
    table: Annotated[
        Literal["tsv", "jsonl"] | None, typer.Option(help="Entities, or relations, as rows of a table.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw entities, relations or answers, too: a .png or .svg.")
    ] = None,
    overrides: Decoding = None,
    as_json: AsJson = False,
) -> None:
    """A line in, a line out. With --json also scores, alternatives and word alignments."""
    from jumok.arguments import finders, input_batches, options, predictions, stream_to_stdout, table_lines
    from jumok.look import draw_found
    from jumok.picture import refuse_undrawable
    from jumok.predictor import load

    if table and as_json:
        raise InputError("a table is not one JSON object", where="--json", right="--table jsonl, or --json alone")
    if picture is not None:
        refuse_undrawable(picture)
    predictor = load(run, *(ensemble or []))
    asked = {**options(overrides), **finders(predictor, entities, types)}
    predicted = predictions(predictor, input_batches(file, run=run), asked, prefix=prefix)
    if picture is not None:
        predicted = draw_found(predictor, predicted, picture, raw_text=bool(entities))
    if stream:
        beside = {"--json": as_json, "--prefix": prefix, "--table": table, "--picture": picture}
        stream_to_stdout(predictor, input_batches(file), asked, beside=beside)
        return
    if table:
        for line in table_lines(predictor, predicted, table):
            typer.echo(line)
        return
    found: list[dict[str, Any]] = []
    for line, output in predicted:
        if as_json:
            found.append({"input": line, **predictor.plain(line, output)})
        else:
            typer.echo(output.text.replace("\n", " "))
    if as_json:
        _print_json({"run": str(run), "predictions": found})


@app.command()
def attention(
    run: RunArgument,
    text: Annotated[str, typer.Argument(help="What the model reads.")],
    output: Annotated[str | None, typer.Option(metavar="TEXT", help="Align this, not the model's own output.")] = None,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg; RUN/attention.png if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw what the model looks at: piece by piece while it writes, or the words by which it judges."""
    from jumok.look import draw_attention

    picture = out or run / "attention.png"
    result = draw_attention(run, text, picture, output=output)
    if as_json:
        _print_json({"run": str(run), "picture": str(picture), **result})
    else:
        typer.echo(str(picture))


@app.command()
def chat(
    run: RunArgument,
    history: Annotated[int, typer.Option(min=0, metavar="N", help="Exchanges that are put before each input.")] = 0,
    overrides: Decoding = None,
) -> None:
    """Talk with a run: a line in, a reply out; /help says what else there is."""
    from jumok.arguments import options
    from jumok.chat import chat_in_terminal
    from jumok.predictor import load

    chat_in_terminal(load(run), history=history, options=options(overrides))


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="The run to compare with.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="The run that may be better.")],
    data: OtherData = None,
    overrides: Decoding = None,
    as_json: AsJson = False,
) -> None:
    """Is the second run better than the first? Paired tests on the same sentences."""
    from jumok.arguments import options, splits
    from jumok.predictor import load
    from jumok.report import print_comparisons, print_which_model, progress_bar
    from jumok.series import refuse_other_test_data

    if not data:
        refuse_other_test_data(first, second)
    for run in (first, second):
        print_which_model(talk, run)
    a, b = load(first), load(second)
    if type(a) is not type(b):
        raise InputError("the runs have different tasks", where=f"{first} and {second}")
    results = {}
    for split, examples in splits(first, data).items():
        with progress_bar(talk, split, 2 * len(examples), quiet=as_json) as done:
            results[split] = a.compare(b, examples, done=done, **options(overrides))
    if as_json:
        plain = {split: [asdict(comparison) for comparison in found] for split, found in results.items()}
        _print_json({"runs": [str(first), str(second)], "splits": plain})
        return
    for split, found in results.items():
        print_comparisons(Console(soft_wrap=True), split, found, first=first, second=second)


@app.command()
def show(
    what: Annotated[Path, typer.Argument(metavar="RECIPE|RUN", help="A recipe or a run folder.")],
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """The effective recipe, its parameter counts and its cost."""
    from jumok.arguments import run_recipe
    from jumok.recipe import load_recipe, recipe_tree
    from jumok.report import print_cost, print_parameters
    from jumok.show import cost, imported

    scores: dict[str, Any] = {}
    vocabulary: dict[str, int] = {}
    if what.is_dir():
        if overrides:
            raise InputError("a run's recipe is what it is", where="--set", right="--set with a recipe, not with a run")
        if (what / "model" / "config.json").exists() and not (what / "recipe.json").exists():
            found = imported(what)
            if as_json:
                _print_json(found)
            else:
                print_parameters(Console(soft_wrap=True), found, found.pop("parameters"))
            return
        recipe = run_recipe(what)
        if (what / "scores.json").exists():
            from jumok.predictor import load

            scores = json.loads((what / "scores.json").read_text("utf-8"))
            vocabulary = load(what).tokenizers.sizes
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
    source: Annotated[str | None, typer.Option(help="Language of the source, or of the one text, for files.")] = None,
    target: Annotated[str | None, typer.Option(help="Language of the target, for files.")] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="SOURCE,TARGET", help="Columns of a TSV file with a header.")
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """What is wrong with this data, or with this run's output or curve. Exit code 2 if something has to be mended."""
    from jumok.arguments import two_columns
    from jumok.doctor import examine_data, refuse_a_mixture
    from jumok.report import print_findings

    refuse_a_mixture(what, told=bool(source or target or columns), overridden=bool(overrides))
    if what[0].is_dir():
        findings = _examined_run(what[0], quiet=as_json)
    else:
        with talk.status("reading"):
            named, keys = two_columns(columns), overrides or []
            findings = examine_data(what, source=source, target=target, columns=named, overrides=keys)
    if as_json:
        _print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        print_findings(Console(soft_wrap=True), findings, all_well="nothing found that needs a look")
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(2)


@app.command("import")
def import_model(folder: OtherFolder, run: RunArgument) -> None:
    """Make a run of a model from elsewhere. Weights are checked name by name, and nothing is executed."""
    from jumok.exchange import import_folder

    typer.echo(import_folder(folder, run))


@app.command("export")
def export_model(run: RunArgument, folder: OtherFolder, to: OtherLayout = "huggingface") -> None:
    """Write a run's model where others open it."""
    from jumok.exchange import export_folder

    typer.echo(export_folder(run, folder))


@app.command()
def demo(out: Annotated[Path, typer.Option(help="Run folder.")] = Path("runs/quickstart")) -> None:
    """The quickstart: train, score, show a dozen held-out samples, and leave a model to try."""
    from jumok.arguments import splits
    from jumok.predictor import load
    from jumok.recipe import shipped_recipe
    from jumok.report import print_samples, print_scores

    _train(shipped_recipe("quickstart.toml"), out)
    console = Console(soft_wrap=True)
    for split, result in json.loads((out / "scores.json").read_text("utf-8")).items():
        print_scores(console, split, result)
    samples = splits(out, None)["test"][:12]
    print_samples(console, samples, load(out)([pair.source for pair in samples]))
    text = "two hundred thirty-four thousand five hundred six"
    console.print(f'\nTry it:\n  echo "{text}" | {sys.argv[0]} predict {out}', markup=False)


def _examined_run(run: Path, *, quiet: bool) -> "list[Finding]":
    """What the doctor says of a run: of the curve of a pre-training, GPT and ELMo included, or of the outputs."""
    from jumok.arguments import examined, splits, stored_beside
    from jumok.doctor import Finding, worst_first
    from jumok.doctor.runs import examine_run
    from jumok.predictor import load
    from jumok.report import progress_bar

    with talk.status("reading"):
        told = examine_run(run)
    if told is not None:
        return told
    predictor, findings = load(run), list[Finding]()
    for split, examples in splits(run, None).items():
        with progress_bar(talk, f"decoding {split}", len(examples), quiet=quiet) as done:
            result, outputs = predictor.score(examples, done=done)
        findings += examined(predictor, examples, outputs, result | stored_beside(run, split), split)
    return worst_first(findings)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
