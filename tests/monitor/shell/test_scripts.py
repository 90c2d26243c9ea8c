"""What scripts write: those in a command, and those that a run wrote before."""

import pytest

from midwatch_monitor.records import Edit
from midwatch_monitor.shell import Shell
from midwatch_monitor.shell.written import MAX_SCRIPTS


def runs(program: str) -> list[str]:
    """The paths that a Python program writes; a removed one has a minus before it."""
    edits = Shell().edits(f"python - <<'END'\n{program}\nEND\n")
    return ["-" + edit.path if edit.deleted else edit.path for edit in edits]


@pytest.mark.parametrize(
    ("program", "paths"),
    [
        ("open('a.py', 'w').write('x')", ["a.py"]),
        ("open('a.py', mode='a+')", ["a.py"]),
        ("open('a.py'); open('b.py', 'rb')", []),
        ("p = 'a.py'\ns = open(p).read()\nopen(p, 'w').write(s)", ["a.py"]),
        ("with io.open(f'{d}/a.py', 'w') as f: pass", []),
        ("d = 'src'\nwith open(f'{d}/a.py', 'r+') as f: pass", ["src/a.py"]),
        ("open(os.path.join('src', 'a.py'), 'w')", ["src/a.py"]),
        ("Path('a.py').write_text(Path('b.py').read_text())", ["a.py"]),
        ("root = Path('src')\n(root / 'a.py').write_bytes(b'')", ["src/a.py"]),
        ("Path('a.py').open('w')", ["a.py"]),
        ("for name in ['a', 'b']:\n    open(name + '.py', 'w')", ["a.py", "b.py"]),
        ("def fix(path):\n    open(path, 'w')\nfix('a.py')\nfix('b.py')", ["a.py", "b.py"]),
        ("def fix(path):\n    open(path, 'w')", []),
        ("def main():\n    open(P, 'w')\nP = 'a.py'\nmain()", ["a.py"]),
        ("shutil.copy('a.py', 'b.py')", ["b.py"]),
        ("shutil.move('a.py', 'b.py'); os.rename('c', 'd')", ["-a.py", "b.py", "-c", "d"]),
        ("os.remove('a'); Path('b').unlink()", ["-a", "-b"]),
        ("os.chdir('src')\nopen('a.py', 'w')", ["src/a.py"]),
        ("for line in fileinput.input('a.py', inplace=True): pass", ["a.py"]),
        ("subprocess.run(['sed', '-i', 's/x/y/', 'a.py'])", ["a.py"]),
        ("os.system('rm a')", ["-a"]),
        (r"s = re.sub('\d', '', s); open('a.py', 'w')", ["a.py"]),
        ("open('a.py', 'w'", []),
        ('\'open("a.py", "w")\'', []),
    ],
)
def test_a_python_program_writes_what_it_opens_for_writing(program: str, paths: list[str]) -> None:
    assert runs(program) == paths


@pytest.mark.parametrize(
    "command",
    [
        "python -c \"open('a.py', 'w')\"",
        "python3.12 -u -W error -c \"open('a.py', 'w')\"",
        "F=a.py; python -c \"open('$F', 'w')\"",
        "python -c \"import sys; open(sys.argv[1], 'w')\" a.py",
        "echo \"open('a.py', 'w')\" | python",
        "uv run python - <<END\nopen('a.py', 'w')\nEND",
    ],
)
def test_a_program_may_come_in_many_ways(command: str) -> None:
    assert Shell().edits(command) == (Edit(path="a.py"),)


@pytest.mark.parametrize(
    ("name", "text", "call"),
    [
        ("fix.py", "open('a.py', 'w')", "python fix.py"),
        ("fix.py", "open('a.py', 'w')", "cd sub && python3 -B ../fix.py && cd .."),
        ("fix.py", "import sys\nopen(sys.argv[1], 'w')", "python ./fix.py a.py"),
        ("fix.py", "open('a.py', 'w')", "python < fix.py"),
        ("fix.py", "open('a.py', 'w')", "mv fix.py two.py && python two.py"),
        ("fix.sh", "sed -i s/x/y/ a.py", "bash fix.sh"),
        ("fix.sh", "sed -i s/x/y/ $1", "chmod +x fix.sh && ./fix.sh a.py"),
        ("fix", "#!/bin/sh\nsed -i s/x/y/ a.py", ". ./fix"),
        ("fix.sh", "python - <<A\nopen('a.py', 'w')\nA", "sh fix.sh"),
    ],
)
def test_running_a_script_is_an_edit_of_what_it_writes(name: str, text: str, call: str) -> None:
    shell = Shell()
    shell.edits(f"cat > {name} <<'END'\n{text}\nEND\n")
    assert any(edit.path.endswith("a.py") for edit in shell.edits(call))


def test_a_script_in_another_folder_writes_where_it_is_run() -> None:
    shell = Shell()
    shell.note("/repo/tools/fix.py", "open('a.py', 'w')")
    assert shell.edits("cd src; python ../tools/fix.py", cwd="/repo") == (Edit(path="src/a.py"),)


def test_a_script_of_an_edit_tool_counts_as_well() -> None:
    shell = Shell()
    shell.edits("ls", cwd="/repo")
    shell.note("fix.py", "open('/repo/a.py', 'w')")
    assert shell.edits("python fix.py", cwd="/repo") == (Edit(path="a.py"),)


def test_the_last_content_of_a_script_counts() -> None:
    shell = Shell()
    shell.note("fix.py", "open('a.py', 'w')")
    shell.note("fix.py", "print('nothing')")
    assert shell.edits("python fix.py") == ()


def test_what_is_put_at_the_end_of_a_script_is_added() -> None:
    shell = Shell()
    shell.note("fix.sh", "rm a\n")
    shell.edits("echo 'rm b' >> fix.sh")
    assert [edit.path for edit in shell.edits("sh fix.sh")] == ["a", "b"]


def test_a_removed_script_does_nothing() -> None:
    shell = Shell()
    shell.note("fix.py", "open('a.py', 'w')")
    shell.edits("rm fix.py")
    assert shell.edits("python fix.py") == ()


def test_the_oldest_script_is_forgotten_first() -> None:
    shell = Shell()
    for number in range(MAX_SCRIPTS + 1):
        shell.note(f"fix{number}.sh", f"rm a{number}")
    assert shell.edits("sh fix0.sh; sh fix1.sh") == (Edit(path="a1", deleted=True),)


def test_a_script_that_calls_itself_ends() -> None:
    shell = Shell()
    shell.note("fix.sh", "./fix.sh; ./fix.sh; rm a\n" * 100)
    assert shell.edits("./fix.sh") == (Edit(path="a", deleted=True),)
