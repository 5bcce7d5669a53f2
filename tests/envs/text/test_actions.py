from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from amemgym_env.agent import NO_ANSWER, UNSCORED, Answer, Operation, Value
from amemgym_env.envs.text.actions import answers, say, values
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.envs.text.user import UserModel
from amemgym_env.episode import Episode
from amemgym_env.errors import (
    ActionError,
    BudgetExceeded,
    EpisodeOver,
    ParseError,
    TransportError,
)
from amemgym_env.memory.embedding import HashedTerms, Vectors

ADA = {"scenario": "tiny-ada"}


# ---- actions


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("hello", "expected a dict"),
        (None, "expected a dict"),
        ({"replies": "x"}, "expected the fields .* found 'replies'"),
        ({"reply": None}, "reply: expected a string"),
        ({"reply": "", "memory": "ADD"}, "memory: expected a list or tuple"),
        ({"reply": "", "memory": ["ADD"]}, r"memory\[0\]: expected an Operation"),
        ({"memory": [("add", None, "x")]}, r"memory\[0\], op: expected one of"),
        ({"memory": [("ADD", None, 3)]}, "text: expected a string or None, found int 3"),
        ({"memory": [("DELETE", 1, None)]}, "entry_id: expected a string or None"),
    ],
    ids=str,
)
def test_wrong_types_raise_one_clear_error_and_play_nothing(
    ada: Any, action: Any, message: str
) -> None:
    env = ada()
    before = env.get_state()
    with pytest.raises(ActionError, match=message):
        env.step(action)
    with pytest.raises(TypeError):
        env.step(action)
    assert env.get_state() == before


@pytest.mark.parametrize("given", ["A", [True], [1.0], ["1"], [None], {"0": 1}], ids=str)
def test_b01_09_an_answer_is_an_integer_and_nothing_like_one(
    ada: Any, to_exam: Any, given: Any
) -> None:
    env = ada()
    to_exam(env)
    with pytest.raises(ActionError, match="answers"):
        env.step({"answers": given})


def test_answers_may_be_numpy_integers_answers_or_an_array(ada: Any, to_exam: Any) -> None:
    shown = ada().episode.script.right_shown[0]
    for action in (
        answers([np.int64(index) for index in shown]),  # type: ignore[list-item]
        answers([Answer(index) for index in shown]),
        {"answers": np.array(shown)},
        {"answers": list(shown)},
    ):
        env = ada()
        to_exam(env)
        assert env.step(action)[1] == 1.0


def test_fields_foreign_to_the_phase_are_not_looked_at(ada: Any, right: Any) -> None:
    env = ada()
    env.step({"reply": "x", "answers": "nonsense", "values": None})
    env.step({})
    _, reward, _, _, info = env.step({**right(env), "reply": 7, "memory": [("ADD", None, "x")]})
    assert (reward, info["operations"], env.view.entries()) == (1.0, (), ())


def test_missing_answers_are_no_answer_and_surplus_ones_are_reported(
    ada: Any, to_exam: Any
) -> None:
    env = ada()
    to_exam(env)
    first = env.episode.script.right_shown[0][0]
    _, reward, _, _, info = env.step(answers([first]))
    assert (reward, info["missing"], info["surplus"], info["scored"]) == (0.5, 1, 0, 2)
    assert env.episode.exams[0].answers == (first, NO_ANSWER)
    to_exam(env)
    shown = env.episode.script.right_shown[1]
    _, reward, _, _, info = env.step(answers([*shown, 0, 0, 0]))
    assert (reward, info["missing"], info["surplus"]) == (1.0, 0, 3)


def test_missing_and_surplus_values_of_a_probe_are_counted(right: Any, to_exam: Any) -> None:
    env = AMemGymEnv("tiny", diagnosis=True)
    env.reset(seed=0, options={"scenario": "tiny-ben"})
    to_exam(env)
    env.step(right(env))
    *_, info = env.step(values([[Value(0)], [1, 1]]))
    assert (info["missing"], info["surplus"]) == (1, 2)
    assert env.episode.probes[0].values == ((0, NO_ANSWER),)


def test_operations_are_reported_with_what_became_of_them(ada: Any) -> None:
    env = ada(capacity=1)
    operations = (Operation.add("a"), Operation.add("b"), Operation.delete("9"), Operation.noop())
    *_, info = env.step(say("", *operations))
    assert [item.status.value for item in info["operations"]] == [
        "applied",
        "full",
        "unknown_id",
        "noop",
    ]
    assert (info["applied"], info["refused"]) == (1, 2)
    assert env.applied == info["operations"]


# ---- rewards and ends


def test_each_exam_pays_its_accuracy_or_the_last_pays_the_mean(ada: Any, run: Any) -> None:
    def half(env: AMemGymEnv) -> dict[str, Any]:
        shown = env.episode.script.right_shown[env.episode.place.period]
        good = env.episode.place.period == 1
        return answers(shown if good else [shown[0], NO_ANSWER])

    pays = {
        mode: [step[1] for step in run(ada(reward=mode), half)] for mode in ("period", "terminal")
    }
    assert pays["period"] == [0.0, 0.0, 0.5, 0.0, 0.0, 1.0]
    assert pays["terminal"] == [0.0, 0.0, 0.0, 0.0, 0.0, 0.75]


