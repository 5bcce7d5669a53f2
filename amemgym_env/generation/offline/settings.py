"""Settings of generated scenarios; errors show the arithmetic.

`BASE` and `EXTRA` are the two shapes of the paper. Rates that the paper does not state are measured
on its released set.
Paper: AMemGym, Section 3 and the configurations `base` and `extra`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime

from amemgym_env.errors import ConfigError
from amemgym_env.scenarios.timestamps import add_months, instant


@dataclass(frozen=True, slots=True)
class Settings:
    """The shape of generated scenarios.

    Raises:
        ConfigError: settings that no scenario can meet; lists all, with the arithmetic.
    """

    periods: int = 10
    """Periods of evolution after period 0 (the paper's N_p)."""
    variables_per_question: int = 2
    """State variables that a question needs (N_s): 2 or 3."""
    questions: int = 10
    """Questions of a scenario, each of its own topic."""
    period_months: int = 3
    """Length of a period."""
    start: str = "2020-10-01"
    """End of period 0 and start of period 1 (ISO 8601 date)."""
    changes_per_period: int = 4
    """Variables that change in a period; now and then one more."""
    max_changes_per_variable: int = 3
    """Times that one variable changes at most, over all periods."""
    min_choices: int = 4
    """Choices of a question at least; combinations never lived through fill up."""
    extra_change: float = 0.04
    """Probability that one variable more than `changes_per_period` changes in a period."""
    joint_initial: float = 0.755
    """Share of questions whose first two variables are exposed at once in period 0."""
    joint_later: float = 0.57
    """Mean number of such double exposures in a later period, as far as changes allow."""
    gradual: float = 0.85
    """Probability that a value changes to a neighbour where it could also go further."""

    def __post_init__(self) -> None:
        """Check everything at once."""
        found = [*self._type_problems()] or [*self._range_problems()] or [*self._arithmetic()]
        if found:
            lines = "\n".join(f"  - {line}" for line in found)
            raise ConfigError(f"generation settings: nothing was generated\n{lines}")

    @property
    def variables(self) -> int:
        """Number of state variables of a scenario."""
        return self.questions * self.variables_per_question

    def _type_problems(self) -> Iterator[str]:
        for field in fields(self):
            value = getattr(self, field.name)
            wanted = {"int": int, "float": (int, float), "str": str}[str(field.type)]
            if not isinstance(value, wanted) or isinstance(value, bool):  # type: ignore[arg-type]
                yield f"{field.name}: expected {field.type}, found {value!r}"

    def _range_problems(self) -> Iterator[str]:
        least = {
            "periods": 0,
            "questions": 1,
            "period_months": 1,
            "changes_per_period": 0,
            "max_changes_per_variable": 0,
            "min_choices": 2,
        }
        for name, low in least.items():
            if getattr(self, name) < low:
                yield f"{name}: expected at least {low}, found {getattr(self, name)}"
        if self.variables_per_question not in (2, 3):
            found = self.variables_per_question
            yield f"variables_per_question: expected 2 or 3, as topics have, found {found}"
        for name in ("extra_change", "joint_initial", "gradual"):
            if not 0 <= getattr(self, name) <= 1:
                yield f"{name}: expected a probability in 0..1, found {getattr(self, name)}"
        if self.joint_later < 0:
            yield f"joint_later: expected at least 0, found {self.joint_later}"
        try:
            first = instant(self.start)
        except ValueError:
            yield f"start: expected an ISO 8601 date, found {self.start!r}"
            return
        if self.start != first.date().isoformat():
            yield f"start: expected a date such as 2020-10-01 without a time, found {self.start!r}"
        elif first.year + (self.periods * self.period_months) // 12 > 9000 or first.year < 2:
            yield f"start, periods, period_months: the scenario would leave the calendar ({first})"

    def _arithmetic(self) -> Iterator[str]:
        changes, variables = self.changes_per_period, self.variables
        total = self.periods * changes
        if self.periods and changes > variables:
            yield (
                f"changes_per_period: {changes} changes a period are more than the "
                f"{self.questions} questions x {self.variables_per_question} variables = "
                f"{variables} variables"
            )
        limit = min(self.max_changes_per_variable, self.periods)
        if total > variables * limit:
            yield (
                f"changes_per_period: {self.periods} periods x {changes} changes = {total} are "
                f"more than {variables} variables x {limit} changes at most = {variables * limit}"
            )
        if self.periods:
            days = min(
                (self.bound(period) - self.bound(period - 1)).days
                for period in range(1, self.periods + 1)
            )
            if self.most_changes > days - 1:
                yield (
                    f"changes_per_period: up to {self.most_changes} sessions a period, one a day "
                    f"with the last day free, are more than the {days} - 1 = {days - 1} days of "
                    "the shortest period"
                )
        if self.min_choices > 4**self.variables_per_question:
            yield (
                f"min_choices: {self.min_choices} choices are more than the "
                f"4^{self.variables_per_question} = {4**self.variables_per_question} combinations "
                "that a question can have"
            )

    @property
    def most_changes(self) -> int:
        """Most variables that can change in one period."""
        extra = self.extra_change > 0 and self.changes_per_period < self.variables
        return self.changes_per_period + int(extra)

    def bound(self, period: int) -> datetime:
        """Return the day on which a period ends; period 0 ends at `start`."""
        return add_months(instant(self.start), period * self.period_months)


BASE = Settings()
EXTRA = Settings(periods=20, variables_per_question=3)
SHAPES: dict[str, Settings] = {"base": BASE, "extra": EXTRA}
