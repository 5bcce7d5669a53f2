"""Terminal game: a person takes the role of the assistant, its memory and its exams.

    python -m experiments.play
    python -m experiments.play --scenarios base --difficulty default

The dialogue looks as in `AMemGym-v0` with `render_mode="human"`. Nothing is told of which answers
were right until the end, as for every agent. A plain command line; reads standard input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress

from rich.box import SIMPLE_HEAD
from rich.table import Table

from amemgym_env.agent import NO_ANSWER, Entry, Operation, Phase, Question
from amemgym_env.envs.rewards import exam_scores, mean
from amemgym_env.envs.text.actions import answers, say
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.envs.text.render import transcript, wrapped
from amemgym_env.episode import Episode
from amemgym_env.errors import InputError
from amemgym_env.evaluation import baselines as floors
from amemgym_env.evaluation.metrics import uniform_guess
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.memory.bank import in_time_order
from amemgym_env.scenarios.difficulty import DIFFICULTIES
from experiments.app.terminal import ORACLE_NOTE, WIDTH, number, terminal

HELP = """\
  TEXT             say it, which ends your turn (an empty line: say nothing)
  /add TEXT        write a new entry
  /update ID TEXT  change an entry
  /delete ID       drop an entry
  /memory          show the whole memory
  /help            show this
  /quit            stop, and see the scores so far
