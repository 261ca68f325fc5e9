"""The command line: exit codes, one clear line for bad input and never a traceback (SPEC.md sections 7 and 11)."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assembler import Settings, assemble, load
from assembler.cli import main
from assembler.table import render
from memorybank.errors import StorageError

ROOT = Path(__file__).parents[2]

ADVENTURE = {
    "format": "adventure/1",
    "memory_bank": False,
    "ai_instructions": "Write in the second person.",
    "authors_note": "Dark and terse.",
    "story_cards": [
        {"id": "c1", "triggers": ["gate"], "entry": "The gate is of iron."},
        {"id": "c2", "triggers": "dragon, wyrm", "entry": "Dragons are asleep."},
    ],
    "actions": [
        {"id": f"a{number}", "kind": kind, "text": f"You stand at gate {number}. İyi geceler, 佐藤 👍."}
        for number, kind in enumerate(["start", "do", "output", "say", "output", "do"] * 5, start=1)
    ],
}
EMPTY = {"format": "adventure/1", "memory_bank": False, "ai_instructions": "Be kind. " * 50}


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "adventure.json"
    path.write_text(json.dumps(ADVENTURE), encoding="utf-8")
    return path


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process; return exit code, standard output and standard error."""

    def call(*arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return call


def run_process(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m assembler` as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "assembler", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        **options,
    )


def assert_one_clear_line(code: int, out: str, err: str, *words: str) -> None:
    assert code == 2
    assert out == ""
    assert err.startswith("assembler")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert all(word in err for word in words), err


# What is printed.


@pytest.mark.parametrize(
    ("arguments", "settings", "anchor"),
    [
        ([], {}, None),
        (["--context", "200"], {"context_size": 200}, None),
        (["--context", "200", "--reserve", "50"], {"context_size": 150}, None),
        (["--tokenizer", "cl100k_base"], {"tokenizer": "cl100k_base"}, None),
        (["--tokenizer", "chars/4", "--context", "99"], {"tokenizer": "chars/4", "context_size": 99}, None),
        (["--layout", "cache_friendly"], {"layout": "cache_friendly"}, None),
        (["--layout", "cache-friendly", "--anchor", "a20"], {"layout": "cache_friendly"}, "a20"),
        (["--waiting"], {"list_unmatched": True}, None),
        (["--no-memory-bank"], {}, None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_json_is_what_assemble_returns(file, run, arguments, settings, anchor):
    code, out, err = run("build", file, "--json", *arguments)
    assert (code, err) == (0, "")
    assert json.loads(out) == assemble(load(file), None, Settings(**settings), anchor=anchor).to_dict()


def test_text_is_the_context_alone(file, run):
    assert run("build", file, "--text", "--context", 300) == (
        0,
        assemble(load(file), None, Settings(300)).text + "\n",
        "",
    )


@pytest.mark.parametrize("full", [[], ["--full"]], ids=["short", "full"])
def test_report_is_the_table_alone(file, run, full):
    report = assemble(load(file), None, Settings(300)).report
    code, out, err = run("build", file, "--report", "--context", 300, *full)
    assert (code, out, err) == (0, render(report, full=bool(full)) + "\n", "")


def test_both_by_default(file, run):
    code, out, err = run("build", file, "--context", 300)
    context = assemble(load(file), None, Settings(300))
    assert (code, err) == (0, "")
    assert out.startswith(context.text + "\n")
    assert out.endswith(render(context.report) + "\n")


def test_a_dash_reads_standard_input(file, run):
    code, out, err = run("build", "-", "--json", stdin=file.read_bytes())
    assert (code, err) == (0, "")
    assert json.loads(out) == assemble(load(file), None, Settings()).to_dict()


def test_a_byte_order_mark_is_no_fault(tmp_path, run):
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(ADVENTURE).encode())
    assert run("build", path, "--text")[0] == 0


@pytest.mark.filterwarnings("default")
def test_unknown_fields_are_noted_in_one_line(tmp_path, run):
    path = tmp_path / "more.json"
    path.write_text(json.dumps(ADVENTURE | {"mood": 1}))
    code, out, err = run("build", path, "--text")
    assert code == 0
    assert "Recent Story:" in out
    assert err == "note: unknown fields are kept but not used: mood\n"


@pytest.mark.parametrize("text", ["\\ud83d\\udc4d", "half \\ud83d", "a\\u0000b", "<|endoftext|>"])
def test_hostile_text_is_printed(tmp_path, run, text):
    path = tmp_path / "hostile.json"
    actions = f'[{{"id": "a1", "kind": "output", "text": "{text}"}}]'
    path.write_text(f'{{"format": "adventure/1", "memory_bank": false, "actions": {actions}}}')
    for shape in ("--text", "--json", "--report"):
        code, out, err = run("build", path, shape)
        assert (code, err) == (0, "")
        out.encode()


# Faults of the document.


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", ["line 1"], id="empty file"),
        pytest.param(b'{"format": "adventure/1", "act', ["line 1, column", "JSON"], id="truncated"),
        pytest.param(b'{"format": "adventure/1", "title": "\xff"}', ["byte 36", "UTF-8"], id="invalid UTF-8"),
        pytest.param(json.dumps(EMPTY).encode("utf-16"), ["UTF-8"], id="UTF-16"),
        pytest.param(b"[]", ["an object", "a list"], id="a list"),
        pytest.param(b"null", ["an object", "null"], id="null"),
        pytest.param(b"{}", ["format", "adventure/1"], id="no format"),
        pytest.param(b'{"format": "adventure/9"}', ["format", "adventure/9"], id="another format"),
        pytest.param(b'{"format": "adventure/1", "actions": {}}', ["actions", "a list"], id="wrong type of a list"),
        pytest.param(b'{"format": "adventure/1", "title": 5}', ["title", "a string"], id="wrong type of a text"),
        pytest.param(
            b'{"format": "adventure/1", "actions": [{"kind": "dance\\n"}]}',
            ["actions[0].kind", "dance"],
            id="unknown kind",
        ),
        pytest.param(
            b'{"format": "adventure/1", "memories": [{"id": "a\\nb"}, {"id": "a\\nb"}]}',
            ["memories[1].id"],
            id="same id",
        ),
        pytest.param(b"[" * 50_000, ["JSON"], id="too deep"),
    ],
)
@pytest.mark.parametrize("from_stdin", [False, True], ids=["file", "stdin"])
def test_a_faulty_document_is_one_line_with_the_place(tmp_path, run, data, words, from_stdin):
    path = tmp_path / "faulty.json"
    path.write_bytes(data)
    found = run("build", "-", stdin=data) if from_stdin else run("build", path)
    assert_one_clear_line(*found, *words, *([] if from_stdin else ["faulty.json"]))


def test_a_missing_file(tmp_path, run):
    assert_one_clear_line(*run("build", tmp_path / "nowhere.json"), "nowhere.json", "No such file")


def test_a_folder(tmp_path, run):
    assert_one_clear_line(*run("build", tmp_path), str(tmp_path), "directory")


def test_a_file_that_may_not_be_read(tmp_path, run, monkeypatch):
    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert_one_clear_line(*run("build", tmp_path / "x.json"), "x.json", "Permission denied")


# Faults of the call.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--context", "0"], ["context_size: 0", "1 to"]),
        (["--context", "-5"], ["-5", "1 to"]),
        (["--context", "4096.5"], ["--context", "4096.5"]),
        (["--context", "many"], ["--context", "many"]),
        (["--context", ""], ["--context"]),
        (["--context", "null"], ["--context", "null"]),
        (["--context", str(10**30)], ["context_size", "out of range"]),
        (["--context"], ["--context"]),
        (["--reserve", "-1"], ["--reserve", "-1"]),
        (["--reserve", "4096"], ["--reserve", "4096", "4095"]),
        (["--reserve", "4097"], ["--reserve", "4097"]),
        (["--reserve", "x"], ["--reserve", "x"]),
        (["--context", "300", "--reserve", "300"], ["--reserve", "300", "299"]),
        (["--context", "300", "--reserve", "301"], ["--reserve", "301"]),
        (["--tokenizer", "gpt-9"], ["gpt-9", "o200k_base", "chars/4"]),
        (["--tokenizer", ""], ["tokenizer"]),
        (["--tokenizer", "/nowhere/tokenizer.json"], ["/nowhere/tokenizer.json"]),
        (["--layout", "fast"], ["layout", "fast", "classic, cache_friendly"]),
        (["--json", "--text"], ["--text", "--json"]),
        (["--shiny"], ["--shiny"]),
        (["another.json"], ["another.json"]),
        (["--context", "10"], ["Front Memory", "10"]),
    ],
    ids=lambda value: " ".join(value)[:40] if value and value[0].startswith(("-", "another")) else "",
)
def test_a_faulty_call_is_one_line(file, run, arguments, words):
    assert_one_clear_line(*run("build", file, *arguments), *words)


@pytest.mark.parametrize("arguments", [[], ["dance"], ["build"], ["export", "x.json"], [""]], ids=" ".join)
def test_a_call_that_lacks_something_is_one_line(run, arguments):
    assert_one_clear_line(*run(*arguments), "--help")


def test_a_tokenizer_file_that_is_none_is_one_line(file, run):
    assert_one_clear_line(*run("build", file, "--tokenizer", file), str(file))


@pytest.mark.parametrize("reserve", [0, 200, 299])
def test_the_reserve_is_taken_off_to_the_letter(tmp_path, run, reserve):
    path = tmp_path / "empty.json"
    path.write_text(json.dumps(EMPTY))
    code, out, _ = run("build", path, "--json", "--context", 300, "--reserve", reserve)
    assert code == 0
    assert json.loads(out)["report"]["context_size"] == 300 - reserve


@pytest.mark.parametrize("size", ["4096", str(10**9), str(2**31 - 1)])
def test_large_sizes_are_honest_work(file, run, size):
    code, out, _ = run("build", file, "--json", "--context", size)
    assert code == 0
    found = json.loads(out)
    assert found["report"]["context_size"] == int(size)
    assert found["text"].count("You stand at gate") == 30


def test_a_database_that_fails_is_one_line(file, run, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr("assembler.context.assemble", fail)
    code, out, err = run("build", file)
    assert (code, out, err) == (2, "", "assembler: the disk is full\n")


def test_a_fault_of_the_program_is_seen_as_one(file, run, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("assembler.context.assemble", fail)
    with pytest.raises(ZeroDivisionError):  # Python prints it and ends with exit code 1
        run("build", file)


# As a process.


def test_as_a_module(file):
    done = run_process("build", file, "--json", "--context", 300)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == assemble(load(file), None, Settings(300)).to_dict()


def test_a_faulty_document_as_a_process(tmp_path):
    path = tmp_path / "faulty.json"
    path.write_text("{")
    done = run_process("build", path)
    assert_one_clear_line(done.returncode, done.stdout, done.stderr, "faulty.json")


def test_a_name_that_is_no_unicode_is_one_line():
    command = [sys.executable, "-m", "assembler", "build", b"nowhere-\xff.json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert_one_clear_line(done.returncode, done.stdout, done.stderr, "nowhere-")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_the_locale_changes_nothing(file, locale):
    environment = os.environ | {"LC_ALL": locale, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run_process("build", file, "--text", "--context", 300, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == assemble(load(file), None, Settings(300)).text + "\n"


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_bytes_in_every_process(file, seed):
    done = run_process("build", file, "--json", "--context", 300, env=os.environ | {"PYTHONHASHSEED": seed})
    expected = json.dumps(assemble(load(file), None, Settings(300)).to_dict(), ensure_ascii=False, indent=2)
    assert done.stdout == expected + "\n"


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("shape", ["--text", "--json"])
def test_a_reader_that_has_seen_enough_is_no_fault(tmp_path, size, shape):
    path = tmp_path / "adventure.json"
    path.write_text(json.dumps(EMPTY | {"ai_instructions": "Be kind. " * (10 if size == "small" else 40_000)}))
    process = subprocess.Popen(
        [sys.executable, "-m", "assembler", "build", str(path), shape, "--context", "1000000"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if size == "large":
        process.stdout.read(1)
    process.stdout.close()
    with process.stderr:
        err = process.stderr.read().decode()
    assert (process.wait(60), err) == (0, "")


@pytest.mark.parametrize(
    ("redirect", "codes", "lines"),
    [
        pytest.param(">&-", (0, 2), 1, id="standard output is closed"),
        pytest.param(">/dev/full", (1, 2), 1, id="the disk is full"),
        pytest.param("2>&-", (0,), 0, id="standard error is closed"),
    ],
)
def test_a_stream_that_is_not_there_is_no_traceback(file, redirect, codes, lines):
    command = f'"$0" -m assembler build "$1" --text {redirect}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in codes
    assert done.stderr.count("\n") <= lines, done.stderr


def test_standard_input_that_is_closed_is_one_line():
    command = '"$0" -m assembler build - --text <&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert_one_clear_line(done.returncode, done.stdout, done.stderr)


HEAVY = ["torch", "faiss", "numpy", "sqlalchemy", "tiktoken", "tokenizers", "rich", "fastapi", "sentence_transformers"]
HEAVY += ["onnx", "onnxruntime"]


def imported_by(*arguments: str) -> set[str]:
    """Heavy packages that a command imports."""
    code = (
        "import sys\n"
        "from assembler.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "command", [[], ["build"], ["import"], ["export"]], ids=lambda command: "".join(command) or "all"
)
def test_help_starts_nothing_heavy(command):
    assert imported_by(*command, "--help") == set()


def test_a_context_without_recall_starts_no_model(file, tmp_path):
    assert imported_by("build", str(file), "--text") <= {"tiktoken"}
    on = tmp_path / "on.json"
    on.write_text(json.dumps(ADVENTURE | {"memory_bank": True}))
    assert "torch" not in imported_by("build", str(on), "--text", "--no-memory-bank")
    assert "torch" not in imported_by("build", str(on), "--text")  # the bank is on, and there is no memory in it


# A stored bank.


@pytest.fixture
def stored(tmp_path):
    """A database with a bank of two memories."""
    from memorybank import MemoryBank
    from memorybank.embedding.testing import HashingEmbedder

    database = tmp_path / "memories.sqlite"
    with MemoryBank.open(database, "tale", embedder=HashingEmbedder()) as bank:
        bank.add_many(["Mara hid the silver key.", "The wolf has a thorn in its paw."])
    return database


@pytest.fixture
def story(tmp_path):
    """A document that leaves the memory bank on."""
    path = tmp_path / "story.json"
    path.write_text('{"format": "adventure/1", "actions": [{"kind": "do", "text": "help the wolf with its paw"}]}')
    return path


def test_a_stored_bank_is_recalled(stored, story, run):
    code, out, _ = run(
        *("build", story, "--bank", stored, "--bank-name", "tale", "--model", "hashing-64", "--text", "--context", 200)
    )
    assert (code, out.splitlines()[0]) == (0, "Memories:")
    assert {"Mara hid the silver key.", "The wolf has a thorn in its paw."} <= set(out.splitlines())


def test_what_the_document_holds_beside_a_stored_bank_is_noted(stored, story, run):
    """And not where the bank is: the URL of a server may have a password in it."""
    document = json.loads(story.read_text()) | {"memories": [{"text": "Rain falls."}]}
    story.write_text(json.dumps(document))
    bank = ("--bank", stored, "--bank-name", "tale", "--model", "hashing-64")
    code, out, err = run("build", story, *bank, "--text")
    assert (code, err) == (0, "note: --bank recalls from a database; the 1 in the document are not used\n")
    assert "Rain falls." not in out


def test_a_bank_that_is_not_there_is_one_line_and_makes_no_file(story, tmp_path, run):
    code, out, err = run("build", story, "--bank", tmp_path / "typo.sqlite")
    assert_one_clear_line(code, out, err)
    assert not (tmp_path / "typo.sqlite").exists()


def test_a_bank_for_a_document_that_turns_it_off_is_refused(stored, file, run):
    code, out, err = run("build", file, "--bank", stored)
    assert_one_clear_line(code, out, err, "memory_bank")
    code, out, err = run("build", file, "--bank", stored, "--no-memory-bank")
    assert_one_clear_line(code, out, err, "--no-memory-bank")


def test_another_model_than_the_banks_is_one_line(stored, story, run):
    code, out, err = run("build", story, "--bank", stored, "--bank-name", "tale", "--model", "hashing-32")
    assert_one_clear_line(code, out, err)
    assert "hashing-64" in err
    assert "hashing-32" in err


def test_an_output_that_cannot_be_written_is_named_as_given(file, tmp_path, run):
    code, out, err = run("export", file, "--as", "text", "-o", tmp_path / "nowhere" / "x.txt")
    assert_one_clear_line(code, out, err)
    assert str(tmp_path / "nowhere" / "x.txt") in err
    assert ".tmp" not in err


def test_an_adventure_without_actions_says_why_it_is_empty(tmp_path, run):
    cards = tmp_path / "cards.json"
    cards.write_text('{"format": "adventure/1", "story_cards": [{"triggers": ["wolf"], "entry": "A wolf."}]}')
    code, _, err = run("build", cards)
    assert code == 0
    assert "no action with text" in err


def test_the_documents_memories_are_not_dropped_without_a_word(stored, tmp_path, run):
    path = tmp_path / "remembers.json"
    path.write_text('{"format": "adventure/1", "actions": [{"kind": "do", "text": "x"}], "memories": [{"text": "y"}]}')
    options = ("--bank", stored, "--bank-name", "tale", "--model", "hashing-64")
    code, _, err = run("build", path, *options)
    assert code == 0
    assert "the 1 in the document are not used" in err


@pytest.mark.parametrize(
    "options",
    [("--anchor", "a1"), ("--bank-name", "tale")],
    ids=["anchor in the classic layout", "bank name without a bank"],
)
def test_an_option_that_would_have_no_effect_is_refused(story, run, options):
    assert_one_clear_line(*run("build", story, *options))


def test_the_anchor_is_printed(file, run):
    _, out, _ = run("build", file, "--layout", "cache-friendly", "--report", "--context", 200)
    _, given, _ = run("build", file, "--layout", "cache-friendly", "--json", "--context", 200)
    assert out.endswith(f"anchor for the next turn: {json.loads(given)['anchor']}\n")


def test_an_output_that_is_a_link_stays_one(file, tmp_path, run):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    assert run("export", file, "--as", "text", "-o", link)[0] == 0
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8").startswith("You stand at gate 1.")
    assert_one_clear_line(*run("export", file, "--as", "text", "-o", tmp_path))


def test_the_story_summary_comes_from_the_stored_bank_unless_the_document_has_one(stored, story, run):
    from memorybank import MemoryBank
    from memorybank.embedding.testing import HashingEmbedder

    with MemoryBank.open(stored, "tale", embedder=HashingEmbedder()) as bank:
        bank.put_actions([{"id": "a1", "kind": "do", "text": "help the wolf with its paw"}])
        bank.edit_summary("Mara fled from the chapel.")
    call = ("build", story, "--bank", stored, "--bank-name", "tale", "--model", "hashing-64", "--text")
    assert "Story Summary:\nMara fled from the chapel.\n" in run(*call)[1]
    story.write_text(json.dumps(json.loads(story.read_text()) | {"story_summary": "The war is over."}))
    code, out, _ = run(*call)
    assert (code, "Mara fled" in out, "Story Summary:\nThe war is over.\n" in out) == (0, False, True)
