"""The paper's agents: windows, batches, what is stored, and that answering changes nothing."""

from __future__ import annotations

import copy

import pytest

from agents import AWE, AWI, RAG, Assistant, Native
from amemgym_env.agent import Entry, Exam, Op, Question, Turn
from amemgym_env.errors import ConfigError
from amemgym_env.memory.bank import Bank
from amemgym_env.memory.index import MemoryIndex, ReadOnlyView
from amemgym_env.models.client import Backend, Call, Completion, Models, Usage
from amemgym_env.testing import check_agent


class Scripted(Backend):
    """Answers each kind of call with the given texts, the last one again and again."""

    name = "scripted"
    simulated = True

    def __init__(self, **texts: list[str]) -> None:
        self.texts = texts
        self.calls: list[Call] = []

    def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        texts = self.texts[call.kind]
        return Completion(texts.pop(0) if len(texts) > 1 else texts[0], Usage(1))


def view(*texts: str) -> ReadOnlyView:
    index = MemoryIndex()
    entries = tuple(
        Entry(str(number), text, "2024-01-01", "2024-01-01", number)
        for number, text in enumerate(texts, start=1)
    )
    index.load(Bank(entries, len(entries) + 1))
    return ReadOnlyView(index)


def turn(message: str, number: int = 0, memory: tuple[Entry, ...] = ()) -> Turn:
    return Turn(0, 0, number, "2024-01-01T08:00:00", message, memory)


def talk(agent: Assistant, *messages: str) -> list[list[str | None]]:
    """Return the texts of the operations after each round; every round is a follow-up."""
    written = []
    for message in messages:
        shown = turn(message, number=1)
        reply = agent.reply(shown)
        written.append([operation.text for operation in agent.write(shown, reply)])
    return written


def test_rag_writes_the_oldest_freq_messages_when_the_window_holds_freq_plus_ns() -> None:
    agent = RAG(Models({"assistant": Scripted(assistant_reply=["r1", "r2", "r3", "r4"])}))
    agent.reset(view())
    assert talk(agent, "u1", "u2", "u3", "u4") == [
        [],
        [],
        ["user: u1", "assistant: r1"],
        ["user: u2", "assistant: r2"],
    ]
    assert [part["content"] for part in agent.window] == ["u3", "r3", "u4", "r4"]


@pytest.mark.parametrize(
    ("freq", "ns", "sizes"),
    [(2, 0, [2, 2, 2, 2]), (4, 4, [0, 0, 0, 4]), (8, 0, [0, 0, 0, 8]), (1, 4, [0, 0, 2, 2])],
)
def test_window_and_batch_sizes(freq: int, ns: int, sizes: list[int]) -> None:
    backend = Scripted(assistant_reply=["r1", "r2", "r3", "r4"])
    agent = RAG(Models({"assistant": backend}), freq, ns)
    agent.reset(view())
    assert [len(texts) for texts in talk(agent, "u1", "u2", "u3", "u4")] == sizes


def test_an_opener_is_shown_and_stored_with_its_time() -> None:
    backend = Scripted(assistant_reply=["r"])
    agent = RAG(Models({"assistant": backend}), freq=2, ns=0)
    agent.reset(view())
    operations = agent.write(turn("hello"), agent.reply(turn("hello")))
    assert operations[0].text == "user: [Current time: 2024-01-01T08:00:00]\nhello"
    assert backend.calls[0].messages[-1]["content"].endswith("08:00:00]\nhello")