Operations are done when your turn ends, in order."""


MOST_MISSED = 5
"""Missed questions whose right answers are told at the end."""


class Quit(Exception):
    """The person has had enough."""


def main(arguments: Sequence[str]) -> int:
    """Play one scenario with whoever sits at the terminal; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        chosen = list(named_scenarios(options.scenarios))
        env = AMemGymEnv(
            chosen,
            difficulty=options.difficulty,
            capacity=options.capacity,
            top_k=options.top_k,
        )
        env.reset(seed=options.seed, options={"scenario": options.scenario or chosen[0].id})
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    _introduce(env.episode)
    with suppress(ImportError):  # where there is one, lines are edited with the arrow keys
        import readline  # noqa: F401
    try:
        _play(env)
    except (Quit, EOFError, KeyboardInterrupt):
        print("\nstopped")
    _print_scores(env.episode)
    env.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.play", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--scenarios", default="tiny", help="a set's name or a path")
    parser.add_argument("--scenario", help="id of the scenario; default: the set's first")
    parser.add_argument("--difficulty", default="none", help=", ".join(DIFFICULTIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--capacity", type=int, help="entries that the memory holds")
    parser.add_argument("--top-k", type=int, help="entries that are shown for a message")
    return parser


def _introduce(episode: Episode) -> None:
    scenario, rounds = episode.script.scenario, len(episode.script.utterances)
    print(f"You are the assistant of {_whose(episode)}. The exams ask what suits them now.")
    print("What you do not write down, you will have to do without.")
    print(
        f"{rounds} rounds of talk in {len(scenario.periods)} periods; each ends in an exam of "
        f"{len(scenario.qas)} questions."
    )
    print(HELP)


def _whose(episode: Episode) -> str:
    profile = episode.script.scenario.user_profile
    return str(profile.get("name") or episode.script.scenario.id)


def _play(env: AMemGymEnv) -> None:
    print(f"\n{wrapped(transcript(env.episode))}")
    over = False
    while not over:
        position = env.episode.position
        if env.episode.place.phase is Phase.DIALOGUE:
            action = _turn(env)
        else:
            asked = env.exam().questions
            action = answers([_answer(question, n, len(asked)) for n, question in enumerate(asked)])
        *_, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        print(wrapped(transcript(env.episode, start=position, told=True)))


def _turn(env: AMemGymEnv) -> dict[str, object]:
    """Return what the person says and does to the memory in one round."""
    turn = env.turn()
    _print_memory("memory", turn.memory, env.episode)
    operations: list[Operation] = []
    while True:
        given = input("you> ").strip()
        command, _, rest = given.partition(" ")
        if not command.startswith("/"):
            return say(given, *operations)
        if command == "/quit":
            raise Quit
        if command == "/help":
            print(HELP)
        elif command == "/memory":
            bank, _ = env.episode.bank.apply_all(operations, turn.time, env.episode.turn)
            _print_memory("memory after this turn", bank.entries, env.episode, everything=True)
        else:
            _note(operations, command, rest.strip(), env)


def _note(operations: list[Operation], command: str, rest: str, env: AMemGymEnv) -> None:
    """Add an operation to those of the turn, or say what is wrong with it."""
    entry_id, _, text = rest.partition(" ")
    made = {
        "/add": Operation.add(rest) if rest else None,
        "/update": Operation.update(entry_id, text.strip()) if text.strip() else None,
        "/delete": Operation.delete(entry_id) if entry_id else None,
    }
    if command not in made:
        print(f"  {command}: unknown; /help shows what there is")
        return
    operation = made[command]
    if operation is None:
        print(f"  {command}: expected {'TEXT' if command == '/add' else 'an ID and what it needs'}")
        return
    episode = env.episode
    _, outcomes = episode.bank.apply_all([*operations, operation], episode.time, episode.turn)
    if outcomes[-1].status.refused:
        print(f"  refused: {outcomes[-1].status.value.replace('_', ' ')}")
        return
    operations.append(operation)
    print(f"  noted: {operation.op.value} {rest}")


def _print_memory(
    name: str, entries: Sequence[Entry], episode: Episode, everything: bool = False
) -> None:
    bank = episode.bank
    held = len(entries) if everything else len(bank.entries)
    size = f"{held}" if bank.capacity is None else f"{held} of {bank.capacity}"
    count = "" if len(entries) == held else f", {len(entries)} shown"
    print(f"  [{name}: {size} {'entry' if size == '1' else 'entries'}{count}]")
    for entry in in_time_order(entries):
        _print_entry(entry)


def _print_entry(entry: Entry) -> None:
    print(wrapped(f"    {entry.id}  {entry.text}  ({entry.updated_at[:10]})"))


def _answer(question: Question, number: int, count: int) -> int:
    """Return the index of the choice that the person takes."""
    print(wrapped(f"\nexam, question {number + 1} of {count}: {question.text}"))
    for place, choice in enumerate(question.choices, start=1):
        print(wrapped(f"  {place}. {choice}"))
    if question.memory:
        print("  [memory]")
    for entry in question.memory:
        _print_entry(entry)
    while True:
        given = input(f"answer 1-{len(question.choices)} (Enter: none)> ").strip()
        if given == "/quit":
            raise Quit
        if not given:
            return NO_ANSWER
        if given.isdecimal() and 1 <= int(given) <= len(question.choices):
            return int(given) - 1
        print(f"  expected a number from 1 to {len(question.choices)}, found {given!r}")


def _print_scores(episode: Episode) -> None:
    """Print the exams' accuracies, with what would have scored without a memory."""
    script = episode.script
    if not episode.exams:
        print("No exam was taken.")
        return
    periods = [exam.period for exam in episode.exams]
    scores = [exam_scores(exam.answers, script.right_shown[exam.period]) for exam in episode.exams]
    rows = {
        "you": [mean(row) for row in scores],
        "random": [mean(row) for row in uniform_guess(script.scenario)[periods]],
        "first shown": [mean(row) for row in floors.first_shown(script)[periods]],
        "initial state": [mean(row) for row in floors.initial_state(script)[periods]],
        "previous truth (oracle)": [mean(row) for row in floors.one_period_late(script)[periods]],
    }
    width = (WIDTH - 30) // 5  # periods that fit beside the names and the mean
    table = Table(box=SIMPLE_HEAD, title="Accuracy by period", title_justify="left")
    table.add_column("", no_wrap=True)
    table.add_column("overall", justify="right", no_wrap=True)
    shown = range(max(0, len(periods) - width), len(periods))
    for place in shown:
        table.add_column(str(periods[place]), justify="right", no_wrap=True)
    for name, values in rows.items():
        overall = number(sum(values) / len(values))
        table.add_row(name, overall, *(number(values[place], 2) for place in shown))
    console = terminal()
    console.print(table)
    console.print(ORACLE_NOTE, style="dim")
    _print_missed(episode)


def _print_missed(episode: Episode) -> None:
    """Print what would have been right, now that it is over."""
    script = episode.script
    missed = [
        (exam.period, question, right)
        for exam in episode.exams
        for question, right in enumerate(script.right_shown[exam.period])
        if exam.answers[question] != right
    ]
    for period, question, right in missed[:MOST_MISSED]:
        print(wrapped(f"missed in period {period}: {script.scenario.qas[question].query}"))
        print(wrapped(f"  right was: {script.choices_shown(question)[right]}"))
    if len(missed) > MOST_MISSED:
        print(f"and {len(missed) - MOST_MISSED} more")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
