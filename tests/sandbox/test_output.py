from hypothesis import given
from hypothesis import strategies as st

from sandmle.sandbox.output import Capture


@given(st.text(max_size=300), st.integers(2, 100), st.integers(1, 50))
def test_capture_keeps_both_ends_and_whole_characters(text: str, limit: int, block: int) -> None:
    data = text.encode("utf-8", "replace")
    capture = Capture(limit)
    for start in range(0, len(data), block):
        capture.add(data[start : start + block])
    shown = capture.text()
    if not capture.truncated:
        assert shown.encode("utf-8", "replace") == data
        assert len(data) <= limit
        return
    head, note, tail = shown.partition("\n[... ")
    tail = tail.partition(" ...]\n")[2]
    assert note
    assert data.startswith(head.encode())
    assert data.endswith(tail.encode())
    assert len(head.encode()) + len(tail.encode()) <= limit
    assert len(head.encode()) + len(tail.encode()) >= limit - 8


def test_memory_is_bounded() -> None:
    capture = Capture(1000)
    for _ in range(10_000):
        capture.add(b"x" * 1000)
    assert len(capture._head) + len(capture._tail) < 5000
    assert "9,999,000 bytes left out" in capture.text()
