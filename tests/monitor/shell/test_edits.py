"""Which files a command writes, by its text alone."""

from collections.abc import Iterable
from hashlib import blake2b

import pytest

from midwatch_monitor.records import Edit
from midwatch_monitor.shell import Shell, reverts
from midwatch_monitor.shell.written import MAX_SCRIPTS


def paths_of(edits: Iterable[Edit]) -> list[str]:
    """The paths that are written; a removed one has a minus before it."""
    return ["-" + edit.path if edit.deleted else edit.path for edit in edits]


def written_paths(command: str, *, cwd: str = "") -> list[str]:
    """The paths that a command alone writes."""
    return paths_of(Shell().edits(command, cwd=cwd))


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("cat > a.py <<'END'\nx = '$y'\nEND\n", "x = '$y'\n"),
        ("cat <<END > a.py\nx = 1\nEND", "x = 1\n"),
        ("cat <<END | tee a.py\nx = 1\nEND", "x = 1\n"),
        ("tee a.py > /dev/null <<END\nx = 1\nEND", "x = 1\n"),
        ("cat <<-END > a.py\n\tx = 1\n\tEND", "x = 1\n"),
        ("cat <<END > a.py\ncost \\$5\nEND", "cost $5\n"),
        ("X=1; cat <<END > a.py\nx = ${X}\nEND", "x = 1\n"),
        ("echo one two > a.py", "one two\n"),
        ("echo -n 'one' >| a.py", "one"),
        (r"printf 'one\n' > a.py", "one\n"),
        (r"printf '%s\n' one two > a.py", "one\ntwo\n"),
        ("cat > a.py <<< one", "one\n"),
        ("> a.py", ""),
        ("echo one > a.py && echo two >> a.py", "one\ntwo\n"),
        ("echo one > b && mv b a.py", "one\n"),
    ],
)
def test_content_that_the_command_holds_has_its_digest(command: str, text: str) -> None:
    edits = {edit.path: edit for edit in Shell().edits(command)}
    assert edits["a.py"] == Edit(path="a.py", digest=digest(text))


@pytest.mark.parametrize(
    "command",
    [
        *("echo one >> a.py", "cat b.py > a.py", "cat > a.py <<END\n$(date)\nEND"),
        *("echo $HOME > a.py", "printf '%05d' 3 > a.py", "echo -e 'one\\ttwo' > a.py"),
        *("sed 's/x/y/' b.py > a.py", "git show HEAD:b.py > a.py", "(echo one; echo two) > a.py"),
        "{ echo one; cat b.py; } > a.py",
    ],
)
def test_content_that_only_the_run_knows_has_no_digest(command: str) -> None:
    assert Shell().edits(command) == (Edit(path="a.py"),)


