"""Making a forked interpreter look and end like a fresh one that runs a script."""

import atexit
import builtins
import faulthandler
import importlib.machinery
import io
import linecache
import os
import random
import sys
import tempfile
import threading
import traceback
import types
import weakref
from pathlib import Path
from typing import NoReturn

_PACKAGE = __name__.partition(".")[0]


def settle() -> None:
    """Once, after everything is imported: forget what imports have left for this process's end.

    This package goes from `sys.modules` too: a program cannot import what it cannot see.
    """
    atexit._clear()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    linecache.clearcache()
    tempfile.tempdir = None
    if "joblib.parallel" in sys.modules:  # new interpreters for 100 rows take seconds to start
        sys.modules["joblib.parallel"].DEFAULT_BACKEND = "threading"  # type: ignore[attr-defined]
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]


def freshen() -> None:
    """In each program's process, before it is known what it will run."""
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    atexit.register(weakref.finalize._exitfunc)  # type: ignore[attr-defined]
    logging, multiprocessing = sys.modules.get("logging"), sys.modules.get("multiprocessing.util")
    if logging is not None:
        atexit.register(logging.shutdown)
    if multiprocessing is not None:
        atexit.register(multiprocessing._exit_function)
    exec(compile("pass", "", "exec"), {})  # what this touches is copied now, not when it counts


def run(source: bytes, script: str) -> NoReturn:
    """Execute the script as `__main__` and end the process as the interpreter would."""
    leave, shut_down = os._exit, threading._shutdown  # type: ignore[attr-defined]
    run_exit_functions = atexit._run_exitfuncs
    main = _main_module(script)
    _open_streams()
    code = 0
    try:
        exec(compile(source, script, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as end:
        code = _exit_code(end)
    except BaseException as error:
        code = 1
        _show(error, script)
    try:
        shut_down()
        run_exit_functions()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        code = code or 120  # what the interpreter gives when it cannot end in order
    finally:
        leave(code & 255)


def _main_module(script: str) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=script,
        __builtins__=builtins,
        __cached__=None,
        __loader__=importlib.machinery.SourceFileLoader("__main__", script),
    )
    sys.modules["__main__"] = main
    sys.argv = [script]
    sys.path[:] = [str(Path(script).parent), *sys.path]
    return main


def _open_streams() -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r")), "utf-8")
    for name in ("stdin", "__stdin__"):
        setattr(sys, name, stdin)
    for name, descriptor, errors in (
        ("stdout", 1, "surrogateescape"),
        ("stderr", 2, "backslashreplace"),
    ):
        raw = io.FileIO(descriptor, "w", closefd=False)  # unbuffered: text survives a crash
        stream = io.TextIOWrapper(raw, "utf-8", errors, newline="\n", write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    faulthandler.enable(2)


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _show(error: BaseException, script: str) -> None:
    """Print the traceback from the script's first line on, as its own hook would."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    error.__traceback__ = trace
    try:
        sys.excepthook(type(error), error, trace)
    except BaseException:
        traceback.print_exception(error)
