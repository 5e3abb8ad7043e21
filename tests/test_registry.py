import threading

import pytest

from sandmle.errors import UsageError
from sandmle.registry import Registry, nearest


def test_register_get_and_list() -> None:
    table: Registry[int] = Registry("number")
    table.add("two", 2)
    table.register("one")(1)
    assert table.names() == ["one", "two"]
    assert list(table) == [1, 2]
    assert table.get("two") == 2
    assert "one" in table
    assert "three" not in table


def test_unknown_name_tells_the_nearest() -> None:
    table: Registry[int] = Registry("number")
    table.add("accuracy", 1)
    with pytest.raises(UsageError, match="unknown number 'acuracy'; did you mean 'accuracy'"):
        table.get("acuracy")
    assert nearest("zzz", ["b", "a"]) == "Known: a, b"


def test_a_name_is_taken_once() -> None:
    table: Registry[int] = Registry("number")
    table.add("one", 1)
    with pytest.raises(UsageError, match="registered already"):
        table.add("one", 2)
    assert table.get("one") == 1


def test_other_packages_add_components(monkeypatch, tmp_path) -> None:
    """An entry point of an installed distribution is loaded at the first look."""
    (tmp_path / "plug_in.py").write_text(
        "import test_registry\ntest_registry.OTHERS.add('two', 2)\n"
    )
    info = tmp_path / "plug_in-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sandmle.numbers]\ntwo = plug_in\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert OTHERS.names() == ["two"]


def test_a_component_that_cannot_be_loaded_is_named(monkeypatch, tmp_path) -> None:
    (tmp_path / "torn_plug.py").write_text("import nothing_of_that_name\n")
    info = tmp_path / "torn_plug-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torn-plug\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sandmle.torn]\nfour = torn_plug\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    table: Registry[int] = Registry("number", group="sandmle.torn")
    with pytest.raises(UsageError, match="number 'four' of torn_plug cannot be loaded: ModuleNot"):
        table.names()


OTHERS: Registry[int] = Registry("number", group="sandmle.numbers")


def test_built_in_modules_are_imported_at_the_first_look(monkeypatch, tmp_path) -> None:
    (tmp_path / "late_builtin.py").write_text("import time\ntime.sleep(0.2)\nloaded = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import sys

    table: Registry[int] = Registry("number", builtins=("late_builtin",))
    assert "late_builtin" not in sys.modules
    seen: list[bool] = []

    def look() -> None:
        table.names()
        seen.append(hasattr(sys.modules["late_builtin"], "loaded"))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 4, "no thread may see the table half loaded"
