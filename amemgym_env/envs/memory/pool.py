"""A pool of playable scripts as stacked arrays, of fixed size, refreshed while it is played.

A pool has `size` open rows, from which episodes draw, and some spare ones. `refresh` writes new
scripts into rows that nobody plays, opens them and closes as many of the oldest; episodes under way
end undisturbed. So memory does not grow with the number of scenarios, only with the pool's size.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.episode_draws import draw, draw_many
from amemgym_env.envs.memory.tables import NOTHING, ScriptTables, script_tables
from amemgym_env.errors import ConfigError
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.policies.features import FeatureSet
from amemgym_env.scenarios.difficulty import Difficulty, named_difficulty
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build

NEAREST_QUESTION, ASKING, TWIN_SIMILARITY, EXAM = range(4)
"""Columns of `Pool.facts`."""
SIMILARITY_SHIFT = 16
"""Bits below the similarities in `Pool.exam_facts`."""
# An axis that is padded gets some room, so that a longer script rarely moves the whole pool.
_ROOM = 1.1


class Player(Protocol):
    """An environment that plays rows of a pool."""

    def rows_in_use(self) -> Iterable[int]:
        """Return the rows of the episodes under way."""
        ...


class Scripts:
    """An endless series of scripts over some scenarios: number n is a function of n alone.

    Each scenario comes once with one script seed before any comes with the next.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        difficulty: str | Difficulty = "default",
        *,
        seed: int = 0,
        rounds_initial: int = 1,
        rounds_update: int = 2,
        shuffle_choices: bool = True,
    ) -> None:
        self.scenarios = scenarios
        self.difficulty = named_difficulty(difficulty)
        self.seed = seed
        self._settings: dict[str, Any] = {
            "rounds_initial": rounds_initial,
            "rounds_update": rounds_update,
            "shuffle_choices": shuffle_choices,
        }

    def __call__(self, number: int) -> Script:
        """Return script `number` (>= 0)."""
        turn, place = divmod(number, len(self.scenarios))
        scenario = self.scenarios[place]
        return build(
            scenario, self.difficulty, self.seed + turn, others=self.scenarios, **self._settings
        )


class ScriptSource(Protocol):
    """Where a pool's scripts come from; must pickle for use in other processes."""

    def __call__(self, number: int) -> Script:
        """Return script `number` (>= 0), the same for the same number."""
        ...