@pytest.mark.parametrize(
    "command",
    [
        *("pytest > out.txt 2>&1", "make &> log", "pytest -q | tee log"),
        *("pytest -q | tail -5 > log", "(make; echo done) > log"),
        *("for t in a b; do pytest $t; done > log", "cat a.py 2> errors"),
        *("grep -rn x . > hits.txt", "git diff > my.patch", "echo hello > /dev/null"),
        *("echo hello >&2", "diff <(sort a) <(sort b)", "echo \"a > b\" 'c > d' e\\>f"),
        *("echo done # > a.py", "[ a > b ]", "touch a.py; mkdir b; ls", ""),
    ],
)
def test_what_a_program_says_is_no_edit(command: str) -> None:
    assert written_paths(command) == []


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("sed -i 's/x/y/' a.py b.py", ["a.py", "b.py"]),
        ("sed -i.bak -e 's/x/y/' a.py", ["a.py"]),
        ("sed -i -es/x/y/ a.py", ["a.py"]),
        ("sed -i '' 's/x/y/' a.py", ["a.py"]),
        ("sed -Ei -f fix.sed a.py", ["a.py"]),
        ("sed --in-place=.old --expression='s/x/y/' a.py", ["a.py"]),
        ("sed -n '1,5p' a.py", []),
        ("sed -ni.bak 5p -- a.py", ["a.py"]),
        ("perl -pi -e 's/x/y/' a.py", ["a.py"]),
        ("perl -0777 -i.bak -pe 's/x/y/' a.py", ["a.py"]),
        ("perl -0pi -Mstrict -e 's/x/y/' a.py", ["a.py"]),
        ("perl -ne 'print' a.py", []),
        ("awk -i inplace -v n=1 '{print n}' a.txt", ["a.txt"]),
        ("awk '{print}' a.txt", []),
        ("rm -f a.py b.py", ["-a.py", "-b.py"]),
        ("mv a.py b.py", ["b.py", "-a.py"]),
        ("mv a.py lib/", ["lib/a.py", "-a.py"]),
        ("mv -t lib a.py b.py", ["lib/a.py", "-a.py", "lib/b.py", "-b.py"]),
        ("cp a.py b.py", ["b.py"]),
        ("cp a.py b.py lib", ["lib/a.py", "lib/b.py"]),
        ("cp a.py{,.bak}", ["a.py.bak"]),
        ("sed 's/x/y/' a.py > a.tmp && mv a.tmp a.py", ["-a.tmp", "a.py"]),
        ("dd if=/dev/zero of=a.bin", ["a.bin"]),
        ("truncate -s 0 a.log", ["a.log"]),
        ("ed -s a.py <<END\n1d\nw\nEND", ["a.py"]),
        ("vim -es -c '%s/x/y/' -c wq a.py", ["a.py"]),
        ("vim a.py", []),
        ("grep -l x *.py | sponge a.txt", []),
        ("sort a.txt | sponge a.txt", ["a.txt"]),
        ("sed -i 's/x/y/' src/*.py", ["src/*.py"]),
    ],
)
def test_programs_write_what_they_are_told_to(command: str, paths: list[str]) -> None:
    assert written_paths(command) == paths


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("cd src && sed -i s/x/y/ a.py; rm b.py", ["src/a.py", "-src/b.py"]),
        ("cd src; cd -; rm a", ["-a"]),
        ("(cd src && rm a); rm b", ["-src/a", "-b"]),
        ("cd src || exit 1\nrm ../a ./b", ["-a", "-src/b"]),
        ("pushd src; rm a; popd; rm b", ["-src/a", "-b"]),
        ('cd "$(mktemp -d)" && rm a', []),
        ("F=src/a.py; sed -i s/x/y/ $F ${F}i", ["src/a.py", "src/a.pyi"]),
        ('F="a b"; rm $F', ["-a", "-b"]),
        ("rm $UNKNOWN/a `pwd`/b $(pwd)/c", []),
        ("for f in a b; do cp $f.py $f.bak; done", ["a.bak", "b.bak"]),
        (
            "for d in x y; do for f in a b; do rm $d/$f; done; done",
            ["-x/a", "-x/b", "-y/a", "-y/b"],
        ),
        ("if true; then rm a; else rm b; fi", ["-a", "-b"]),
        ("A=b sudo -u me timeout -s 9 30 sed -i s/x/y/ a.py", ["a.py"]),
        ("env A=b nice -n 5 rm a", ["-a"]),
        ("bash -lc \"cd src; sed -i 's/x/y/' a.py\" && rm b", ["src/a.py", "-b"]),
        ("bash <<'END'\ncd src\nrm a\nEND", ["-src/a"]),
        ("eval 'rm a'", ["-a"]),
        ("sed -i \\\n  s/x/y/ \\\n  a.py", ["a.py"]),
        ("rm 'a b' c\\ d $'e\\'f'", ["-a b", "-c d", "-e'f"]),
        ("git commit -m \"$(cat <<'END'\ndon't rm (a\nEND\n)\" && rm b", ["-b"]),
    ],
)
def test_a_command_line_is_followed_as_a_shell_would(command: str, paths: list[str]) -> None:
    assert written_paths(command) == paths


@pytest.mark.parametrize(
    ("command", "cwd", "path"),
    [
        ("rm a", "/repo", "-a"),
        ("rm /repo/a /repo/./a", "/repo", "-a"),
        ("cd /repo/src && rm ../a", "/repo", "-a"),
        ("rm /other/a", "/repo", "-/other/a"),
        ("rm /repository/a", "/repo", "-/repository/a"),
        ("cd /other && rm a", "", "-/other/a"),
        ("rm /other/a", "", "-/other/a"),
        ("rm ./b/../a", "", "-a"),
    ],
)
def test_one_file_has_one_path(command: str, cwd: str, path: str) -> None:
    assert written_paths(command, cwd=cwd) == [path]


def test_a_file_is_edited_once_and_its_last_content_wins() -> None:
    edits = Shell().edits("echo one > a; rm b; echo two > a")
    assert edits == (Edit(path="a", digest=digest("two\n")), Edit(path="b", deleted=True))


DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n--- a/old.py\n+++ /dev/null\n"

