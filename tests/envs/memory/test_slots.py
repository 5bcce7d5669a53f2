"""`AMemGymSlots-v0`: choosing what to give up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from amemgym_env.agent import Entry, Op
from amemgym_env.policies.actions import legal_slot_actions, slot_operations
from amemgym_env.policies.features import MESSAGE_NAMES, SLOT_NAMES
from tests.envs.memory.cases import batch, pool, scalar

CAPACITY = 3


def test_slot_actions_are_operations_on_the_chosen_entry() -> None:
    bank = tuple(Entry(str(number), f"text {number}", "", "", number) for number in (4, 7))

    def played(action: int) -> list[tuple[Op, str | None, str | None]]:
        return [tuple(item) for item in slot_operations(action, "new", bank, CAPACITY)]

    assert played(0) == []
    assert played(1) == [(Op.ADD, None, "new")]
    assert played(2) == [(Op.UPDATE, "4", "new")]
    assert played(3) == [(Op.UPDATE, "7", "new")]
    assert played(4) == []
    assert played(5) == [(Op.DELETE, "4", None)]
    assert played(6) == [(Op.DELETE, "7", None)]
    assert played(7) == []
    assert legal_slot_actions(2, CAPACITY) == [True, True, True, True, False, True, True, False]
    assert legal_slot_actions(3, CAPACITY) == [True, False, *[True] * 6]
    assert slot_operations(1, "new", (*bank, bank[0]), CAPACITY) == ()


def column(row: npt.NDArray[np.float32], name: str, names: tuple[str, ...]) -> float:
    return float(row[len(row) - len(names) + names.index(name)])


def test_every_entry_has_a_row_and_empty_places_are_zero() -> None:
    env = scalar("slots", capacity=CAPACITY)
    seen, _ = env.reset(seed=2)
    assert not seen[1:].any()
    for action in (1, 1, 0, 1):
        seen, *_ = env.step(action)
    assert [column(row, "present", SLOT_NAMES) for row in seen[1:]] == [1.0, 1.0, 1.0]
    ages = [column(row, "age", SLOT_NAMES) for row in seen[1:]]
    assert ages == [np.float32(age / (age + 16)) for age in (4, 3, 1)]
    assert [column(row, "oldest", SLOT_NAMES) for row in seen[1:]] == [1.0, 0.0, 0.0]
    assert sum(column(row, "nearest", SLOT_NAMES) for row in seen[1:]) == 1.0
    assert column(seen[0], "full", MESSAGE_NAMES) == 1.0
    seen, *_ = env.step(2)  # the oldest entry is given up for the message
    assert [entry.turn for entry in env.episode.bank.entries] == [4, 1, 3]
    seen, *_ = env.step(2 + CAPACITY + 1)
    assert [entry.turn for entry in env.episode.bank.entries] == [4, 3]
    assert not seen[3].any()


def test_the_order_of_the_rows_is_that_of_the_bank() -> None:
    one, many = scalar("slots"), batch("slots", 1)
    one.reset(seed=0)
    many.reset(seed=0)
    generator = np.random.default_rng(1)
    for _ in range(100):
        action = int(generator.choice(np.flatnonzero(one.action_masks())))
        one.step(action)
        many.step(np.array([action]))
        turns = [entry.turn + 1 for entry in one.episode.bank.entries]
        assert many.episodes.slots[: len(turns), 0].tolist() == turns


def test_giving_up_what_nobody_asks_for_beats_giving_up_the_oldest() -> None:
    # With the truth at hand: keep messages that give something away, lose the others first.
    shared = pool()
    paid = {"oldest": 0.0, "useless": 0.0}
    for rule in paid:
        env = scalar("slots")
        for seed in range(4):
            env.reset(seed=seed)
            over = False
            while not over:
                episode = env.episode
                said = episode.script.utterances
                bank = episode.bank.entries
                utterance = episode.utterance
                assert utterance is not None
                if len(bank) < 12:
                    action = int(bool(utterance.exposures))
                elif not utterance.exposures:
                    action = 0
                elif rule == "oldest":
                    turns = [entry.turn for entry in bank]
                    action = 2 + turns.index(min(turns))
                else:
                    variables = {name for name, _ in utterance.exposures}
                    stale = [
                        place
                        for place, entry in enumerate(bank)
                        if variables & {name for name, _ in said[entry.turn].exposures}
                    ]
                    action = 2 + stale[0] if stale else 0
                _, reward, over, _, _ = env.step(action)
                paid[rule] += reward
    assert shared.size == 8
    assert paid["useless"] > paid["oldest"]