class Pool:
    """Stacked tables of scripts.

    Args:
        source: gives script n for n = 0, 1, ….
        size: rows open to episodes; rows 0..size-1 begin as scripts 0..size-1.
        features: what observations hold.
        embedder: turns texts into integer vectors; its name must be that of `features`.
        spare: rows for `refresh`; None: half of `size`, made at the first refresh.
        keep_scripts: keep each row's script with its scenario, which scalar environments play;
            else it is made anew when one asks for it.

    Raises:
        ConfigError: a size below 1, or another embedder than the features were made for.
    """

    def __init__(
        self,
        source: ScriptSource,
        size: int,
        features: FeatureSet | None = None,
        embedder: Embedder = DEFAULT,
        spare: int | None = None,
        keep_scripts: bool = False,
    ) -> None:
        if size < 1:
            raise ConfigError(f"pool: expected a size of at least 1 script, found {size}")
        self.features = FeatureSet.of(embedder) if features is None else features
        if self.features.embedder != embedder.name:
            raise ConfigError(
                f"features: expected embedder {embedder.name!r}, found {self.features.embedder!r}"
            )
        self.source = source
        self.embedder = embedder
        self.size = size
        self.keep_scripts = keep_scripts
        self.version = 0
        """Goes up when the arrays are laid out anew."""
        self._spare = max(1, size // 2) if spare is None else spare
        self.numbers = list(range(size))  # number of the script in each row
        self._next = size
        self._scripts: dict[int, Script] = {}
        self._players: weakref.WeakSet[Player] = weakref.WeakSet()
        self._pack([self._tables_of(number, number) for number in self.numbers])
        self.open = np.arange(size)  # (size,) rows that episodes draw from, oldest first

    def __deepcopy__(self, memo: dict[int, Any]) -> Pool:
        """Return the pool itself: copies of an environment's spec share it."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave players and scripts behind: another process has its own."""
        return {**vars(self), "_players": None, "_scripts": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state over without players."""
        vars(self).update(state, _players=weakref.WeakSet())
        self._name_facts()  # views do not survive pickling

    def _tables_of(self, number: int, row: int) -> ScriptTables:
        script = self.source(number)
        self._scripts.pop(row, None)
        if self.keep_scripts:
            self._scripts[row] = script
        return script_tables(script, self.features, self.embedder)

    def draw(self, seed: int, number: int) -> int:
        """Return the row of episode `number` of an environment with this seed."""
        return int(self.open[draw(seed, number, len(self.open))])

    def draw_many(
        self, seeds: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """Return `draw` for each pair, shape (n,)."""
        rows: npt.NDArray[np.int64] = self.open[draw_many(seeds, numbers, len(self.open))]
        return rows

    def rows_of(self, scenario_id: str) -> list[int]:
        """Return the open rows that play a scenario, oldest script first.

        Raises:
            ConfigError: no open row does.
        """
        rows = [int(row) for row in self.open if self.scenario_ids[row] == scenario_id]
        if not rows:
            some = list(dict.fromkeys(self.scenario_ids[row] for row in self.open))[:5]
            raise ConfigError(
                f"scenario: expected an id of the pool ({some} …), found {scenario_id!r}"
            )
        return rows

    def script(self, row: int) -> Script:
        """Return the script of a row; made anew when first asked for, then kept."""
        if row not in self._scripts:
            self._scripts[row] = self.source(self.numbers[row])
        return self._scripts[row]

    def join(self, player: Player) -> None:
        """Keep the rows that a player has in use from being overwritten, while it lives."""
        self._players.add(player)

    def refresh(self, count: int | None = None) -> int:
        """Open up to `count` new scripts and close as many old ones; return how many.

        None stands for as many as there are rows that nobody plays. Fewer are opened when
        episodes under way hold the others.
        """
        if len(self.scenario_ids) == self.size:
            self._grow(self.size + self._spare)
        held = set(self.open.tolist())
        for player in self._players:
            held.update(player.rows_in_use())
        free = [row for row in range(len(self.scenario_ids)) if row not in held]
        chosen = free[: len(free) if count is None else count]
        for row in chosen:
            self._write(row, self._tables_of(self._next, row))
            self.numbers[row] = self._next
            self._next += 1
        if chosen:
            kept = self.open[min(len(chosen), self.size) :]
            self.open = np.concatenate([kept, np.array(chosen)])[-self.size :]
        return len(chosen)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [value for value in vars(self).values() if isinstance(value, np.ndarray)]
        return sum(array.nbytes for array in arrays if array.base is None)

    # Rounds beyond a script's own are empty places; so are questions, choices and values.

    def _pack(self, tables: Sequence[ScriptTables]) -> None:
        self.scenario_ids: list[str] = []
        self.script_seeds = np.zeros(0, np.int64)  # (rows,)
        self._allocate(tables, len(tables))
        for row, table in enumerate(tables):
            self._write(row, table)

    def _allocate(self, tables: Sequence[ScriptTables], rows: int) -> None:
        self.texts = max(int(_ROOM * table.rounds) for table in tables) + 2
        """Texts of a row with the empty place in front and one behind the last, T."""
        self.questions = max(len(table.right[0]) for table in tables)
        self.periods = max(len(table.right) for table in tables)
        self.choices = max(table.counts.shape[1] for table in tables)
        self.values = max(table.counts.shape[2] for table in tables)
        """Values of a needed variable and unknown, V."""
        self.depth = max(table.counts.ndim - 2 for table in tables)
        """Variables that a question needs, M."""
        self.given = max(table.pairs.shape[1] for table in tables)
        """Values that a text gives away, E."""
        texts, questions = self.texts, self.questions
        columns = tables[0].rows.shape[1]
        # (rows, T, columns) and so on: the arrays of `ScriptTables` behind an axis of rows.
        self.rows = np.zeros((rows, texts, columns), np.float32)
        self.similarity = np.full((rows, texts, texts), NOTHING, np.int16)
        # What an exam needs to know of a text: (1 + M, rows, T, Q). First the similarity to each
        # question, shifted, then for each needed variable the value given away, dated.
        self.exam_facts = np.zeros((1 + self.depth, rows, texts, questions), np.int32)
        self.exam_facts[0] = NOTHING << SIMILARITY_SHIFT
        self.date_shift = int(self.values**self.depth).bit_length()
        self.pairs = np.full((rows, texts, self.given), -1, np.int16)
        self.codes = np.zeros((rows, texts, self.given), np.uint8)
        # Small facts of a text stand together, so that one look-up fetches them all.
        self.facts = np.full((rows, texts, 4), -1, np.int16)
        self._name_facts()
        self.twin = np.zeros((rows, texts), np.int32)
        self.counts = np.zeros((rows, questions, self.choices, self.values**self.depth), np.uint8)
        self.right = np.zeros((rows, self.periods, questions), np.int16)
        self.right_reading = np.zeros((rows, self.periods, questions), np.int64)
        """Where in `counts` the readings of the right choice begin."""
        self.known = np.zeros((rows, texts), np.bool_)
        self.last_exam = np.full((rows, texts), -1, np.int16)
        self.rounds = np.zeros(rows, np.int64)
        self.question_count = np.ones(rows, np.int64)
        self.exam_count = np.ones(rows, np.int64)
        vectors = tables[0].embedding
        self.embedding = (
            None if vectors is None else np.zeros((rows, texts, vectors.shape[1]), np.int8)
        )
        self.scenario_ids += [""] * (rows - len(self.scenario_ids))
        self.script_seeds = np.resize(self.script_seeds, rows)
        self.exams_in_a_row = False
        """Whether a script has periods without a round, whose exams follow another exam."""
        self.version += 1

    def _name_facts(self) -> None:
        self.nearest_question = self.facts[:, :, NEAREST_QUESTION]
        self.asking = self.facts[:, :, ASKING]
        """The question most similar to a message, -2 where none is known when it is said."""
        self.twin_similarity = self.facts[:, :, TWIN_SIMILARITY]
        self.exam = self.facts[:, :, EXAM]

    def _write(self, row: int, table: ScriptTables) -> None:
        if not self._fits(table):
            self._grow(len(self.scenario_ids), table)
        texts, questions = len(table.rows), len(table.counts)
        self.rows[row, :texts] = table.rows
        self.rows[row, texts:] = 0
        self.similarity[row] = NOTHING
        self.similarity[row, :texts, :texts] = table.similarity
        given = table.pairs.shape[1]
        # Pairs count questions of the pool, not of the script alone.
        variable, question = np.divmod(table.pairs, questions)
        self.pairs[row] = -1
        self.pairs[row, :texts, :given] = np.where(
            table.pairs < 0, -1, variable * self.questions + question
        )
        self.codes[row] = 0
        self.codes[row, :texts, :given] = table.codes
        self._write_exam_facts(row, table, variable, question)
        for name in ("nearest_question", "exam", "last_exam"):
            getattr(self, name)[row] = -1
            getattr(self, name)[row, :texts] = getattr(table, name)
        self.twin[row] = 0
        self.twin[row, :texts] = table.twin
        # A text that was said before is as similar to its twin as to itself; others have none.
        twice = table.twin != np.arange(texts)
        self.twin_similarity[row] = -NOTHING - 1
        self.twin_similarity[row, :texts][twice] = table.similarity.diagonal()[twice]
        self.known[row] = False
        self.known[row, :texts] = table.known
        shape = (self.questions, self.choices, *(self.values,) * self.depth)
        counts = np.zeros(shape, np.uint8)
        missing = self.depth - (table.counts.ndim - 2)
        inner = (*table.counts.shape, *(1,) * missing)
        counts[tuple(slice(0, size) for size in inner)] = table.counts.reshape(inner)
        self.counts[row] = counts.reshape(self.questions, self.choices, -1)
        self.right[row] = 0
        self.right[row, : len(table.right), :questions] = table.right
        choice = (row * self.questions + np.arange(self.questions)) * self.choices + self.right[row]
        self.right_reading[row] = choice * self.values**self.depth
        self.asking[row] = np.where(
            self.known[row] & (self.nearest_question[row] >= 0), self.nearest_question[row], -2
        )
        if (table.last_exam != table.exam).any() and not self.exams_in_a_row:
            self.exams_in_a_row = True
            self.version += 1
        self.rounds[row] = table.rounds
        self.question_count[row] = questions
        self.exam_count[row] = int((table.last_exam - table.exam + 1)[table.exam >= 0].sum())
        if self.embedding is not None and table.embedding is not None:
            self.embedding[row] = 0
            self.embedding[row, :texts] = table.embedding
        self.scenario_ids[row] = table.scenario_id
        self.script_seeds[row] = table.script_seed

    def _write_exam_facts(
        self,
        row: int,
        table: ScriptTables,
        variable: npt.NDArray[np.int16],
        question: npt.NDArray[np.int16],
    ) -> None:
        texts, questions = len(table.rows), len(table.counts)
        facts = self.exam_facts[:, row]
        facts[0] = NOTHING << SIMILARITY_SHIFT
        similarity = table.question_similarity.T.astype(np.int32)
        facts[0, :texts, :questions] = similarity << SIMILARITY_SHIFT
        facts[1:] = 0
        text, place = np.nonzero(table.pairs >= 0)
        which = variable[text, place].astype(np.int64)
        # The later text has the larger number; below it stands where the value leads in `counts`.
        step = table.codes[text, place] * self.values ** (self.depth - 1 - which)
        facts[1 + which, text, question[text, place]] = (text << self.date_shift) + step

    def _fits(self, table: ScriptTables) -> bool:
        return (
            table.rounds + 2 <= self.texts
            and len(table.right[0]) <= self.questions
            and len(table.right) <= self.periods
            and table.counts.shape[1] <= self.choices
            and table.counts.shape[2] <= self.values
            and table.counts.ndim - 2 <= self.depth
            and table.pairs.shape[1] <= self.given
        )

    def _grow(self, rows: int, *more: ScriptTables) -> None:
        """Lay the arrays out anew for more rows, or for a script that is larger than any."""
        tables = [self.tables(row) for row in range(len(self.scenario_ids)) if self.rounds[row]]
        filled = [row for row in range(len(self.scenario_ids)) if self.rounds[row]]
        self._allocate([*tables, *more], rows)
        for row, table in zip(filled, tables, strict=True):
            self._write(row, table)
        self.numbers += [-1] * (rows - len(self.numbers))

    def tables(self, row: int) -> ScriptTables:
        """Return the tables of a row; views where nothing is padded before them."""
        texts, questions = int(self.rounds[row]) + 1, int(self.question_count[row])
        periods = int(max(self.last_exam[row].max(), self.exam[row].max(), 0)) + 1
        counts = self.counts[row, :questions].reshape(
            questions, self.choices, *(self.values,) * self.depth
        )
        return ScriptTables(
            self.scenario_ids[row],
            int(self.script_seeds[row]),
            rows=self.rows[row, :texts],
            similarity=self.similarity[row, :texts, :texts],
            question_similarity=(
                self.exam_facts[0, row, :texts, :questions].T >> SIMILARITY_SHIFT
            ).astype(np.int16),
            pairs=np.where(
                self.pairs[row, :texts] < 0,
                -1,
                self.pairs[row, :texts] // self.questions * questions
                + self.pairs[row, :texts] % self.questions,
            ).astype(np.int16),
            codes=self.codes[row, :texts],
            nearest_question=self.nearest_question[row, :texts],
            twin=self.twin[row, :texts],
            counts=counts,
            right=self.right[row, :periods, :questions],
            known=self.known[row, :texts],
            exam=self.exam[row, :texts],
            last_exam=self.last_exam[row, :texts],
            embedding=None if self.embedding is None else self.embedding[row, :texts],
        )
