"""From a reply in prose to a plan and a program."""

import ast
import warnings
from typing import NamedTuple

from sandmle.env.protocol import python_blocks, split_thought


class Program(NamedTuple):
    """`error` says why the reply cannot be used as it is; `code` may be there all the same.

    `raw` is the reply.
    """

    plan: str = ""
    code: str = ""
    error: str = ""
    raw: str = ""


def read_program(reply: str) -> Program:
    """Return the program of a reply: its python blocks that compile, joined; the plan is the prose.

    A thought before it is not read. A reply without any fence is the program if it compiles.
    """
    thought, text = split_thought(reply, think_opened=False)
    if not thought.closed:
        return Program(error=thought.error, raw=reply)
    blocks, prose, closed = python_blocks(text)
    if not closed:
        return Program(prose.strip(), error="the code block was not closed", raw=reply)
    good = [block for block in blocks if not _objection(block)]
    if good:
        return Program(prose.strip(), "\n\n".join(good), raw=reply)
    if blocks:
        fault = f"the program does not compile: {_objection(blocks[-1])}"
        return Program(prose.strip(), blocks[-1], fault, reply)
    # prose of one word compiles too: a program has a line that does something
    if "\n" in text.strip() and "```" not in text and not _objection(text):
        return Program(code=text, raw=reply)
    return Program(text.strip(), error="there is no fenced python block in the reply", raw=reply)


def _objection(code: str) -> str:
    """Return why Python cannot compile a program; empty if it can, and it is not empty."""
    if not code.strip():
        return "it is empty"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of doubtful escapes in strings
            ast.parse(code)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""
