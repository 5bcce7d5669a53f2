"""Error rates of the simulated model, one for each mechanism, and the named profiles.

Rates are global. Each error is drawn by a hash of scenario, seed, utterance or value, variable and
mechanism, never of a prompt's text or an agent's settings, so all agents meet the same errors.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from amemgym_env.errors import ConfigError, near


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """One number for each mechanism; 0 turns it off."""

    comprehension_miss: float = 0.0
    """Probability that an exposed value is not understood; the same draw for all agents."""
    extraction_miss: float = 0.0
    """Probability p that a value is not extracted when messages are written to memory;
    1 - (1 - p)^n in a batch of n message pairs."""
    irrelevant_writes: float = 0.0
    """Probability that a message is stored although no question needs it. Such entries fill the
    memory and take places in retrievals."""
    rewrite_loss: float = 0.0
    """Probability that a memory in the prompt is lost when memory is rewritten: any entry of a
    memory in context, the nearest neighbours of new facts for an index."""
    dilution: float = 0.0
    """Rate at which a known value is overlooked, per 100 memories and messages shown. A state query
    names the variable, so there the value must be overlooked twice."""
    stale: float = 0.0
    """Probability that an old value is chosen although a newer one is in the prompt."""
    answer_error: float = 0.0
    """Probability of a wrong answer although all values are known."""
    echo: float = 0.0
    """Probability that a belief stated by the assistant is taken for the user's own.
    Above 0, replies restate beliefs about the topic, right or wrong."""

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigError: a number below 0, or a probability above 1.
        """
        for name, value in asdict(self).items():
            most = float("inf") if name == "dilution" else 1.0
            if not 0.0 <= value <= most:
                raise ConfigError(f"error rate {name}: expected 0 to {most:g}, found {value!r}")

    def changed(self, **values: float) -> ErrorRates:
        """Return these rates with some replaced."""
        return replace(self, **values)


PROFILES: dict[str, ErrorRates] = {
    "exact": ErrorRates(),
    "confusion_only": ErrorRates(stale=0.2),
    # Fitted by `python -m experiments.calibrate` on the paper's failure rates of four agents;
    # docs/simulated-model.md reports the fit and its limits.
    "calibrated": ErrorRates(
        comprehension_miss=0.07,
        extraction_miss=0.19,
        irrelevant_writes=0.85,
        rewrite_loss=0.0912,
        dilution=0.4,
        stale=0.12,
        answer_error=0.1,
        echo=0.525,
    ),
}

DEFAULT_PROFILE = "calibrated"
"""Profile used when none is named."""


def named_profile(profile: str | ErrorRates) -> ErrorRates:
    """Return the error rates of a named profile, or the given ones.

    Raises:
        ConfigError: no profile has the name.
    """
    if isinstance(profile, ErrorRates):
        return profile
    if profile not in PROFILES:
        raise ConfigError(
            f"backend.profile: expected one of {', '.join(PROFILES)}, found {profile!r}"
            f"{near(profile, PROFILES)}"
        )
    return PROFILES[profile]
