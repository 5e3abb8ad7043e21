import asyncio
import time
from pathlib import Path

import pytest

from sandmle.config import SandboxSection
from sandmle.sandbox.aio import AsyncSandbox
from sandmle.sandbox.base import open_sandbox
from sandmle.types import Limits


def made(backend: str, workers: int) -> AsyncSandbox:
    return AsyncSandbox(
        open_sandbox(SandboxSection(backend=backend, preload="none"), workers), workers
    )


@pytest.mark.parametrize("backend", ["ns", "bare"])
def test_programs_wait_in_line(backend: str, public: Path) -> None:
    async def play() -> list[str]:
        async with made(backend, 2) as sandbox:
            spaces = [await sandbox.open(public, Limits(wall_s=30)) for _ in range(10)]
            code = "import time; time.sleep(0.05); open('n', 'w').write('{0}'); print({0})"
            results = await asyncio.gather(*(w.run(code.format(n)) for n, w in enumerate(spaces)))
            for number, space in enumerate(spaces):
                assert await space.read("n", 10) == str(number).encode()
                assert await (await space.fork()).list() == []
            return [result.stdout for result in results]

    assert asyncio.run(play()) == [f"{n}\n" for n in range(10)]


@pytest.mark.parametrize("backend", ["ns", "bare"])
def test_a_cancelled_program_is_ended(backend: str, public: Path) -> None:
    async def play() -> str:
        async with made(backend, 1) as sandbox:
            space = await sandbox.open(public, Limits(wall_s=100))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await space.run("import time; time.sleep(90)")
            waiting = asyncio.create_task(space.run("import time; time.sleep(0.3)"))
            late = asyncio.create_task(space.run("print('never')"))
            await asyncio.sleep(0.05)
            late.cancel()
            await waiting
            return (await space.run("print('next')")).stdout

    started = time.monotonic()
    assert asyncio.run(play()) == "next\n"
    assert time.monotonic() - started < 60, "it waited for the program"
