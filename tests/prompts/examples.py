"""One example of each kind of prompt, for golden texts and for tests of replies."""

from __future__ import annotations

from typing import Any

from amemgym_env.agent import Entry, Question, Variable
from amemgym_env.evaluation.bounds import UninformedAnswer
from amemgym_env.prompts.assistant import (
    AssistantReply,
    Context,
    ExamAnswer,
    InformedAnswer,
    StateQuery,
    UserFollowUp,
)
from amemgym_env.prompts.base import Prompt, message
from amemgym_env.prompts.evolution import PromptEvolution, TypesEvolution
from amemgym_env.prompts.generation.questions import (
    Conflict,
    Draft,
    DraftShape,
    QuestionDrafts,
    SchemaConflicts,
    SchemaRefinement,
)
from amemgym_env.prompts.generation.ratings import AnswerAgreement, ExposureRating, IntegrityRating
from amemgym_env.prompts.generation.state import InitialState, LifeEvents, PeriodUpdates
from amemgym_env.prompts.generation.texts import (
    AnswerReading,
    AnswerRefinement,
    Attempt,
    OpeningUtterances,
    PersonalAnswers,
    SessionContent,
    UtteranceReading,
    UtteranceRefinement,
)
from amemgym_env.prompts.memory import DictionaryUpdate, FactExtraction, MemoryDecision

CONTEXT = Context(
    ("likes tea", "works nights"), (message("user", "Hi"), message("assistant", "Yes?"))
)
QUESTION = Question("Which plan fits me?", ("walk", "costs $1\\g<0> or \\1 a month", "{choices}"))
VARIABLES = (Variable("diet", ("vegan", "none")), Variable("work_time", ("day", "night")))
ENTRY = Entry("7", "diet: none", "2024-01-01", "2024-01-01", 3)
PLAY: dict[str, Prompt[Any]] = {
    "assistant_reply": AssistantReply(CONTEXT, "store {conversation} and {memories} literally"),
    "user_follow_up": UserFollowUp(
        "Ada, 30", "2024-05-01", "What to eat?", (message("user", "a"),), VARIABLES
    ),
    "exam_answer": ExamAnswer(CONTEXT, QUESTION),
    "informed_answer": InformedAnswer(Context(("diet: vegan",)), QUESTION),
    "state_query": StateQuery(Context(()), VARIABLES),
    "fact_extraction": FactExtraction((message("user", "C:\\new $$ {facts}"),)),
    "memory_decision": MemoryDecision(("diet: vegan",), (ENTRY,)),
    "dictionary_update": DictionaryUpdate(("diet: none",), (message("user", "{memories}"),)),
    "uninformed_answer": UninformedAnswer(Context(()), QUESTION),
    "types_evolution": TypesEvolution(("names of {types}",), "3 of 4 were wrong {x}", 2, 3),
    "prompt_evolution": PromptEvolution(
        "Read {messages} and {{}}.", ("messages",), "all \\1 wrong", 1, 2
    ),
}

PROFILE = "name: Ada {x} \\1 $&"
SHAPE = DraftShape(2, 1, 3)
PETS = Variable("pets", ("none", "one", "many"))
WORK = Variable("work_days", ("two", "three", "five"))
DRAFTS = (Draft("What of my pets?", (PETS,)), Draft("When to rest?", (WORK,)))
BOTH = (PETS, WORK)
TELLING = SessionContent({"pets": "one"}, (PETS,), "A dog came.")

GENERATION: tuple[Prompt[Any], ...] = (
    QuestionDrafts(PROFILE, SHAPE, "Dutch"),
    SchemaConflicts(PROFILE, DRAFTS),
    SchemaRefinement(PROFILE, DRAFTS, (Conflict(("pets",), "settled"),), SHAPE, "Dutch"),
    InitialState(PROFILE, "2020-10-01", BOTH),
    PeriodUpdates(
        PROFILE, "2020-10-01", "2021-01-01", {"pets": "one"}, (PETS,), {"pets": ("none", "one")}
    ),
    LifeEvents(PROFILE, "2020-10-01", "2021-01-01", ({"pets": ("none", "one")},), "Dutch"),
    OpeningUtterances(PROFILE, "2021-01-01", (TELLING,), "Dutch"),
    UtteranceReading("My dog sheds.", (PETS,)),
    UtteranceRefinement(
        PROFILE, TELLING, (Attempt("Hello.", "nothing"), Attempt("Hi.", "x")), "Dutch"
    ),
    PersonalAnswers(PROFILE, "What of my pets?", (PETS,), (("one",), ("many",)), "Dutch"),
    AnswerReading("What of my pets?", (PETS,), (("one",), ("many",)), "Walk it."),
    AnswerRefinement(
        PROFILE,
        "What of my pets?",
        (PETS,),
        ("one",),
        ("Walk them.",),
        (Attempt("Walk.", "vague"),),
        "Dutch",
    ),
    ExposureRating("My dog sheds.", {"pets": "one"}, {"pets": PETS.values}),
    IntegrityRating("My dog sheds.", {"pets": "one"}),
    AnswerAgreement("What of my pets?", {"pets": "one"}, ("Walk it.", "Walk them.")),
)

EXAMPLES: dict[str, Prompt[Any]] = {
    **PLAY,
    **{prompt.kind: prompt for prompt in GENERATION},
}
"""By kind; parts of other prompts (`system_memory`, `generation_repair`) are not calls."""
