"""`sandmle export`."""

from pathlib import Path
from typing import Annotated

import typer

from sandmle.cli.output import say

app = typer.Typer(no_args_is_help=True, help="Write a run for other tools.")


@app.command()
def messages(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Default: RUN/messages.jsonl.")
    ] = None,
    min_reward: Annotated[
        float | None, typer.Option(help="Leave out episodes that earned less.")
    ] = None,
) -> None:
    """Write the conversations as JSON lines, for supervised fine-tuning."""
    from sandmle.export.messages import export_messages

    path = out or run / "messages.jsonl"
    count = export_messages(run, path, min_reward)
    say(f"{count} {'conversation' if count == 1 else 'conversations'}")
    print(path)
