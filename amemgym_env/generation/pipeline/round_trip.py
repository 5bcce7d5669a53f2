"""Round-trip checks: a model reads each text back without context; misread texts are refined.

An utterance must yield exactly the values it exposes. An answer must yield its combination among
those of its question. Texts that are still misread after the last refinement are returned.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from amemgym_env.errors import GenerationError
from amemgym_env.generation.pipeline.plan import Place, ScenarioPlan
from amemgym_env.generation.pipeline.repair import Repairable, RepairingClient
from amemgym_env.prompts.generation.texts import (
    AnswerReading,
    AnswerRefinement,
    Attempt,
    PersonalAnswers,
    UtteranceReading,
    UtteranceRefinement,
)

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Attempts(Protocol):
    """Options that round trips need."""

    @property
    def refinements(self) -> int:
        """Further attempts at a text that is misread."""
        ...

    @property
    def language(self) -> str:
        """The language of all texts."""
        ...


class Misread(NamedTuple):
    """A misread text, its step and its problem."""

    step: str
    text: str
    problem: str


class RoundTrip(Generic[K, R]):
    """Texts by key, each read, and refined until it is read as it should be or attempts end."""

    step: str

    def __init__(self, ask: RepairingClient, options: Attempts) -> None:
        self._ask = ask
        self._options = options
        self.refined = 0
        """Texts that were understood only after a refinement."""

    def run(self, texts: Mapping[K, str]) -> tuple[dict[K, str], dict[K, Misread]]:
        """Return the texts that are understood, and what is wrong with the others."""
        kept: dict[K, str] = {}
        open_texts = dict(texts)
        attempts: dict[K, tuple[Attempt, ...]] = {}
        for left in range(self._options.refinements, -1, -1):
            problems = self._problems(open_texts, kept)
            good = {key: text for key, text in open_texts.items() if key not in problems}
            kept |= good
            if left < self._options.refinements:
                self.refined += len(good)
            open_texts = {key: open_texts[key] for key in problems}
            if not problems or not left:
                break
            for key, problem in problems.items():
                attempt = Attempt(open_texts[key], problem)
                attempts[key] = (*attempts.get(key, ()), attempt)
            prompts = [self.refinement(key, attempts[key], kept) for key in problems]
            better = self._ask.each(f"refinement of {self.step}", prompts)
            for key, found in zip(problems, better, strict=True):
                # Where no better text could be had, the same one is misread once more.
                if not isinstance(found, GenerationError):
                    open_texts[key] = found
        return kept, {
            key: Misread(self.step, text, problems[key]) for key, text in open_texts.items()
        }

    def _problems(self, texts: Mapping[K, str], kept: Mapping[K, str]) -> dict[K, str]:
        found = {}
        seen = self.taken(kept)
        repeated = set()
        for key, text in texts.items():
            if (self.family(key), text) in seen:
                repeated.add(key)
            seen.add((self.family(key), text))
        read = self._ask.each(f"reading of {self.step}", [self.reading(*t) for t in texts.items()])
        for key, result in zip(texts, read, strict=True):
            problem: str | None
            if key in repeated:
                problem = "it is the same text as another"
            elif isinstance(result, GenerationError):
                problem = f"no reader could tell ({result.reason})"
            else:
                problem = self.problem(key, result)
            if problem is not None:
                found[key] = problem
        return found

    def taken(self, kept: Mapping[K, str]) -> set[tuple[int, str]]:
        """Return the accepted texts, each with its family."""
        return {(self.family(key), text) for key, text in kept.items()}

    @abstractmethod
    def family(self, key: K) -> int:
        """Return a number: texts of the same family must differ."""

    @abstractmethod
    def reading(self, key: K, text: str) -> Repairable[R]:
        """Return the call that reads a text."""

    @abstractmethod
    def problem(self, key: K, read: R) -> str | None:
        """Return what is wrong with what was read; None: nothing."""

    @abstractmethod
    def refinement(
        self, key: K, attempts: tuple[Attempt, ...], kept: Mapping[K, str]
    ) -> Repairable[str]:
        """Return the call that asks for a better text."""


class UtteranceTrip(RoundTrip[Place, Mapping[str, str]]):
    """Opening utterances, by session."""

    step = "opening utterances"

    def __init__(
        self,
        ask: RepairingClient,
        options: Attempts,
        profile: str,
        plan: ScenarioPlan,
        events: Mapping[Place, str],
        others: Collection[str],
    ) -> None:
        super().__init__(ask, options)
        self._profile = profile
        self._plan = plan
        self._events = events
        self._others = others
        """Accepted utterances of the scenario."""

    def taken(self, kept: Mapping[Place, str]) -> set[tuple[int, str]]:
        """Return all utterances of the scenario so far."""
        return super().taken(kept) | {(0, text) for text in self._others}

    def family(self, key: Place) -> int:
        """All utterances of a scenario differ."""
        return 0

    def reading(self, key: Place, text: str) -> Repairable[Mapping[str, str]]:
        """Return the judge's reading against the whole schema."""
        return UtteranceReading(text, self._plan.schema)

    def problem(self, key: Place, read: Mapping[str, str]) -> str | None:
        """Return a value that is not exposed, or one exposed that is not so.

        Another value than the exposed ones may show if it is true: nothing false is learnt.
        """
        wanted, state = self._plan.content_of(key).exposes, self._plan.state(key.period)
        for name, value in wanted.items():
            if read.get(name) != value:
                seen = repr(read[name]) if name in read else "nothing"
                return f"expected {name} = {value!r} to be concluded, a reader concluded {seen}"
        for name, value in read.items():
            if state[name] != value:
                return f"a reader concluded {name} = {value!r}, which is not so"
        return None

    def refinement(
        self, key: Place, attempts: tuple[Attempt, ...], kept: Mapping[Place, str]
    ) -> Repairable[str]:
        """Return the call for a better utterance."""
        telling = self._plan.content_of(key, self._events.get(key))
        return UtteranceRefinement(self._profile, telling, attempts, self._options.language)


class AnswerTrip(RoundTrip[tuple[int, int], int | None]):
    """Answers, by the number of their prompt and of their combination."""

    step = "answers"

    def __init__(
        self, ask: RepairingClient, options: Attempts, prompts: Sequence[PersonalAnswers]
    ) -> None:
        super().__init__(ask, options)
        self._prompts = prompts

    def family(self, key: tuple[int, int]) -> int:
        """The answers of one question differ."""
        return key[0]

    def reading(self, key: tuple[int, int], text: str) -> Repairable[int | None]:
        """Return the reading of one answer among the combinations of its question."""
        asked = self._prompts[key[0]]
        return AnswerReading(asked.query, asked.variables, asked.combinations, text)

    def problem(self, key: tuple[int, int], read: int | None) -> str | None:
        """Return for which other combination an answer was taken."""
        if read == key[1]:
            return None
        combinations = self._prompts[key[0]].combinations
        seen = "none or several" if read is None else repr(combinations[read])
        return f"expected it to fit {combinations[key[1]]!r} alone, a reader found it fits {seen}"

    def refinement(
        self,
        key: tuple[int, int],
        attempts: tuple[Attempt, ...],
        kept: Mapping[tuple[int, int], str],
    ) -> Repairable[str]:
        """Return the call for a better answer."""
        asked, (number, index) = self._prompts[key[0]], key
        others = tuple(found for (n, i), found in kept.items() if n == number and i != index)
        return AnswerRefinement(
            asked.profile,
            asked.query,
            asked.variables,
            asked.combinations[index],
            others,
            attempts,
            self._options.language,
        )
