"""One scenario in the making: its states, periods, sessions with times, and questions.

Period 0 tells the initial state, every variable in its own session or with its question's other
one. In later periods each change has its event and is told on one of the last evenings, so that
the exam at the period's end finds everything told. Draws come from one stream for each purpose:
a change of how texts are drawn leaves the course of the state as it is.
Paper: AMemGym, Section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amemgym_env.generation.offline.choices import answer_choices
from amemgym_env.generation.offline.personas import Persona
from amemgym_env.generation.offline.sessions import by_question, session_groups, session_times
from amemgym_env.generation.offline.settings import Settings
from amemgym_env.generation.offline.state_evolution import Course, change_plan
from amemgym_env.scenarios.library import LIBRARY_NAME, LIBRARY_VERSION, Topic
from amemgym_env.scenarios.messages import opener
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.seeding import Key

State = dict[str, str]


class Life:
    """One scenario in the making; `key` names its draws."""

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
            purpose: Draws(*key, purpose)
            for purpose in ("plan", "course", "texts", "times", "choices")
        }
        self._said: set[str] = set()
        self.courses = [
            Course(
                [len(topic.variables[name].values) for name in names],
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
            # The benchmark's files hold the totals of the whole life in every period.
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
            "query": self._opener(question, exposed, not changed),
            "messages": [],
            "session_time": time,
        }

    def _event(self, question: int, name: str, value: str) -> str:
        events = self.topics[question].variables[name].values[value].events
        return self._draws["texts"].pick(events).replace("{name}", self.persona.name)

    def _opener(self, question: int, exposed: State, initial: bool) -> str:
        pairs = list(exposed.items())
        while True:
            text = opener(self.topics[question], pairs, self._draws["texts"], initial=initial)
            if text not in self._said:
                self._said.add(text)
                return text

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
