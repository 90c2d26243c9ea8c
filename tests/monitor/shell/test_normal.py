"""When two commands are the same command, and that no text breaks the reading of it."""

import pytest

from midwatch_monitor.shell import Shell, normal, reverts


@pytest.mark.parametrize(
    "command",
    [
        "pytest  -q   # again",
        "  pytest -q\n",
        "# first\n\npytest -q ;",
        "pytest \\\n   -q &&",
        "pytest\t-q\r\n",
    ],
)
def test_blanks_and_comments_do_not_matter(command: str) -> None:
    assert normal(command) == "pytest -q"


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("cd a &&\n  ls", "cd a && ls", True),
        ("ls>a", "ls > a", True),
        ("ls\n\n\npwd", "ls\npwd", True),
        ("cat > a <<E\nx  \nE", "cat >a <<E\nx\nE\n", True),
        ("python - <<E\n# one\nx = 1\nE", "python - <<E\nx = 1\n  # two\nE", True),
        ("cat <<E | sudo bash\nls # one\nE", "cat <<E | sudo bash\nls # two\nE", True),
        ("echo 'a  b'", "echo 'a b'", False),
        ('echo "a # b"', 'echo "a"', False),
        ("echo a#b", "echo a", False),
        ("pytest | tail -5", "pytest | tail -9", False),
        ("cat > a <<E\n# one\nE", "cat > a <<E\n# two\nE", False),
        ("cat > a <<E\nx  y\nE", "cat > a <<E\nx y\nE", False),
        ("cat > a <<E\n\nx\nE", "cat > a <<E\nx\nE", False),
        ("python - <<E\ns = '''\n# one\n'''\nE", "python - <<E\ns = '''\n# two\n'''\nE", False),
        ("python fix.py <<E\n# one\nE", "python fix.py <<E\n# two\nE", False),
    ],
)
def test_commands_that_do_the_same_are_equal(one: str, two: str, same: bool) -> None:
    assert (normal(one) == normal(two)) is same


def test_what_is_left_is_still_the_command() -> None:
    command = "cd a && cat <<-'E' > b 2>&1 ; ls  # all\n\tx\n\tE\n"
    assert normal(command) == "cd a && cat <<- 'E' > b 2>& 1 ; ls\nx\nE"
    assert normal(normal(command)) == normal(command)


ODD = [*"'\"\\`(){>\0", "$(", "${", '"$(', "{a,", "<<", "<<E\n", "$'\\"]
LONG = [*"'\\(", '"$(', "{a,", "{a,b}", "$x", " x", "for a in 1 2;do ", "a=$a$a;", "bash -c "]


@pytest.mark.parametrize("text", [*ODD, *(f"rm a {odd} b\nrm c" for odd in ODD), "\ud800 > \udfff"])
def test_nothing_raises(text: str) -> None:
    Shell().edits(text)
    Shell().note("fix.sh", text)
    reverts(f"python -c '{text}'")
    assert "\0" not in normal(text)


@pytest.mark.parametrize("text", LONG)
def test_a_long_command_takes_no_more_than_its_length(text: str) -> None:
    long = text * (20_000 // len(text))  # what is not linear would not end here
    assert len(Shell().edits(long)) <= 1
    assert len(normal(long)) <= 2 * len(long)


@pytest.mark.parametrize("text", ["(", "-", "x.", "'a'+", "[", "not "])
def test_a_program_that_nests_too_deep_writes_nothing(text: str) -> None:
    assert Shell().edits(f"python - <<'E'\n{text * 20_000}1\nE\n") == ()
