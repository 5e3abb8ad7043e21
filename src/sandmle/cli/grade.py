"""`sandmle grade`."""

from pathlib import Path
from typing import Annotated

import typer

from sandmle.cli.options import AsJson
from sandmle.cli.output import emit, number


def grade(
    task: Annotated[Path, typer.Argument(help="A task folder.")],
    submission: Annotated[Path, typer.Argument(help="A submission for it.")],
    as_json: AsJson = False,
) -> None:
    """Grade a submission. Exit status 1 unless it could be scored."""
    from sandmle.grading.grader import grade as run
    from sandmle.tasks.folder import open_task

    verdict = run(open_task(task), submission)
    if as_json:
        emit(verdict.model_dump(mode="json"))
    elif verdict.status == "ok":
        best = [name for name, is_reached in verdict.reached.items() if is_reached]
        print(f"score {number(verdict.score)}: {', '.join(best) or 'below the median'}")
    else:
        reason = verdict.reason.replace("submission.csv", submission.name)
        print(f"{verdict.status}: {reason}")
    raise typer.Exit(0 if verdict.status == "ok" else 1)
