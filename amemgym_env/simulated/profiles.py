"""What the simulated model gets wrong: few named numbers, one for each mechanism, and profiles.

The numbers are global. Every draw is a hash of scenario, seed, utterance or value, variable and
mechanism, never of a prompt's text or an agent's settings, so agents are compared on the same luck.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from amemgym_env.errors import ConfigError, near


@dataclass(frozen=True, slots=True)
class Weaknesses:
    """One number for each mechanism; 0 turns it off."""

    comprehension_miss: float = 0.0
    """Probability that a value given away by an utterance is not understood, whoever reads it and
    whenever: the same for all agents."""
    extraction_miss: float = 0.0
    """Probability that a value is not noted when messages are written to memory; in a batch of n
    message pairs 1 - (1 - p)^n."""
    chatter: float = 0.0
    """Probability that a message is noted as something that no question needs: what fills real
    memories, takes places in a retrieval and is overlooked with the rest."""
    rewrite_loss: float = 0.0
    """Probability that a memory which is shown while memory is rewritten gets lost: all of them for
    a memory in context, the neighbours of new facts for an index."""
    dilution: float = 0.0
    """Rate at which a known value is overlooked in an exam, for each 100 memories and messages
    shown. A state query names the variable, so there it must be overlooked twice."""
    stale: float = 0.0
    """Probability that an old value is taken although a newer one is shown beside it."""
    slip: float = 0.0
    """Probability that all is known and the answer is wrong all the same."""
    echo: float = 0.0
    """Probability that what the assistant said it believes is taken for the user's own word. Above
    0 its replies restate what it takes to be true of the matter, right or wrong."""

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigError: a number below 0, or a probability above 1.
        """
        for name, value in asdict(self).items():
            most = float("inf") if name == "dilution" else 1.0
            if not 0.0 <= value <= most:
                raise ConfigError(f"weakness {name}: expected 0 to {most:g}, found {value!r}")

    def changed(self, **values: float) -> Weaknesses:
        """Return these weaknesses with some numbers replaced."""
        return replace(self, **values)


PROFILES: dict[str, Weaknesses] = {
    "exact": Weaknesses(),
    "confusion_only": Weaknesses(stale=0.2),
    # Fitted by `python -m experiments.calibrate` on the paper's failure rates of four agents;
    # docs/simulated-model.md says how well, and what it is good for.
    "calibrated": Weaknesses(
        comprehension_miss=0.07,
        extraction_miss=0.19,
        chatter=0.85,
        rewrite_loss=0.0912,
        dilution=0.4,
        stale=0.12,
        slip=0.1,
        echo=0.525,
    ),
}

DEFAULT_PROFILE = "calibrated"
"""What the simulated model is unless a profile is named."""


def named_profile(profile: str | Weaknesses) -> Weaknesses:
    """Return a profile's weaknesses by its name, or the given ones.

    Raises:
        ConfigError: no profile has the name.
    """
    if isinstance(profile, Weaknesses):
        return profile
    if profile not in PROFILES:
        raise ConfigError(
            f"backend.profile: expected one of {', '.join(PROFILES)}, found {profile!r}"
            f"{near(profile, PROFILES)}"
        )
    return PROFILES[profile]
