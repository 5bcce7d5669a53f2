from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import amemgym_env
from amemgym_env.agent import NO_ANSWER, Operation, Phase
from amemgym_env.envs.text.actions import answers, say
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.envs.text.observations import exam_from, probe_from, turn_from
from amemgym_env.memory.embedding import HashedTerms, Vectors

ADA = {"scenario": "tiny-ada"}


# ---- the Gymnasium contract


@pytest.mark.parametrize(
    "settings",
    [{}, {"diagnosis": True, "top_k": 1, "capacity": 2}, {"difficulty": "hard"}],
    ids=["default", "diagnosis", "hard"],
)
def test_gymnasiums_checker_is_silent(settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make("AMemGym-v0", render_mode="ansi", **settings)
        check_env(env.unwrapped)
    assert env.unwrapped.spec is not None


def test_b06_09_the_id_is_found_by_module_and_importing_twice_is_silent() -> None:
    program = (
        "import warnings; warnings.simplefilter('error'); import gymnasium as gym; "
        "env = gym.make('amemgym_env:AMemGym-v0'); import amemgym_env, importlib; "
        "importlib.reload(amemgym_env); print(env.reset(seed=1)[1]['scenario'])"
    )
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    assert done.stdout.startswith("tiny-")
    assert done.stderr == ""


def test_public_names_are_there_and_unknown_ones_are_not() -> None:
    for name in amemgym_env.__all__:
        assert getattr(amemgym_env, name) is not None
    with pytest.raises(AttributeError, match="nope"):
        _ = amemgym_env.nope


@settings(max_examples=60, deadline=None)
@given(reply=st.text(), text=st.text(), seed=st.integers(0, 2**31))
def test_b06_02_any_unicode_is_inside_the_spaces(reply: str, text: str, seed: int) -> None:
    env = AMemGymEnv("tiny", user=lambda episode, reply: reply)
    observation, _ = env.reset(seed=seed)
    action = say(reply, Operation.add(text), Operation.update("1", text))
    assert action in env.action_space
    assert observation in env.observation_space
    for _ in range(4):
        if env.episode.place.phase is Phase.DIALOGUE:
            observation, *_ = env.step(action)
            assert observation in env.observation_space


def test_b06_02_the_message_of_every_fixture_user_is_inside_the_space(run: Any) -> None:
    env = AMemGymEnv("tiny", diagnosis=True)
    for scenario in env.scenarios:
        first, _ = env.reset(seed=0, options={"scenario": scenario.id})
        assert first in env.observation_space
        for observation, *_ in run(env, lambda env: env.action_space.sample()):
            assert observation in env.observation_space


def test_b04_11_half_a_surrogate_pair_is_mended_where_text_comes_in(ada: Any) -> None:
    env = ada()
    env.step(say("a \ud83d b", Operation.add("\ud83c\udf78 and \ud83d")))
    assert env.episode.bank.entries[0].text == "🍸 and \ufffd"
    assert env.get_state()["episode"]["trail"][0][1] == "a \ufffd b"
    json.dumps(env.get_state(), ensure_ascii=False).encode()


def test_b06_12_every_phase_has_the_same_fields(ada: Any, run: Any) -> None:
    env = ada(diagnosis=True)
    fields = {frozenset(step[0]) for step in run(env, lambda env: env.action_space.sample())}
    assert fields == {frozenset(env.observation_space.spaces)}


def test_spaces_are_equal_between_environments_and_after_pickling() -> None:
    one, two = AMemGymEnv("tiny"), AMemGymEnv("tiny", difficulty="hard", diagnosis=True)
    assert one.observation_space == two.observation_space
    assert pickle.loads(pickle.dumps(one.action_space)) == two.action_space
    sample = one.observation_space.sample()
    assert sample in two.observation_space
    assert say("x", ("ADD", None, "y")) not in one.action_space  # type: ignore[arg-type]
    for wrong in ({**sample, "message": 3}, {**sample, "memory": ("x",)}, {**sample, "asked": []}):
        assert wrong not in one.observation_space


# ---- what is shown


def test_a_turn_shows_the_session_and_what_is_retrieved_for_the_whole_message(ada: Any) -> None:
    env = ada(top_k=1)
    env.step(say("", Operation.add("green tea"), Operation.add("Current time: 2024-02-12")))
    env.step(say(""))
    env.step(answers([0, 0]))
    turn = env.turn()
    assert (turn.period, turn.session, turn.round) == (1, 0, 0)
    assert turn.time == "2024-02-12T08:05:00"
    # The opener is shown with its time, so the entry about the time is the most similar one.
    assert turn.shown.startswith("[Current time: 2024-02-12T08:05:00]\n")
    assert [entry.id for entry in turn.memory] == ["2"]
    assert turn.asked == tuple(item.query for item in env.episode.script.scenario.qas)


def test_an_exam_shows_choices_in_the_scripts_order_with_entries_for_each_question(
    ada: Any,
) -> None:
    env = ada(top_k=1)
    env.step(say("", Operation.add("green tea at breakfast"), Operation.add("walks to the mill")))
    observation, *_ = env.step(say(""))
    exam = exam_from(observation)
    assert exam == env.exam()
    assert exam.time == "2024-01-31"
    script = env.episode.script
    assert [item.choices for item in exam.questions] == [
        script.choices_shown(0),
        script.choices_shown(1),
    ]
    assert [[entry.id for entry in item.memory] for item in exam.questions] == [["1"], ["2"]]
    assert (observation["message"], observation["memory"]) == ("", ())
    assert observation["stored"] == 2


def test_a_probe_asks_for_the_variables_of_each_question_at_once(right: Any, to_exam: Any) -> None:
    env = AMemGymEnv("tiny", diagnosis=True)
    env.reset(seed=0, options={"scenario": "tiny-ben"})
    to_exam(env)
    observation, *_ = env.step(right(env))
    (question,) = probe_from(observation).questions
    assert [(item.name, item.values) for item in question.variables] == [
        ("pet: kind", ("cat", "dog", "fish")),
        ("home", ("flat, 2nd floor", "house")),
    ]
    _, reward, _, _, info = env.step(right(env))
    assert (reward, info["accuracy"]) == (0.0, None)
    assert env.episode.probes[0].values == ((0, 0),)


@pytest.mark.parametrize(
    ("top_k", "ids"),
    [(0, []), (1, ["2"]), ("all", ["1", "2", "3"]), (None, ["1", "2", "3"])],
    ids=str,
)
def test_top_k_is_a_number_all_or_what_the_difficulty_says(
    ada: Any, top_k: Any, ids: list[str]
) -> None:
    env = ada(top_k=top_k)
    texts = ["dogs", "an evening stroll, slowly, in fine shoes", "cats"]
    env.step(say("", *map(Operation.add, texts)))
    assert [entry.id for entry in env.turn().memory] == ids
    assert AMemGymEnv("tiny", difficulty="hard").top_k == 5
    assert AMemGymEnv("tiny", difficulty="hard", top_k="all", capacity="all").top_k is None


def test_questions_of_past_exams_are_shown_unless_the_track_is_blind(
    ada: Any, right: Any, run: Any
) -> None:
    for blind in (False, True):
        env = ada(question_blind=blind)
        shown = [step[0]["asked"] for step in run(env, right)]
        queries = tuple(item.query for item in env.episode.script.scenario.qas)
        assert shown[:2] == [(), ()]
        assert set(shown[2:]) == {() if blind else queries}


def test_recurring_queries_are_embedded_once_an_episode(ada: Any, run: Any) -> None:
    seen: list[str] = []

    class Counting(HashedTerms):
        def __call__(self, texts: Any) -> Vectors:
            seen.extend(texts)
            return super().__call__(texts)

    env = ada(embedder=Counting(), top_k=2)
    run(env, lambda env: say("", Operation.add("tea")))
    shown = [text for text in seen if text.startswith("What should I put")]
    assert len(shown) == 1


def test_a_typed_view_of_another_phase_is_refused(ada: Any, to_exam: Any) -> None:
    env = ada()
    with pytest.raises(ValueError, match="phase EXAM, found DIALOGUE"):
        env.exam()
    with pytest.raises(ValueError, match="phase PROBE"):
        env.probe()
    to_exam(env)
    with pytest.raises(ValueError, match="phase DIALOGUE, found EXAM"):
        env.turn()


def test_b06_11_a_wrapper_or_a_vector_environment_does_not_hinder_a_driver() -> None:
    env = gym.wrappers.RecordEpisodeStatistics(gym.make("AMemGym-v0"))
    observation, _ = env.reset(seed=0, options=ADA)
    assert turn_from(observation) == env.unwrapped.turn()  # type: ignore[attr-defined]


def test_the_view_of_the_memory_stays_valid(ada: Any) -> None:
    env = ada()
    view = env.view
    env.step(say("", Operation.add("green tea"), Operation.add("dogs")))
    assert [entry.text for entry in view.search("a dog", 1)] == ["dogs"]
    env.reset()
    assert view.entries() == ()
    assert view.search("a dog", 1) == ()


# ---- truth


def test_info_carries_no_truth_unless_privileged(
    ada: Any, right: Any, to_exam: Any, run: Any
) -> None:
    for step in run(ada(), right):
        assert set(step[4]) <= {
            *("scenario", "seed", "operations", "applied", "refused", "accuracy", "scored"),
            *("exams", "missing", "surplus", "usage", "hash"),
        }
    env = AMemGymEnv("tiny", privileged=True)
    _, info = env.reset(seed=0, options=ADA)
    assert info["truth"]["exposures"] == (("morning_drink", "green_tea"),)
    assert info["truth"]["state"] == {"morning_drink": "green_tea", "walking_pace": "slow"}
    to_exam(env)
    *_, info = env.step(answers([NO_ANSWER, env.episode.script.right_shown[0][1]]))
    assert info["truth"]["scores"] == (0.0, 1.0)
