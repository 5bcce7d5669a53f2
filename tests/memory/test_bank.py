from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amemgym_env.agent import Entry, Op, Operation
from amemgym_env.memory.bank import Bank, Status, in_time_order

TIMES = ("2024-01-01T10:00:00", "2024-01-02T10:00:00")
TEXTS = st.sampled_from(["a", "b", "c", " ", "", "é🙂"])
IDS = st.sampled_from(["1", "2", "3", "9", "x"])
OPERATIONS = st.one_of(
    TEXTS.map(Operation.add),
    st.builds(Operation.update, IDS, TEXTS),
    IDS.map(Operation.delete),
    st.just(Operation.noop()),
)


def bank(*texts: str, capacity: int | None = None) -> Bank:
    made, _ = Bank(capacity=capacity).apply_all(map(Operation.add, texts), TIMES[0], 0)
    return made


def replayed(operations: list[Operation], capacity: int | None) -> tuple[dict[str, str], int]:
    """The rules once more, on a dict of texts by id."""
    texts: dict[str, str] = {}
    next_id, refused = 1, 0
    for op, entry_id, text in operations:
        if op is Op.NOOP:
            continue
        if op is not Op.DELETE and not (text or "").strip():
            refused += 1
        elif op is Op.ADD:
            if text in texts.values():
                continue
            if capacity is not None and len(texts) >= capacity:
                refused += 1
            else:
                texts[str(next_id)] = text or ""
                next_id += 1
        elif entry_id not in texts:
            refused += 1
        elif op is Op.UPDATE:
            texts[entry_id] = text or ""
        else:
            del texts[entry_id]
    return texts, refused


@given(st.lists(OPERATIONS, max_size=30), st.sampled_from([None, 1, 2, 3]))
def test_any_operations_equal_their_replay_on_a_dict(
    operations: list[Operation], capacity: int | None
) -> None:
    made, outcomes = Bank(capacity=capacity).apply_all(operations, TIMES[0], 0)
    texts, refused = replayed(operations, capacity)
    assert {entry.id: entry.text for entry in made.entries} == texts
    assert sum(outcome.status.refused for outcome in outcomes) == refused
    assert [outcome.operation for outcome in outcomes] == operations
    assert Bank.from_json(json.loads(json.dumps(made.to_json()))) == made


@given(st.lists(OPERATIONS, max_size=20))
def test_noops_anywhere_change_nothing(operations: list[Operation]) -> None:
    spread = [item for operation in operations for item in (Operation.noop(), operation)]
    assert Bank().apply_all(spread, TIMES[0], 3)[0] == Bank().apply_all(operations, TIMES[0], 3)[0]


@given(st.lists(OPERATIONS, max_size=20), st.sampled_from([1, 2, 3]))
def test_a_bank_never_exceeds_its_capacity_and_a_refusal_changes_nothing(
    operations: list[Operation], capacity: int
) -> None:
    made = Bank(capacity=capacity)
    for turn, operation in enumerate(operations):
        after, outcome = made.apply(operation, TIMES[1], turn)
        assert len(after.entries) <= capacity
        assert after == made or not (outcome.status.refused or outcome.status is Status.NOOP)
        made = after


def test_a_full_bank_refuses_and_delete_frees_a_slot() -> None:
    full = bank("a", "b", capacity=2)
    same, outcome = full.apply(Operation.add("c"), TIMES[1], 1)
    assert (same, outcome.status) == (full, Status.FULL)
    after, outcomes = full.apply_all([Operation.delete("1"), Operation.add("c")], TIMES[1], turn=1)
    assert [outcome.status for outcome in outcomes] == [Status.APPLIED, Status.APPLIED]
    assert after.entries == (
        Entry("2", "b", TIMES[0], TIMES[0], 0),
        Entry("3", "c", TIMES[1], TIMES[1], 1),
    )


def test_update_keeps_the_id_the_place_and_when_it_was_written() -> None:
    after, outcome = bank("a", "b").apply(Operation.update("1", "A"), TIMES[1], 4)
    assert outcome.status is Status.APPLIED
    assert after.entries == (
        Entry("1", "A", TIMES[0], TIMES[1], 4),
        Entry("2", "b", TIMES[0], TIMES[0], 0),
    )


def test_adding_what_stands_there_refreshes_it_even_when_full() -> None:
    after, outcome = bank("a", "b", capacity=2).apply(Operation.add("a"), TIMES[1], 4)
    assert (outcome.status, outcome.entry_id) == (Status.REFRESHED, "1")
    assert after.entries[0] == Entry("1", "a", TIMES[0], TIMES[1], 4)
    assert len(after.entries) == 2


def test_b10_04_an_unknown_id_is_reported_and_the_other_operations_apply() -> None:
    unknown = [Operation(Op.UPDATE, entry_id, "x") for entry_id in ("12", None, "0", "")]
    operations = [*unknown, Operation.update("2", "B"), Operation.update("2", "BB")]
    after, outcomes = bank("a", "b").apply_all(operations, TIMES[1], 1)
    assert [outcome.status for outcome in outcomes] == [Status.UNKNOWN] * 4 + [Status.APPLIED] * 2
    assert [entry.text for entry in after.entries] == ["a", "BB"]


def test_b10_05_an_update_touches_its_entry_alone() -> None:
    before = bank(*"ABCDE")
    operations = [Operation.update("4", "D!"), Operation.update("5", "E!")]
    after, _ = before.apply_all(operations, TIMES[1], 1)
    assert after.entries[:3] == before.entries[:3]
    assert [entry.text for entry in after.entries[3:]] == ["D!", "E!"]


def test_b10_08_times_are_the_scenarios_and_turns_break_ties() -> None:
    made, _ = Bank().apply(Operation.add("first"), TIMES[1], 0)
    made, _ = made.apply(Operation.add("second"), TIMES[1], 1)
    made, _ = made.apply(Operation.update("1", "first again"), TIMES[1], 2)
    assert [entry.id for entry in in_time_order(made.entries)] == ["2", "1"]
    assert {entry.updated_at for entry in made.entries} == {TIMES[1]}


@pytest.mark.parametrize("text", ["", "  \n", None], ids=["empty", "blank", "none"])
def test_b10_15_text_without_content_is_refused(text: str | None) -> None:
    before = bank("a")
    for op in (Op.ADD, Op.UPDATE):
        after, outcome = before.apply(Operation(op, "1", text), TIMES[1], 1)
        assert (after, outcome.status) == (before, Status.EMPTY)


def test_ids_are_never_used_again() -> None:
    made = bank("a")
    for turn in range(1, 4):
        made, _ = made.apply_all(
            [Operation.delete(made.entries[0].id), Operation.add("a")], TIMES[1], turn
        )
    assert [entry.id for entry in made.entries] == ["4"]
