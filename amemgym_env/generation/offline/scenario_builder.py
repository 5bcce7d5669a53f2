"""Builder of one offline scenario: states, periods, sessions with times, and questions.

The sessions of period 0 expose the initial state. In later periods each change has an event and is
exposed on one of the last evenings, before the exam at the period's end. Each purpose has its own
random stream, so a change in the choice of texts does not change the states.
Paper: AMemGym, Section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amemgym_env.generation.offline.choices import answer_choices
from amemgym_env.generation.offline.personas import Persona
from amemgym_env.generation.offline.random_stream import RandomStream
from amemgym_env.generation.offline.sessions import by_question, session_groups, session_times
from amemgym_env.generation.offline.settings import Settings
from amemgym_env.generation.offline.state_evolution import Course, change_plan
from amemgym_env.scenarios.library import LIBRARY_NAME, LIBRARY_VERSION, Topic
from amemgym_env.seeding import Key

State = dict[str, str]


class ScenarioBuilder:
    """Builder of one scenario; `key` names its random streams."""

    def __init__(
        self,
        scenario_id: str,
        key: tuple[Key, ...],
        settings: Settings,
        persona: Persona,
        chosen: Sequence[Topic],
    ) -> None:
        self.id = scenario_id
        self.settings = settings
        self.persona = persona
        self.topics = chosen
        size = self.settings.variables_per_question
        self.names = [list(topic.variables)[:size] for topic in chosen]
        """Variables of each question."""
        self._draws = {
            purpose: RandomStream(*key, purpose)
            for purpose in ("plan", "course", "texts", "times", "choices")
        }
        self._unused_openers: dict[tuple[str, str], list[str]] = {}
        self.courses = [
            Course(
                [len(topic.variables[name]) for name in names],
                self.settings.gradual,
                self._draws["course"],
            )
            for topic, names in zip(chosen, self.names, strict=True)
        ]

    def item(self) -> dict[str, Any]:
        """Return the scenario as the JSON object of a scenario file."""
        periods = self._periods()
        return {
            "id": self.id,
            "start_time": self.settings.start,
            "user_profile": dict(self.persona.profile),
            "state_schema": {
                name: topic.state_schema[name]
                for topic, names in zip(self.topics, self.names, strict=True)
                for name in names
            },
            "periods": periods,
            "qas": [self._question(index) for index in range(len(self.topics))],
            "library": {"name": LIBRARY_NAME, "version": LIBRARY_VERSION},
        }

    def _periods(self) -> list[dict[str, Any]]:
        plan = change_plan(self.settings, self._draws["plan"])
        state = self._state()
        everything = list(range(self.settings.variables))
        periods = [
            self._period(
                0, {}, state, session_groups(everything, self.settings, self._draws["texts"], True)
            )
        ]
        for number, changing in enumerate(plan, start=1):
            for question, positions in by_question(changing, self.settings).items():
                self.courses[question].change(positions)
            before, state = state, self._state()
            periods.append(
                self._period(
                    number,
                    before,
                    state,
                    session_groups(changing, self.settings, self._draws["texts"]),
                )
            )
        totals = dict.fromkeys(state, 0)
        for period in periods[1:]:
            for name in period["updates"]:
                totals[name] += 1
        for period in periods:
            # In the benchmark's files every period holds the totals over all periods.
            period["update_cnts"] = dict(totals)
        return periods

    def _state(self) -> State:
        return {
            name: self.topics[question].state_schema[name][value]
            for question, course in enumerate(self.courses)
            for name, value in zip(self.names[question], course.now, strict=True)
        }

    def _period(
        self, number: int, before: State, state: State, groups: list[tuple[int, ...]]
    ) -> dict[str, Any]:
        end = self.settings.bound(number)
        times = session_times(end, len(groups), self._draws["times"])
        sessions = [
            self._session(group, state, time, number > 0)
            for group, time in zip(groups, times, strict=True)
        ]
        start = None if number == 0 else self.settings.bound(number - 1).date().isoformat()
        events = [session["event"] for session in sessions if session["event"] is not None]
        return {
            "period_start": start,
            "period_end": end.date().isoformat(),
            "period_summary": " ".join(events) if events else None,
            "sessions": sessions,
            "state": state,
            "updates": {
                name: {"old": before.get(name), "new": value}
                for name, value in state.items()
                if before.get(name) != value
            },
        }

    def _session(
        self, group: tuple[int, ...], state: State, time: str, changed: bool
    ) -> dict[str, Any]:
        question = group[0] // self.settings.variables_per_question
        names = [self.names[question][v % self.settings.variables_per_question] for v in group]
        exposed = {name: state[name] for name in names}
        event = None
        if changed:
            event = " ".join(self._event(question, *pair) for pair in exposed.items())
        return {
            "event": event,
            "exposed_states": exposed,
            "query": self._opener(question, exposed),
            "messages": [],
            "session_time": time,
        }

    def _event(self, question: int, name: str, value: str) -> str:
        events = self.topics[question].variables[name][value].events
        return self._draws["texts"].pick(events).replace("{name}", self.persona.name)

    def _opener(self, question: int, exposed: State) -> str:
        topic, draws = self.topics[question], self._draws["texts"]
        names, values = list(exposed), list(exposed.values())
        if len(names) == 2:
            return draws.pick(topic.joint_utterances(names[0], names[1], (values[0], values[1])))
        material = topic.variables[names[0]][values[0]]
        # A value that returns is exposed in other words while there are any.
        left = self._unused_openers.setdefault((names[0], values[0]), [])
        if not left:
            left.extend(draws.shuffled(material.exposures))
        return left.pop()

    def _question(self, index: int) -> dict[str, Any]:
        topic, names, draws = self.topics[index], self.names[index], self._draws["choices"]
        return {
            "query": draws.pick(topic.questions),
            "required_info": list(names),
            "answer_choices": answer_choices(
                topic, names, self.courses[index], self.settings.min_choices, draws
            ),
            "topic": topic.id,
        }
