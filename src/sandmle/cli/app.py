"""The `sandmle` command: exit status 0 fine, 1 something failed, 2 it was asked for wrongly."""

import io
import signal
import sys
from typing import Annotated

import typer

from sandmle import __version__
from sandmle.cli import (
    bench,
    doctor,
    export,
    generate,
    grade,
    report,
    rollout,
    seeds,
    tasks,
    train,
    view,
)
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
app.add_typer(seeds.app, name="seeds")
app.command("grade")(grade.grade)
app.command("rollout")(rollout.rollout)
app.add_typer(train.app, name="train")
app.add_typer(bench.app, name="bench")
app.command("report")(report.report)
app.command("view")(view.view)
app.add_typer(export.app, name="export")
app.command("doctor")(doctor.doctor)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit(0)


def main() -> None:
    """Run the command line; an error of ours is one line, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)  # so that what must be closed is closed
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
    except UnicodeError:
        say("error: a path or a text is not valid Unicode")
        sys.exit(1)
    except OSError as error:  # a full disk, a file that may not be read
        where = f"{error.filename}: " if error.filename else ""
        say(f"error: {where}{error.strerror or error}")
        sys.exit(1)


def _stop(number: int, frame: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