BLOCKS = (
    "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Delete File: b.py\n*** End Patch\n"
)


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        (f"patch -p1 <<'END'\n{DIFF}END", ["src/a.py", "-old.py"]),
        (f"patch -p2 -d lib <<'END'\n{DIFF}END", ["lib/a.py"]),
        (f"cat <<'END' | git apply -\n{DIFF}END", ["src/a.py", "-old.py"]),
        (f"git apply --check <<'END'\n{DIFF}END", []),
        (
            f"cat > x.patch <<'END'\n{DIFF}END\ngit apply x.patch",
            ["x.patch", "src/a.py", "-old.py"],
        ),
        (f"cat > x.txt <<'END'\n{DIFF}END\npatch -p1 < x.txt", ["x.txt", "src/a.py", "-old.py"]),
        ("patch -p1 < unseen.patch", []),
        ("patch a.py < unseen.patch", ["a.py"]),
        (f"apply_patch <<'END'\n{BLOCKS}END", ["a.py", "-b.py"]),
        (f"apply_patch '{BLOCKS}'", ["a.py", "-b.py"]),
    ],
)
def test_a_patch_writes_the_files_that_it_names(command: str, paths: list[str]) -> None:
    assert written_paths(command) == paths


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("git checkout -- a.py b.py", ("a.py", "b.py")),
        ("git checkout HEAD~1 -- a.py", ("a.py",)),
        ("git checkout src/a.py", ("src/a.py",)),
        ("git checkout HEAD Makefile", ("Makefile",)),
        ("git checkout .", (".",)),
        ("git checkout -f", (".",)),
        ("git checkout main", ()),
        ("git checkout -b topic/a.b", ()),
        ("git checkout v1.2.3", ()),
        ("git restore a.py", ("a.py",)),
        ("git restore -s HEAD~2 --staged --worktree a.py", ("a.py",)),
        ("git restore --staged a.py", ()),
        ("git stash", (".",)),
        ("git stash push -m wip -- a.py", ("a.py",)),
        ("git stash pop", ()),
        ("git stash list", ()),
        ("git reset --hard HEAD", (".",)),
        ("git reset HEAD a.py", ()),
        ("cd src && git checkout a.py; git -C ../lib checkout -- b.py", ("src/a.py", "lib/b.py")),
        ("git status; git diff; rm a", ()),
    ],
)
def test_what_version_control_puts_back_is_named(command: str, paths: tuple[str, ...]) -> None:
    assert reverts(command) == paths


def test_git_moves_removes_and_puts_back() -> None:
    assert written_paths("git checkout -- a.py . && git reset --hard") == ["a.py"]
    assert written_paths("git mv a.py b.py; git rm --cached c; git -C lib rm d") == [
        *("-a.py", "b.py", "-lib/d")
    ]


# -- scripts, in a command or written before ---------------------------------------------------


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
    assert written_paths(f"python - <<'END'\n{program}\nEND\n") == paths


@pytest.mark.parametrize(
    "command",
    [
        *("python -c \"open('a.py', 'w')\"", "python3.12 -u -W error -c \"open('a.py', 'w')\""),
        "F=a.py; python -c \"open('$F', 'w')\"",
        "python -c \"import sys; open(sys.argv[1], 'w')\" a.py",
        *("echo \"open('a.py', 'w')\" | python", "uv run python - <<END\nopen('a.py', 'w')\nEND"),
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


OPENS = "open('a.py', 'w')"


@pytest.mark.parametrize(
    ("name", "text", "commands", "paths"),
    [
        ("/repo/tools/fix.py", OPENS, ["cd src; python ../tools/fix.py"], ["src/a.py"]),
        ("fix.py", "open('/repo/a.py', 'w')", ["python fix.py"], ["a.py"]),
        ("fix.py", OPENS, ["rm fix.py", "python fix.py"], []),
        ("fix.py", OPENS, ["echo pass > fix.py", "python fix.py"], []),
        ("fix.sh", "rm a\n", ["echo 'rm b' >> fix.sh", "sh fix.sh"], ["-a", "-b"]),
        ("fix.sh", "./fix.sh; ./fix.sh; rm a\n" * 100, ["./fix.sh"], ["-a"]),
    ],
    ids=["where it is run", "a tool", "removed", "the last content", "added to", "calls itself"],
)
def test_a_script_that_a_tool_wrote_does_what_stands_in_it_when_it_is_run(
    name: str, text: str, commands: list[str], paths: list[str]
) -> None:
    shell = Shell()
    shell.edits("ls", cwd="/repo")
    shell.note(name, text)
    assert paths_of([shell.edits(each, cwd="/repo") for each in commands][-1]) == paths


def test_the_oldest_script_is_forgotten_first() -> None:
    shell = Shell()
    for number in range(MAX_SCRIPTS + 1):
        shell.note(f"fix{number}.sh", f"rm a{number}")
    assert paths_of(shell.edits("sh fix0.sh; sh fix1.sh")) == ["-a1"]
