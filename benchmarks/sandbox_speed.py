"""What the sandbox costs in time, beside cold processes, plain forks and its peers."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure import Table, Warm, cold_run, cpu_s, interleaved, p50
from peers import peers
from programs import FOREST, NET, NOOP, missing
from unconfined import Unconfined

from sandmle.errors import SandboxError
from sandmle.sandbox.modes import MODES

_GAP_S = 0.25  # a model thinks for longer than this
_WINDOW_S = 2.0
_WINDOWS = 5


def latency(table: Table, public: Path, folder: Path, rounds: int) -> None:
    """Hold warm runs against cold processes, and against forks that confine nothing."""
    noop, forest = Warm(public), Warm(public)
    plain, bare = Warm(public, ahead=False), Unconfined("full", folder)
    others = _other_modes(table, public, forest.mode)
    cold_cpu: list[float] = []

    def cold() -> float:
        wall, cpu = cold_run(FOREST, folder)
        cold_cpu.append(cpu)
        return wall

    calls: dict[str, Callable[[], float]] = {
        "cold": cold,
        "no-op": lambda: noop.run(NOOP),
        f"forest, {forest.mode}": lambda: forest.run(FOREST),
        **{f"forest, {w.mode}": lambda w=w: w.run(FOREST) for w in others},  # type: ignore[misc]
        "no-op, plain": lambda: plain.run(NOOP),
        "no-op, unconfined": lambda: bare.run(NOOP, folder)[0],
    }
    if not missing(("torch",)):
        calls["cold, net"] = lambda: cold_run(NET, folder)[0]
        calls["net"] = lambda: forest.run(NET)
    for one in (noop, plain):
        one.begin()
    bare_begun = cpu_s([bare.pid])
    found = interleaved(calls, rounds)
    runs = rounds + 1
    noop_cpu, plain_cpu = noop.spent() / runs, plain.spent() / runs
    bare_cpu = (cpu_s([bare.pid]) - bare_begun) / runs
    for warm in (noop, forest, plain, *others):
        warm.close()
    bare.close()
    _report(table, found, noop_cpu, p50(cold_cpu[1:]))
    mode = plain.mode
    fastest = min(found["no-op, plain"]) / min(found["no-op, unconfined"])
    table.add(f"no-op in {mode} / in an unconfined fork, minimum", fastest, 1.6)
    table.add(f"no-op in {mode} / in an unconfined fork, CPU", plain_cpu / bare_cpu, 1.6)
    milliseconds = {name: [1000 * value for value in values] for name, values in found.items()}
    cpu = {"no-op": noop_cpu, "no-op, plain": plain_cpu, "no-op, unconfined": bare_cpu}
    table.details["latency_ms"] = milliseconds
    table.details["cpu_ms"] = {name: 1000 * value for name, value in cpu.items()}


def _other_modes(table: Table, public: Path, first: str) -> list[Warm]:
    found = []
    for mode in MODES:
        if mode.name == first:
            continue
        try:
            found.append(Warm(public, mode.name))
        except SandboxError as error:
            table.add(f"mode {mode.name}", None, note=f"not here: {error}".partition(";")[0])
    return found


def _report(table: Table, found: dict[str, list[float]], noop_cpu: float, cold_cpu: float) -> None:
    cold = p50(found["cold"])
    table.add("cold process, forest, wall", 1000 * cold, unit="ms")
    table.add("warm no-op, wall", 1000 * p50(found["no-op"]), unit="ms")
    table.add("warm no-op / cold, wall", p50(found["no-op"]) / cold, 0.08, "%")
    table.add("warm no-op / cold, CPU", noop_cpu / cold_cpu, 0.06, "%")
    for name, values in found.items():
        if name.startswith("forest"):
            table.add(f"warm {name} / cold, wall", p50(values) / cold, 0.20, "%")
    if "net" in found:
        ratio = p50(found["net"]) / p50(found["cold, net"])
        table.add("warm forest and torch / cold, wall", ratio, 0.10, "%")
    else:
        table.add("warm forest and torch / cold, wall", None, 0.10, note="torch not installed")


def fork_ahead(table: Table, public: Path, rounds: int) -> None:
    """Compare waiting times when there is time to get ready between two programs."""
    ahead, plain = Warm(public), Warm(public, ahead=False)

    def rested(warm: Warm) -> float:
        time.sleep(_GAP_S)
        return warm.run(NOOP)

    found = interleaved({"ahead": lambda: rested(ahead), "not": lambda: rested(plain)}, rounds)
    ahead.close()
    plain.close()
    ratio = p50(found["ahead"]) / p50(found["not"])
    note = f"{1000 * p50(found['ahead']):.0f} and {1000 * p50(found['not']):.0f} ms"
    table.add("no-op made ready ahead / not, 0.25 s apart", ratio, 0.85, note=note)


def throughput(table: Table, public: Path) -> None:
    """Count no-ops of one worker and of two, in windows taken in turn."""
    sandboxes = {workers: Warm(public, workers=workers) for workers in (1, 2)}
    rates: dict[int, list[float]] = {1: [], 2: []}

    def drive(warm: Warm) -> int:
        workspace, count = warm.sandbox.open(public, warm.workspace.limits), 0
        ends = time.perf_counter() + _WINDOW_S
        while time.perf_counter() < ends:
            workspace.run(NOOP)
            count += 1
        workspace.close()
        return count

    with ThreadPoolExecutor(2) as pool:
        for number in range(_WINDOWS + 1):
            for workers, warm in sandboxes.items():
                started = time.perf_counter()
                count = sum(pool.map(drive, [warm] * workers))
                if number:
                    rates[workers].append(count / (time.perf_counter() - started))
    for warm in sandboxes.values():
        warm.close()
    one, two = p50(rates[1]), p50(rates[2])
    note = f"{one:.1f} and {two:.1f} no-ops a second"
    table.add("2 workers / 1 worker, throughput", two / one, 1.4, at_least=True, note=note)


def beside_peers(table: Table, public: Path, folder: Path, rounds: int) -> None:
    """Run the same two programs in ours and in the peers."""
    warm, cold = Warm(public), Warm(public, "cold")
    others, absent = peers(folder)
    runners: dict[str, Callable[[str], float]] = {
        f"sandmle, warm, {warm.mode}": warm.run,
        f"sandmle, {cold.mode}": cold.run,
        **{peer.name: peer.run for peer in others},
    }
    calls: dict[str, Callable[[], float]] = {}
    for name, run in runners.items():
        for label, code in (("no-op", NOOP), ("forest", FOREST)):
            calls[f"{name}: {label}"] = lambda run=run, code=code: run(code)  # type: ignore[misc]
    found = interleaved(calls, rounds)
    for name, values in found.items():
        table.add(name, 1000 * p50(values), unit="ms")
    for peer in others:
        first = [value for _ in range(3) if (value := peer.first(FOREST)) is not None]
        if first:
            table.add(f"{peer.name}: start and first forest", 1000 * p50(first), unit="ms")
        peer.close()
    for reason in absent:
        table.add(reason.partition(":")[0], None, note=reason.partition(": ")[2])
    warm.close()
    cold.close()
    table.details["peers_ms"] = {name: [1000 * v for v in values] for name, values in found.items()}
