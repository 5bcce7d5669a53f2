"""The contract checks pass for what is right, and each of them is seen to fail once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import pytest

import amemgym_env  # noqa: F401 - registers the environments
from amemgym_env.agent import NO_ANSWER, Exam, MemoryView, Operation, Probe, Turn
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.models.client import Backend, Call, Completion, Models, Usage
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build
from amemgym_env.simulated.model import SimulatedModel
from amemgym_env.testing import check_agent, check_backend, check_env


class Notebook:
    """Writes down every message and counts its rounds."""

    top_k = 3

    def reset(self, view: MemoryView) -> None:
        self.view = view
        self.rounds = 0

    def reply(self, turn: Turn) -> str:
        self.rounds += 1
        return f"Noted, that is number {self.rounds}."

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        return [Operation.add(turn.shown)]

    def answer(self, exam: Exam) -> Sequence[int]:
        return [len(question.memory) % 2 for question in exam.questions]

    def probe(self, probe: Probe) -> Sequence[Sequence[int]]:
        return [[NO_ANSWER] * len(question.variables) for question in probe.questions]

    def state_dict(self) -> Mapping[str, Any]:
        return {"rounds": self.rounds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rounds = state["rounds"]


def test_a_right_agent_passes_with_and_without_models() -> None:
    report = check_agent(Notebook)
    assert report == check_agent(lambda models: Notebook())
    assert any("continuing" in line for line in report.checked)
    assert report.not_checked == ()


class Forgetful(Notebook):
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rounds = 0


class HalfSaved(Notebook):
    """Its replies depend on what it does not save."""

    extra = 0

    def reply(self, turn: Turn) -> str:
        self.extra += 1
        return f"{self.extra}"


class Contaminated(Notebook):
    def answer(self, exam: Exam) -> Sequence[int]:
        self.rounds += 1
        return super().answer(exam)


class ContaminatedByProbe(Notebook):
    def probe(self, probe: Probe) -> Sequence[Sequence[int]]:
        self.rounds += 1
        return super().probe(probe)


class Short(Notebook):
    def answer(self, exam: Exam) -> Sequence[int]:
        return []


class Textual(Notebook):
    def answer(self, exam: Exam) -> Sequence[Any]:
        return ["A" for _ in exam.questions]


class NoValues(Notebook):
    def probe(self, probe: Probe) -> Sequence[Sequence[int]]:
        return [[] for _ in probe.questions]


class Tuples(Notebook):
    def write(self, turn: Turn, reply: str) -> Sequence[Any]:
        return [("ADD", None, "x")]


class Silent(Notebook):
    def reply(self, turn: Turn) -> Any:
        return None


class Unsaved(Notebook):
    def state_dict(self) -> Mapping[str, Any]:
        return {"view": self.view}


class Leaking(Notebook):
    def state_dict(self) -> Mapping[str, Any]:
        return {"rounds": self.rounds, "llm": {"api_key": "abc"}}


class LeakingVariable(Notebook):
    def state_dict(self) -> Mapping[str, Any]:
        return {"rounds": self.rounds, "note": "canary-canary"}


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (Forgetful, "loads a state"),
        (HalfSaved, "goes on differently"),
        (Contaminated, "EXAM changed the agent's state"),
        (ContaminatedByProbe, "PROBE changed the agent's state"),
        (Short, "expected 2 answers, found 0"),
        (Textual, "an Answer or an index"),
        (NoValues, "expected .* values"),
        (Tuples, "expected Operations"),
        (Silent, "reply: expected a string"),
        (Unsaved, "JSON object"),
        (Leaking, "secrets"),
        (LeakingVariable, r"value of \$TEST_API_KEY"),
        (object, "expected the methods"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_b08_21_an_agent_that_breaks_a_rule_is_told_which(
    agent: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_API_KEY", "canary-canary")
    with pytest.raises(AssertionError, match=message):
        check_agent(agent)


def test_what_cannot_be_checked_is_said() -> None:
    class Moody(Notebook):
        count = 0
        memory = "external"

        def reply(self, turn: Turn) -> str:
            Moody.count += 1
            return str(Moody.count)

    report = check_agent(Moody)
    assert [line for line in report.not_checked if "two plays already differ" in line]
    assert [line for line in report.not_checked if "own memory" in line]


def test_the_text_environment_keeps_the_contract() -> None:
    for settings in ({}, {"diagnosis": True, "top_k": 2, "capacity": 2, "difficulty": "hard"}):
        report = check_env(lambda chosen=settings: gym.make("AMemGym-v0", **chosen))  # type: ignore[misc]
        assert report.not_checked == ()


def test_an_environment_that_differs_between_plays_is_found_out() -> None:
    count = 0

    class Moody(AMemGymEnv):
        def step(self, action: Mapping[str, Any]) -> Any:
            nonlocal count
            count += 1
            observation, *rest = super().step(action)
            return ({**observation, "message": str(count // 60)}, *rest)

    with pytest.raises(AssertionError):
        check_env(Moody)


def test_the_simulated_model_keeps_the_backends_contract(tiny: list[Scenario]) -> None:
    report = check_backend(SimulatedModel(build(tiny[0]), "exact"))
    assert "the same call, the same reply" in report.checked


class Echo(Backend):
    name = "echo"

    def complete(self, call: Call) -> Completion:
        return Completion(call.messages[-1]["content"], Usage(calls=1))


def test_a_real_backend_passes_without_repeatability() -> None:
    assert check_backend(Echo()).not_checked[0].startswith("repeatability")


@pytest.mark.parametrize("broken", ["meddles", "no text", "leaks"])
def test_a_backend_that_breaks_a_rule_is_told_which(broken: str) -> None:
    class Broken(Echo):
        def complete(self, call: Call) -> Completion:
            if broken == "meddles":
                call.messages.append({"role": "user", "content": "x"})
            return Completion(None if broken == "no text" else "x", Usage(calls=1))  # type: ignore[arg-type]

        @property
        def parameters(self) -> Mapping[str, Any]:
            return {"api_key": "abc"} if broken == "leaks" else {}

    with pytest.raises(AssertionError):
        check_backend(Broken())


def test_models_are_handed_to_an_agent_that_asks_for_them() -> None:
    seen: list[object] = []

    class Asking(Notebook):
        def __init__(self, models: Models) -> None:
            seen.append(models)

    assert check_agent(Asking)
    assert all(isinstance(models, Models) for models in seen)
