"""A person at the terminal: what is shown, what is written, and how it is scored."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from amemgym_env.agent import Operation
from amemgym_env.envs.text.actions import answers, say
from amemgym_env.envs.text.env import AMemGymEnv
from experiments.play import main

ROOT = Path(__file__).parents[2]


def played(
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *words: str,
) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    assert main(words) == 0
    return capsys.readouterr().out


def right_lines(scenario: int = 0) -> list[str]:
    """Return what someone would type who says nothing and knows everything."""
    env = AMemGymEnv("tiny")
    script = env.scenarios[scenario]
    env.reset(seed=0, options={"scenario": script.id})
    lines = []
    for place in env.episode.places:
        if place.phase == 0:
            lines.append("")
        else:
            lines += [str(right + 1) for right in env.episode.script.right_shown[place.period]]
    return lines


def test_who_answers_everything_right_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = played(right_lines(), monkeypatch, capsys)
    row = next(line for line in out.splitlines() if line.strip().startswith("you "))
    assert row.split()[1] == "1.000"
    assert "== end ==" in out
    assert "stopped" not in out
    assert max(map(len, out.split("Accuracy by period")[1].splitlines())) <= 80


def test_operations_are_noted_refused_and_done_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["/add likes tea", "/update 1 likes coffee", "/delete 7", "/add", "/walk", "/memory"]
    out = played([*lines, "Fine.", "/quit"], monkeypatch, capsys)
    assert "noted: ADD likes tea" in out
    assert "refused: unknown id" in out
    assert "/add: expected TEXT" in out
    assert "/walk: unknown" in out
    assert "[memory after this turn: 1 entry]\n    1  likes coffee  (2024-01-20)" in out
    assert "assistant: Fine.\n  ADD 1 'likes tea': applied\n  UPDATE 1 'likes coffee'" in out
    assert "[memory: 1 entry]" in out
    assert "stopped" in out


def test_an_answer_that_is_none_of_the_choices_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = right_lines()
    first = lines.index(next(line for line in lines if line))
    out = played([*lines[:first], "9", "two", "", "2"], monkeypatch, capsys)
    assert "expected a number from 1 to 2, found '9'" in out
    assert "found 'two'" in out
    assert "no answer" in out


def test_the_memory_holds_what_it_may(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = played(["/add one", "/add two", "/quit"], monkeypatch, capsys, "--capacity", "1")
    assert "[memory: 0 of 1 entries]" in out
    assert "refused: full" in out


def test_a_long_evening_fits_80_columns_and_ends_in_what_was_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", lambda asked: print(asked) or "")
    assert main(["--scenarios", "base", "--difficulty", "default"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "121 rounds of talk in 11 periods; each ends in an exam of 10 questions." in out
    assert "exam, question 10 of 10: " in out
    assert "right was: " in out.split("Accuracy by period")[1]
    assert out.rstrip().endswith("and 105 more")


@pytest.mark.slow
def test_an_unknown_scenario_is_an_error_without_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments.play", "--scenario", "nobody"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        input="",
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_the_terminal_looks_as_the_human_render_mode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    env = AMemGymEnv("tiny", render_mode="human")
    env.reset(seed=0, options={"scenario": env.scenarios[0].id})
    env.step(say("Fine.", Operation.add("likes tea")))
    env.step(say("Well."))
    env.step(answers([0, 1]))
    rendered = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(set(rendered)) == len(rendered), "nothing is told twice"
    out = played(["/add likes tea", "Fine.", "Well.", "1", "2"], monkeypatch, capsys)
    typed = out.replace("you> ", "").replace("answer 1-2 (Enter: none)> ", "").splitlines()
    at = 0
    for line in rendered:
        at = typed.index(line, at) + 1
