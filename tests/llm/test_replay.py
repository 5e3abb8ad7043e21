"""Replies on disk: keys, several writers at once, and what is refused."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sandmle.config import PolicySection
from sandmle.errors import ModelError, UsageError
from sandmle.llm.base import Completion, Message
from sandmle.llm.replay import Keys, Recorder, Replayer, Store
from sandmle.llm.scripted import Scripted

TALK = [Message("user", "hello?")]
FULL = Completion("a\ud800\n\0", 3, 4, 0.1 + 0.2, True, (1, 2), (-0.1, -1e-300))


class Saying:
    """A model that says what it is given, one after the other."""

    def __init__(self, *replies: Completion) -> None:
        self.replies = list(replies)

    def complete(self, messages) -> Completion:
        return self.replies.pop(0)


def keys(seed: int | None = 1, model: str = "m", **settings) -> Keys:
    return Keys(model, PolicySection(**settings), seed)


def test_what_was_said_is_said_again(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    replies = [FULL, Completion("second"), Completion("third")]
    with closing(Store(path, create=True)) as store:
        recorder = Recorder(Saying(*replies), store, keys())
        said = [recorder.complete(TALK), recorder.complete(TALK), recorder.complete([*TALK, *TALK])]
    assert said == replies
    with closing(Store(path)) as store:
        assert store.models() == ["m"]
        again = Replayer(store, keys())
        assert [again.complete(TALK), again.complete(TALK)] == replies[:2]
        assert again.complete([*TALK, *TALK]) == replies[2]
        with pytest.raises(ModelError, match="no reply of m to this conversation of 1 messages"):
            again.complete(TALK)


@pytest.mark.parametrize(
    "other",
    [keys(2), keys(None), keys(model="n"), keys(temperature=0.5), keys(turn_tokens=9)],
)
def test_another_request_has_another_key(other: Keys) -> None:
    assert other.next(TALK) != keys().next(TALK)


def test_the_key_is_the_request_and_how_often_it_was_sent() -> None:
    one, two = keys(), keys(requests=1, retries=0, timeout_s=1, temperature=1)
    first = one.next(TALK)
    assert first == two.next([Message("user", "hello?")])
    assert one.next([Message("system", "hello?")]) != first
    assert one.next(TALK) not in {first, one.next([*TALK, *TALK])}
    blind = Keys("m", PolicySection(), 1, lambda text: text.rstrip("?"))
    assert blind.next(TALK) == keys().next([Message("user", "hello")])
    # on disk: must not change
    assert first == "9788c1f965059aad2b669b1ed2b783a20f9aa3bc972724e13bb9e403f8981298"


def test_an_episode_that_is_played_again_replaces_what_it_said(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "x.db", create=True)) as store:
        for text in ("first", "second"):
            Recorder(Scripted([text]), store, keys()).complete(TALK)
        assert Replayer(store, keys()).complete(TALK).text == "second"


def test_a_failure_is_not_recorded(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "x.db", create=True)) as store:
        with pytest.raises(ModelError, match="no more replies"):
            Recorder(Scripted([]), store, keys()).complete(TALK)
        assert store.models() == []


def record_many(path: Path, writer: int, n: int = 15) -> None:
    with closing(Store(path, create=True)) as store:
        recorder = Recorder(Scripted([f"{writer}.{i}" for i in range(n)]), store, keys(writer))
        for _ in range(n):
            recorder.complete(TALK)


def check_many(path: Path, writers: int, n: int = 15) -> None:
    with closing(Store(path)) as store:
        for writer in range(writers):
            player = Replayer(store, keys(writer))
            assert [player.complete(TALK).text for _ in range(n)] == [
                f"{writer}.{i}" for i in range(n)
            ]


def test_threads_record_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(Store(path, create=True)) as store, ThreadPoolExecutor(4) as pool:

        def record(writer: int) -> None:
            recorder = Recorder(Scripted([f"{writer}.{i}" for i in range(40)]), store, keys(writer))
            for _ in range(40):
                recorder.complete(TALK)

        list(pool.map(record, range(4)))
    check_many(path, 4)


def test_files_opened_twice_at_once_are_whole(tmp_path: Path) -> None:
    """Two threads make the same file, each with a connection of its own."""
    for turn in range(5):
        path = tmp_path / f"{turn}.db"
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda writer, path=path: record_many(path, writer, 5), range(4)))
        check_many(path, 4, 5)


def test_processes_record_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    code = (
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path\nfrom test_replay import record_many\n"
        f"record_many(Path({str(path)!r}), int(sys.argv[1]))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(i)]) for i in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    check_many(path, 3)


def test_what_is_no_file_of_replies_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, other, empty = tmp_path / "a.txt", tmp_path / "b.db", tmp_path / "c.db"
    text.write_text("thesis " * 1000)
    empty.write_bytes(b"")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE thesis (x)")
    before = other.read_bytes()
    for path, create, message in [
        (tmp_path / "no.db", False, "no such file"),
        (tmp_path, False, "no such file"),
        (empty, False, "no file of replies"),
        (text, False, "cannot be opened"),
        (text, True, "cannot be opened"),
        (other, False, "no file of replies"),
        (tmp_path, True, "cannot be opened"),
        (tmp_path / "no" / "x.db", True, "cannot be opened"),
    ]:
        with pytest.raises(UsageError, match=message):
            Store(path, create=create)
    assert other.read_bytes() == before
    with pytest.raises(UsageError, match="no file of replies"):
        Store(other, create=True)
    assert text.read_text() == "thesis " * 1000


def test_a_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "x.db", create=True).close()
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("PRAGMA user_version = 2")
    for create in (True, False):
        with pytest.raises(UsageError, match="this version can read"):
            Store(tmp_path / "x.db", create=create)


def test_a_folder_that_cannot_be_written_is_read(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a #?%.db"
    with closing(Store(path, create=True)) as store:
        Recorder(Scripted(["a"]), store, keys()).complete(TALK)
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name], "nothing lies beside it"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with closing(Store(path)) as store:
        assert Replayer(store, keys()).complete(TALK).text == "a"
        assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_reply_that_cannot_be_kept_or_read_is_the_models_failure(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(Store(path, create=True)) as store:
        Recorder(Scripted(["a"]), store, keys()).complete(TALK)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE replies SET reply = '{'")
        with pytest.raises(ModelError, match="cannot be read"):
            Replayer(store, keys()).complete(TALK)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TABLE replies")
        with pytest.raises(ModelError, match="cannot be kept"):
            Recorder(Scripted(["a"]), store, keys()).complete(TALK)
