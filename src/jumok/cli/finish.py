"""jumok finish: end a run now."""

import typer

from jumok.cli.arguments import RunArgument, talk
from jumok.cli.train import exit_code, interruptible


def finish(run: RunArgument) -> None:
    """Make the model of an unfinished run from its checkpoints, and score it. Training can be resumed all the same."""
    from jumok.cli.report import TrainingReport, print_short_scores
    from jumok.finishing import finish_now, recipe_of
    from jumok.train.folder import RunFolder
    from jumok.train.loop import Finished

    with interruptible() as asked, TrainingReport(recipe_of(RunFolder(run)), run, talk, asked) as report:
        for event in finish_now(run, stop=lambda: bool(asked), done=report.scored):
            if isinstance(event, Finished) and event.reason == "interrupted":
                talk.print("stopped: the checkpoints are as they were; the same command makes the model")
                raise typer.Exit(exit_code(asked))
            report.watch(event)
    print_short_scores(talk, run)
