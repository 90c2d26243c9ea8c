"""What differs between two runs of the same thing is masked; what tells how it stands is not."""

import pytest

from midwatch_monitor.rules.identity import mask, mask_lines


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Times and dates.
        ("at 2026-11-21T20:00:00Z x", "at 2026-11-21 20:00:01.5+01:00 x"),
        ("built 2026-11-21", "built 2026-11-22"),
        ("[12:00:01] x", "[12:00:02.113] x"),
        ("Sat Nov 21 20:00:00 2026", "Sun Nov 22 08:10:59 2026"),
        ("21/Nov/2026:20:00:00 GET /", "22/Nov/2026:20:00:05 GET /"),
        ("Sat, 21 Nov 2026 20:00:00 GMT", "Mon, 23 November 2026 07:00:00 GMT"),
        ("epoch 1732212345", "epoch 1732219999.25"),
        # Durations.
        ("2 failed in 0.31s", "2 failed in 12.4s"),
        ("took 3 ms", "took 1.4 s"),
        ("took_ms: 36", "took_ms: 671"),
        ('"duration_seconds": 5.4', '"duration_seconds": 12.0'),
        ("took 3", "took 14"),
        ("elapsed: 3.2", "elapsed: 4"),
        ("done in 1m 02s", "done in 59s"),
        ("real\t0m1.234s", "real\t1m12.001s"),
        ("finished in 3 minutes", "finished in 1 minute"),
        ("#5 3.340 Err:1 mirror", "#5 69.26 Err:1 mirror"),
        ("web-0  0/1  Pending  0   4m\nx", "web-0  0/1  Pending  0   1d2h\nx"),
        ('"pending", "age_s": 31', '"pending", "age_s": 589'),
        ("queued for 5m, no runner", "queued for 1h10m, no runner"),
        ("PAY-31: blocked (2h)", "PAY-31: blocked (1d)"),
        # Names that are drawn anew.
        ("<A object at 0x7f3e10a2>", "<A object at 0x7f3e99ff>"),
        (
            "id 123e4567-e89b-12d3-a456-426614174000",
            "id 00000000-E89B-12D3-A456-426614174001",
        ),
        ("commit a1b2c3d4e5", "commit 0f9e8d7c6b5a"),
        ("pid=4711", "pid=12"),
        ("PID: 4711", "PID: 12"),
        ("process id 77", "process id 78"),
        ("listening on port 8080", "listening on port 40123"),
        ("http://localhost:5000/x", "http://localhost:33241/x"),
        ("http://127.0.0.1:5000/x", "http://127.0.0.1:33241/x"),
        ("random seed: 42", "random seed: 7"),
        ("Attempt #3 failed", "Attempt #4 failed"),
        ("saved as revision 40", "saved as revision 42"),
        ("[1] 4121\n> vite", "[1] 5687\n> vite"),
        ("(rev 41, restored)", "(rev 43, restored)"),
        ("patch set 3 uploaded", "patch set 4 uploaded"),
        ("transferred (hop 1)", "transferred (hop 7)"),
        ("https://a.example/b#t=700785 shown", "https://a.example/b#t=808983 shown"),
        ("/cart?sid=9f3k2 empty", "/cart?sid=71ab0 empty"),
        ("retry 2 of 5", "retry 3 of 5"),
        ("request id 77", "request id 78"),
        # Temporary places.
        ("/tmp/pytest-of-me/pytest-3/x.py", "/tmp/pytest-of-me/pytest-4/x.py"),
        ("/run/pytest-of-me/pytest-3/x.py", "/run/pytest-of-me/pytest-4/x.py"),
        ("/tmp/abc123/x.py", "/tmp/def456/x.py"),
        ("/private/tmp/abc1", "/private/tmp/def2"),
        ("open('/var/folders/b1/x_y/T/q1/a')", "open('/var/folders/b1/x_z/T/q2/a')"),
        ("/var/folders/b1/x/T/pytest-of-me/pytest-3/a", "/var/folders/b1/x/T/b/a"),
        ("build in tmpa1b2c3d4", "build in tmpzz_2c3d4"),
        ("no number\n/var/folders/b/x/T/q/a\n1", "no number\n/var/folders/b/y/T/r/a\n1"),
        ("/tmp/abc/x.py", "/tmp/def/x.py"),
        ("up at\n:8080", "up at\n:40123"),
    ],
)
def test_what_is_another_in_each_run_is_masked(one: str, other: str) -> None:
    assert mask(one) == mask(other)


@pytest.mark.parametrize(
    "text",
    [
        *("3 failed", "version 1.2.3", "Python 3.11.2", "12 KB", "12MB", "size 5m", "85%"),
        *("a.py:12:34", "line 12", "issue #123", "42 items", "12345678", "deadbeef"),
        *("Decoded 12 files", "Market 5", "test_tmp.py", "src/tmp/a1", "seeds 3", "12.5"),
        *("no digit at all", "/orders?page=3&limit=20", "stage 3"),
    ],
)
def test_what_tells_how_the_work_stands_is_left_as_it_is(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 failed in 1s", "2 failed in 1s"),
        ("/tmp/abc1/x.py", "/tmp/abc1/y.py"),
        ("the pid is\n12", "the pid is\n13"),  # a word on another line says nothing of a number
    ],
)
def test_what_stands_beside_a_masked_part_still_counts(one: str, other: str) -> None:
    assert mask(one) != mask(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('File "a.py", line 12, in f', 'File "a.py", line 13, in f'),
        ("a.py:10: error", "a.py:11: error"),
        ("main.c:3:7: error", "main.c:12:1: error"),
        ("Foo.java:77", "Foo.java:78"),
        ("at f (app.tsx:10:5)", "at f (app.tsx:11:5)"),
    ],
)
def test_a_failure_is_compared_without_line_numbers_too(one: str, other: str) -> None:
    assert mask(one) != mask(other)
    assert mask_lines(one) == mask_lines(other)


def test_a_line_is_masked_as_if_it_stood_alone() -> None:
    lines = ["a", "took 3 ms", "", "pid=4711", "at 12:00:01", "3 failed", "Nov 21 2026", "0x7f"]
    text = "\n".join(lines)
    assert mask(text) == "\n".join(mask(each) for each in lines) != text


@pytest.mark.parametrize("text", ["3 failed", "expected 12, got 13", "a.py::test_b"])
def test_without_line_numbers_the_counts_stay(text: str) -> None:
    assert mask_lines(text) == text
