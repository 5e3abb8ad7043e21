"""The `sandmle` command: exit status 0 fine, 1 something failed, 2 it was asked for wrongly."""

import sys

import typer

from sandmle.cli import doctor, generate, grade, rollout, tasks, train, view
from sandmle.cli.output import say
from sandmle.errors import SandmleError, UsageError

app = typer.Typer(
    name="sandmle",
    help="Tiny, verified machine-learning-engineering tasks; agents on them; training from them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("generate")(generate.generate)
app.add_typer(tasks.app, name="tasks")
app.command("grade")(grade.grade)
app.command("rollout")(rollout.rollout)
app.add_typer(train.app, name="train")
app.command("view")(view.view)
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Run the command line; an error of ours is one line, without a traceback."""
    try:
        app()
    except UsageError as error:
        say(f"error: {error}")
        sys.exit(2)
    except SandmleError as error:
        say(f"error: {error}")
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:  # a full disk, a file that may not be read
        say(f"error: {error.filename or 'the system'}: {error.strerror or error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
