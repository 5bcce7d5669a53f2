"""Small talk: messages about nothing that any scenario asks for."""

from __future__ import annotations

from amemgym_env.scenarios.composition import Generic, without_value
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.scenarios.requests import reworded

_REQUESTS: tuple[str, ...] = (
    "how do I explain to a child why the sky turns red in the evening",
    "can you suggest riddles for a long wait at a counter",
    "what makes a limerick funny rather than silly",
    "could you help me remember the name of a tune I have in my head",
    "how do I spell the plural of octopus without embarrassing myself",
    "can you recommend short poems about the sea",
    "do you have any trivia questions about planets and moons",
    "which proverb would fit a day when nothing goes to plan",
    "how do people predict the weather from the shape of clouds",
    "could you suggest a crossword word for a river in seven letters",
    "how can I tell a swallow from a swift when they fly past",
    "what could I write in a guest book that isn't dull",
    "can you give me some facts about the history of buttons",
    "how do I fold a paper hat from a newspaper",
    "could you help me invent a name for a fictional village",
    "are there any superstitions about finding an old coin",
    "what would a pirate say about this kind of fog",
    "how do bees find their way back to the same meadow",
    "can you suggest tongue twisters that aren't the famous ones",
    "do you have any theories about why yawning is catching",
    "how do I work out on which weekday somebody was born",
    "could you recommend a good first line for a ghost story",
    "what could explain the strange light over the hills last evening",
    "how did people send urgent news before the telegraph",
)
_REMARKS: tuple[str, ...] = (
    "The clouds over the rooftops look like a herd of sheep this afternoon.",
    "Somebody at the bus stop was humming the same melody twice in a row.",
    "There's a rainbow outside, and everybody on the pavement has stopped to look.",
    "A radio presenter made a joke about it and left out the ending.",
    "It came up in a quiz on television, and nobody in the studio knew.",
    "A stranger in the queue asked me, and I had no answer ready.",
    "The wind has been rattling the shutters ever since the church bells rang.",
    "An article in an old magazine mentioned it without any explanation.",
    "The leaves are coming down early, and the light is lovely at the moment.",
    "I overheard two pensioners on a bench arguing about exactly this.",
    "A museum guide once told a story about it that I only half remember.",
    "It popped into my head while I was waiting for the rain to stop.",
    "My horoscope was so vague today that I had to laugh out loud.",
    "The moon was enormous last night, especially just above the chimneys.",
    "Someone had chalked a little drawing about it on the station wall.",
    "We couldn't agree on it at the table next to the window.",
)


def small_talk(draws: Draws, offered: Generic, *, initial: bool) -> str:
    """Return a message of small talk; `initial` for one of period 0."""
    ask = reworded(draws.pick(_REQUESTS), draws, initial=initial)
    return without_value(ask, _REQUESTS, _REMARKS, draws, offered, initial=initial)
