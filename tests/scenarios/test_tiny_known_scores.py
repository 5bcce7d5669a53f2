"""The scores of the hand-solvable set, derived here once more and played through the environment.

tiny-ada   2 periods x 2 questions of 2 choices; the drink changes in period 1.
tiny-ben   3 periods x 1 question of 3 choices; every period has another right choice.
tiny-chen  2 periods x 2 questions of 3 and 2 choices; both answers change in period 1.

random     ada (1/2 + 1/2)/2 = 1/2; ben 1/3; chen (1/3 + 1/2)/2 = 5/12
           mean over scenarios (6/12 + 4/12 + 5/12)/3 = 5/12
           mean over cells (4*1/2 + 3*1/3 + 2*1/3 + 2*1/2)/11 = (2 + 1 + 5/3)/11 = 14/33
never      nothing is known, so the reader draws among all choices: as random
initial    ada (1 + 1 + 0 + 1)/4 = 3/4; ben (1 + 0 + 0)/3 = 1/3; chen (1 + 1 + 0 + 0)/4 = 1/2
optimal    write every opener, show everything: each needed value is known, so 1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from amemgym_env.agent import Operation, Phase
from amemgym_env.envs.rewards import mean
from amemgym_env.envs.text.actions import answers, say
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.evaluation.metrics import uniform_guess
from amemgym_env.scenarios.answer_model import AnswerModelParameters, choice_probabilities
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.validation import lints

RANDOM = {"tiny-ada": 1 / 2, "tiny-ben": 1 / 3, "tiny-chen": 5 / 12}
INITIAL = {"tiny-ada": 3 / 4, "tiny-ben": 1 / 3, "tiny-chen": 1 / 2}
IDS = list(RANDOM)

Choose = Callable[[AMemGymEnv, int], int]


def score(scenario: str, operations: bool, choose: Choose) -> float:
    """Play a scenario, answering question n with the shown index `choose(env, n)`."""
    env = AMemGymEnv("tiny", privileged=True)
    observation, info = env.reset(seed=0, options={"scenario": scenario})
    rewards: list[float] = []
    over = False
    while not over:
        if observation["phase"] == Phase.DIALOGUE:
            new = info["truth"]["kind"] == "opener" and operations
            action = say("", *[Operation.add(observation["message"])] * new)
        else:
            count = len(observation["questions"])
            action = answers([choose(env, number) for number in range(count)])
        observation, reward, over, _, info = env.step(action)
        if info["accuracy"] is not None:
            rewards.append(reward)
    return float(np.mean(rewards))


def read(env: AMemGymEnv, question: int) -> int:
    """Answer by the reader, from what the stored openers gave away."""
    script = env.episode.script
    said = {item.text: item.exposures for item in script.utterances}
    found = choice_probabilities(
        [said[entry.text] for entry in env.exam().questions[question].memory],
        script.scenario.qas[question],
        AnswerModelParameters(),
    )
    assert found.max() == 1.0
    return script.option_orders[question].index(int(found.argmax()))


def initial(env: AMemGymEnv, question: int) -> int:
    return env.episode.script.right_shown[0][question]


@pytest.mark.parametrize("scenario", IDS)
def test_writing_every_opener_and_reading_the_newest_value_is_optimal(scenario: str) -> None:
    assert score(scenario, True, read) == 1.0


@pytest.mark.parametrize("scenario", IDS)
def test_the_initial_state_for_ever_scores_as_derived(scenario: str) -> None:
    assert score(scenario, False, initial) == pytest.approx(INITIAL[scenario])


def test_random_and_never_write_score_as_derived(tiny: list[Scenario]) -> None:
    for scenario in tiny:
        assert mean(uniform_guess(scenario)) == pytest.approx(RANDOM[scenario.id])
        never = [
            choice_probabilities([], question, AnswerModelParameters())[right]
            for rights in scenario.right_choices
            for question, right in zip(scenario.qas, rights, strict=True)
        ]
        assert np.mean(never) == pytest.approx(RANDOM[scenario.id])
    assert sum(RANDOM.values()) / 3 == pytest.approx(5 / 12)


def test_the_file_states_the_scores_that_are_derived_here(
    tiny_items: list[dict[str, Any]],
) -> None:
    for item in tiny_items:
        stated = item["derivation"]
        assert stated["optimal"] == 1.0
        assert stated["random"] == stated["never_write"] == pytest.approx(RANDOM[item["id"]])
        assert stated["initial_state"] == pytest.approx(INITIAL[item["id"]])


def test_the_set_has_nothing_to_complain_about(tiny: list[Scenario]) -> None:
    assert [lints(scenario) for scenario in tiny] == [(), (), ()]
