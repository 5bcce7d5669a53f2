"""Driver: plays an agent through an environment and records every event.

It uses `reset`, `step` and the observation alone, so it works through any wrapper. What the agent
could not be asked is UNSCORED, never guessed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import gymnasium

from amemgym_env.agent import Agent, Answer, Entry, Phase, Turn, Value, shown_message
from amemgym_env.envs.text.actions import answers, say, values
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.envs.text.observations import exam_from, probe_from, turn_from
from amemgym_env.episode import Episode
from amemgym_env.errors import BudgetExceeded, TransportError
from amemgym_env.memory.bank import Applied
from amemgym_env.models.client import Models
from amemgym_env.models.events import Event, ExamEvent, ProbeEvent, RecordedOperation, TurnEvent

AgentMaker = Callable[[Models], Agent] | Callable[[], Agent]
"""A class or function that makes an agent; it is handed the models when it requires an argument."""

Record = Callable[[Event], None]


def made_agent(make_agent: AgentMaker, models: Models) -> Agent:
    """Return a new agent, handing it the models if its maker requires an argument."""
    required = any(
        parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in inspect.signature(make_agent).parameters.values()
    )
    make: Callable[..., Agent] = make_agent
    return make(models) if required else make()


def play(
    agent: Agent,
    env: gymnasium.Env[Any, Any],
    record: Record,
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    replies: Callable[[Turn], str] | None = None,
    meanwhile: Callable[[Episode, str], None] | None = None,
) -> None:
    """Play one episode to its end; every turn, exam and probe is recorded as it happens.

    `seed` and `options` go to the environment's `reset`. `replies` speaks in the agent's place
    (off-policy): then only writing, exam and probes are the agent's. `meanwhile` is called with
    the episode and the reply before the agent writes, to begin what does not depend on memory.

    Raises:
        TransportError: a turn or a memory update could not be had; what was played is recorded.
        BudgetExceeded: the run's budget is spent.
    """
    inner = env.unwrapped
    if not isinstance(inner, AMemGymEnv):
        raise TypeError(f"expected an AMemGym-v0 environment, found {type(inner).__name__}")
    observation, _ = env.reset(seed=seed, options=options)
    agent.reset(inner.view)
    over = False
    while not over:
        phase = Phase(int(observation["phase"]))
        if phase is Phase.DIALOGUE:
            turn = turn_from(observation)
            reply = (replies or agent.reply)(turn)
            if meanwhile is not None:
                meanwhile(inner.episode, reply)
            action, event = _talk(agent, turn, reply)
        elif phase is Phase.EXAM:
            action, event = _examine(agent, observation)
        else:
            action, event = _probe(agent, observation)
        observation, _, terminated, truncated, info = env.step(action)
        if isinstance(event, TurnEvent):
            event = replace(event, operations=_operations(inner.applied))
        elif isinstance(event, ProbeEvent):
            event = replace(event, window=_in_window(agent, inner.episode))
        record(event)
        over = terminated or truncated
        if truncated and info.get("error"):
            if info["reason"] == BudgetExceeded.reason:
                raise BudgetExceeded(str(info["error"]))
            raise TransportError(str(info["error"]), reason=info["reason"])


def _talk(agent: Agent, turn: Turn, reply: str) -> tuple[dict[str, Any], Event]:
    operations = agent.write(turn, reply)
    place = (turn.period, turn.session, turn.round)
    event = TurnEvent(*place, turn.time, turn.message, reply, _ids(turn.memory))
    return say(reply, *operations), event


def _examine(agent: Agent, observation: Any) -> tuple[dict[str, Any], Event]:
    exam = exam_from(observation)
    given = [
        answer if isinstance(answer, Answer) else Answer(int(answer))
        for answer in agent.answer(exam)
    ]
    event = ExamEvent(
        exam.period,
        tuple(answer.choice for answer in given),
        tuple(answer.cause for answer in given),
        tuple(_ids(question.memory) for question in exam.questions),
        int(observation["stored"]),
    )
    return answers(given), event


def _probe(agent: Agent, observation: Any) -> tuple[dict[str, Any], Event]:
    probe = probe_from(observation)
    given = [
        [value if isinstance(value, Value) else Value(int(value)) for value in row]
        for row in agent.probe(probe)
    ]
    event = ProbeEvent(
        probe.period,
        tuple(tuple(value.index for value in row) for row in given),
        tuple(tuple(value.cause for value in row) for row in given),
        tuple(_ids(question.memory) for question in probe.questions),
    )
    return values(given), event


def _in_window(agent: Agent, episode: Episode) -> tuple[tuple[int, int], ...] | None:
    """Return [session, round] of the period's rounds whose message the agent still keeps verbatim.

    None for agents that do not show a `window` of chat messages.
    """
    window = getattr(agent, "window", None)
    if not isinstance(window, list):
        return None
    kept = {part["content"] for part in window}
    period = episode.probes[-1].period
    return tuple(
        (session, number)
        for session, conversation in enumerate(episode.script.periods[period])
        for number, utterance in enumerate(conversation.utterances)
        if shown_message(utterance.text, conversation.time, number == 0) in kept
    )


def _operations(applied: Iterable[Applied]) -> tuple[RecordedOperation, ...]:
    return tuple(
        RecordedOperation(item.operation.op, item.entry_id, item.operation.text, item.status)
        for item in applied
    )


def _ids(entries: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(entry.id for entry in entries)