def test_memories_are_shown_in_order_of_time_before_the_window() -> None:
    backend = Scripted(assistant_reply=["r"])
    agent = RAG(Models({"assistant": backend}))
    agent.reset(view())
    talk(agent, "u1")
    memory = (Entry("2", "later", "", "", 8), Entry("1", "earlier", "", "", 3))
    agent.reply(turn("u2", 1, memory))
    roles = [part["role"] for part in backend.calls[-1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert "- earlier\n- later" in backend.calls[-1].messages[0]["content"]


def test_native_sees_every_earlier_message_and_no_system_message() -> None:
    backend = Scripted(assistant_reply=["r1", "r2", "r3"])
    agent = Native(Models({"assistant": backend}))
    agent.reset(view())
    assert talk(agent, "u1", "u2", "u3") == [[], [], []]
    shown = [(part["role"], part["content"]) for part in backend.calls[-1].messages]
    assert shown == [
        ("user", "u1"), ("assistant", "r1"), ("user", "u2"), ("assistant", "r2"), ("user", "u3")
    ]  # fmt: skip


def test_awe_compares_each_fact_with_its_five_nearest_entries() -> None:
    backend = Scripted(
        assistant_reply=["r"],
        fact_extraction=['{"facts": ["The user rides a bicycle"]}'],
        memory_decision=['{"operations": [{"op": "UPDATE", "id": 3, "text": "rides a bicycle"}]}'],
    )
    agent = AWE(Models({"assistant": backend}), freq=2, ns=0)
    stored = ["tea", "a cat", "The user rides a train", "bicycle bell", "user", "rides", "walks"]
    agent.reset(view(*stored))
    operations = agent.write(turn("u"), agent.reply(turn("u")))
    assert [tuple(operation) for operation in operations] == [(Op.UPDATE, "3", "rides a bicycle")]
    asked = backend.calls[-1].messages[0]["content"]
    assert asked.count("\n[") == 5
    assert "[3] The user rides a train" in asked


def test_awe_without_facts_asks_for_no_decision() -> None:
    backend = Scripted(assistant_reply=["r"], fact_extraction=['{"facts": []}'])
    agent = AWE(Models({"assistant": backend}), freq=2, ns=0)
    agent.reset(view())
    assert talk(agent, "u") == [[]]


@pytest.mark.parametrize("reply", ["nothing new", "```json\n```", '["likes tea"]', '"none"', "3"])
def test_b01_19_an_unreadable_update_leaves_the_memory_and_is_counted(reply: str) -> None:
    models = Models({"assistant": Scripted(assistant_reply=["r"], dictionary_update=[reply])})
    agent = AWI(models, freq=2, ns=0)
    agent.reset(view("city: Bergen"))
    assert talk(agent, "u") == [[]]
    assert sum(models.causes.values()) == 1


def test_b10_17_labels_that_differ_in_spelling_are_one_attribute() -> None:
    update = '{"Home_City ": "Oslo", "pet": "a cat", "old hobby": null}'
    models = Models({"assistant": Scripted(assistant_reply=["r"], dictionary_update=[update])})
    agent = AWI(models, freq=2, ns=0)
    agent.reset(view("home city: Bergen", "old hobby: chess"))
    operations = agent.write(turn("u"), agent.reply(turn("u")))
    assert [(operation.op, operation.entry_id) for operation in operations] == [
        (Op.UPDATE, "1"), (Op.ADD, None), (Op.DELETE, "2")
    ]  # fmt: skip


def test_b10_19_the_pending_window_counts_in_answers_and_in_saved_state() -> None:
    backend = Scripted(assistant_reply=["r"], exam_answer=['{"answer": 2}'])
    agent = RAG(Models({"assistant": backend}), freq=2, ns=4)
    agent.reset(view())
    talk(agent, "I moved to Oslo")
    exam = Exam(0, "2024-01-31", (Question("Where?", ("a", "b")),))
    assert [tuple(answer) for answer in agent.answer(exam)] == [(1, None)]
    assert "I moved to Oslo" in str(backend.calls[-1].messages)
    other = RAG(Models({"assistant": backend}), freq=2, ns=4)
    other.reset(view())
    other.load_state_dict(copy.deepcopy(agent.state_dict()))
    assert other.state_dict() == agent.state_dict()
    assert talk(other, "u2", "u3")[1][0] == "user: I moved to Oslo"


def test_an_empty_reply_of_the_model_is_not_kept_as_a_message() -> None:
    agent = RAG(Models({"assistant": Scripted(assistant_reply=[""])}))
    agent.reset(view())
    talk(agent, "u1")
    assert [part["role"] for part in agent.window] == ["user"]


@pytest.mark.parametrize("agent", [Native, RAG, AWE, AWI], ids=lambda kind: kind.name)
def test_each_agent_keeps_the_contract(agent: type[Assistant]) -> None:
    assert check_agent(agent)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"freq": 0}, "agent.freq"), ({"ns": -1}, "agent.ns"), ({"top_k": -2}, "agent.top_k")],
)
def test_settings_out_of_range_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RAG(Models({"assistant": Scripted()}), **settings)