def test_terminal_reward_comes_with_the_last_exam_also_before_a_probe(
    ada: Any, right: Any, run: Any
) -> None:
    steps = run(ada(reward="terminal", diagnosis=True), right)
    assert [step[1] for step in steps][-2:] == [1.0, 0.0]
    assert steps[-1][2:4] == (True, False)


def test_b08_14_unscored_cells_leave_the_mean_and_an_exam_without_any_pays_nothing(
    ada: Any, to_exam: Any
) -> None:
    env = ada()
    to_exam(env)
    shown = env.episode.script.right_shown[0]
    _, reward, _, _, info = env.step(answers([shown[0], UNSCORED]))
    assert (reward, info["accuracy"], info["scored"]) == (1.0, 1.0, 1)
    to_exam(env)
    _, reward, _, _, info = env.step(answers([UNSCORED, UNSCORED]))
    assert (reward, info["accuracy"], info["scored"]) == (0.0, None, 0)
    assert info["exams"] == (1.0, None)


def test_b06_08_the_natural_end_is_terminated_also_at_the_limit(
    ada: Any, right: Any, run: Any
) -> None:
    steps = run(ada(max_steps=6), right)
    assert [step[2:4] for step in steps] == [(False, False)] * 5 + [(True, False)]
    assert "error" not in steps[-1][4]
    env = ada(max_steps=6)
    run(env, right)
    with pytest.raises(EpisodeOver):
        env.step(say(""))


def test_b06_15_a_limit_truncates_and_keeps_the_scores_so_far(
    ada: Any, right: Any, run: Any
) -> None:
    env = ada(max_steps=4)
    steps = run(env, right)
    assert len(steps) == 4
    assert steps[-1][2:4] == (False, True)
    assert steps[-1][4]["exams"] == (1.0,)
    assert steps[-1][4]["hash"] == env.episode.digest()
    assert "error" not in steps[-1][4]


def test_b06_08_a_failing_embedding_truncates_with_the_error_and_no_zero_score(ada: Any) -> None:
    class Failing(HashedTerms):
        def __call__(self, texts: Any) -> Vectors:
            raise TransportError("no connection")

    env = ada(embedder=Failing(), top_k=1)
    observation, reward, terminated, truncated, info = env.step(say("", Operation.add("x")))
    assert (terminated, truncated, reward) == (False, True, 0.0)
    assert info["error"] == "TransportError: no connection"
    assert info["exams"] == ()
    assert observation in env.observation_space


def test_a_step_before_reset_is_refused() -> None:
    with pytest.raises(EpisodeOver, match="reset"):
        AMemGymEnv("tiny").step(say(""))


# ---- user models


@pytest.fixture
def follow_ups(ada: Any, run: Any) -> Callable[[UserModel], list[tuple[Any, ...]]]:
    return lambda user: run(ada(user=user, rounds_update=3), lambda env: say("hm"))  # type: ignore[no-any-return]


def test_a_user_model_words_the_follow_ups_and_nothing_else(follow_ups: Any, ada: Any) -> None:
    seen: list[tuple[str, str]] = []

    def user(episode: Episode, reply: str) -> str:
        seen.append((episode.message, reply))
        return f"mine {len(seen)}"

    steps = follow_ups(user)
    messages = [step[0]["message"] for step in steps if step[0]["message"]]
    plain = ada().episode.script
    assert messages == [
        plain.periods[0][1].utterances[0].text,
        plain.periods[1][0].utterances[0].text,
        "mine 1",
        "mine 2",
    ]
    assert seen == [(plain.periods[1][0].utterances[0].text, "hm"), ("mine 1", "hm")]
    assert steps[-1][4]["usage"] == {"user": {"calls": 2, "failures": 0}}


@pytest.mark.parametrize("failure", [TransportError("x"), ParseError("x"), None, "  "], ids=repr)
def test_when_a_user_model_fails_the_scripts_words_take_its_place(
    follow_ups: Any, ada: Any, run: Any, failure: Any
) -> None:
    def user(episode: Episode, reply: str) -> str | None:
        if isinstance(failure, Exception):
            raise failure
        return failure  # type: ignore[no-any-return]

    script = [step[0] for step in run(ada(rounds_update=3), lambda env: say("hm"))]
    steps = follow_ups(user)
    assert [step[0] for step in steps] == script
    assert steps[-1][4]["usage"] == {"user": {"calls": 2, "failures": 2}}


def test_a_spent_budget_ends_the_episode_and_a_bug_is_no_failure(follow_ups: Any) -> None:
    def spent(episode: Episode, reply: str) -> str:
        raise BudgetExceeded("5.00 dollars are spent")

    last = follow_ups(spent)[-1]
    assert last[2:4] == (False, True)
    assert last[4]["error"] == "BudgetExceeded: 5.00 dollars are spent"

    def broken(episode: Episode, reply: str) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        follow_ups(broken)
