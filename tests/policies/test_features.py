"""Features: named, equal from text and from tables, without truth, and telling exposures apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from amemgym_env.agent import shown_message
from amemgym_env.envs.memory.pool import Pool
from amemgym_env.envs.memory.script_source import Scripts
from amemgym_env.envs.memory.tables import shown_texts
from amemgym_env.memory.embedding import DEFAULT
from amemgym_env.policies.features import FeatureSet, TextFeatures
from amemgym_env.policies.wording import LIMIT, WORDING_NAMES, without_time, wording
from amemgym_env.scenarios.library import topics, utterances
from tests.envs.memory.cases import few, pool, scalar

Floats = npt.NDArray[np.float64]


def column(text: str, name: str) -> float:
    return float(wording(text)[WORDING_NAMES.index(name)])


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("I keep my bread at home, we do.", "first_subject", 2 / 4),
        ("I keep my bread at home, we do.", "first_possessive", 1 / 4),
        ("My neighbour says she likes it.", "own_relation", 1 / 4),
        ("My neighbour says she likes it.", "third_person", 1 / 4),
        ("If I moved, I would ask.", "condition", 1 / 4),
        ("If I moved, I would ask.", "modal", 1 / 4),
        ("We were there and had none.", "past_auxiliary", 2 / 4),
        ("We were there and had none.", "negation", 1 / 4),
        ("Is it far? I don't know.", "asks", 0.0),
        ("Is it far?", "asks", 1.0),
        ("one two three four", "words", 4 / 32),
        ("word " * 100_000, "words", LIMIT),
        ("", "words", 0.0),
    ],
    ids=lambda value: str(value)[:24],
)
def test_wording_counts_closed_classes_of_words(text: str, name: str, value: float) -> None:
    assert column(text, name) == pytest.approx(value)


def test_the_time_line_is_seen_and_is_not_counted() -> None:
    shown = shown_message("I walk, she rides.", "2024-05-01T10:00:00", opening=True)
    assert without_time(shown) == ("I walk, she rides.", True)
    plain, opening = wording("I walk, she rides."), wording(shown)
    assert opening[0] == 1.0
    assert plain[0] == 0.0
    assert np.array_equal(plain[1:], opening[1:])


@pytest.mark.parametrize(
    "flags", [{}, {"profile": True}, {"question_blind": True}, {"embedding": True}]
)
def test_features_from_text_equal_features_from_tables(flags: dict[str, bool]) -> None:
    features = FeatureSet.of(DEFAULT, **flags)
    shared = Pool(Scripts(few(), "default"), 3, features, keep_scripts=True)
    memory, slots = scalar("memory", scenarios=shared), scalar("slots", scenarios=shared)
    for seed in range(2):
        seen, _ = memory.reset(seed=seed)
        matrix, _ = slots.reset(seed=seed)
        script = memory.episode.script
        texts = TextFeatures(features, 12, DEFAULT, script.scenario.profile_text)
        generator = np.random.default_rng(seed)
        over = ended = False
        while not over:
            episode = memory.episode
            _, period, session, number = episode.place
            place = (period, session, number)
            shown = shown_message(episode.message, episode.time, number == 0)
            entries, asked = episode.bank.entries, episode.asked
            assert np.array_equal(seen, texts.memory(shown, episode.turn, place, entries, asked))
            held = slots.episode.bank.entries
            assert np.array_equal(matrix, texts.slots(shown, episode.turn, place, held, asked))
            seen, _, over, _, _ = memory.step(int(generator.integers(4)))
            legal = np.flatnonzero(slots.action_masks())
            matrix, _, ended, _, _ = slots.step(int(generator.choice(legal)))
        assert ended


def test_questions_are_unknown_before_the_first_exam_and_when_withheld() -> None:
    names = FeatureSet().feature_names
    asked = [index for index, name in enumerate(names) if name.endswith("asked")]
    known = names.index("questions_known")
    for blind in (False, True):
        features = FeatureSet(question_blind=blind)
        env = scalar("memory", scenarios=Pool(Scripts(few(), "default"), 1, features))
        seen, _ = env.reset(seed=0)
        over = False
        while not over:
            past_exam = bool(env.episode.exams) and not blind
            assert bool(seen[known]) == past_exam
            assert past_exam or not seen[asked].any()
            seen, _, over, _, _ = env.step(1)


def test_no_feature_knows_the_truth_unless_asked_to() -> None:
    # The same words about other values, other right choices: nothing that is seen may change.
    script = pool().script(0)
    features = FeatureSet()
    assert not any("exposes" in name for name in features.feature_names)
    told = FeatureSet(privileged=True)
    assert [name for name in told.feature_names if name not in features.feature_names] == [
        "message.exposes",
        "nearest.exposes",
        "oldest.exposes",
    ]
    tables = Pool(Scripts(few(), "default"), 1, told).tables(0)
    exposes = tables.rows[1:, told.text_names.index("exposes")]
    assert [bool(value) for value in exposes] == [bool(u.exposures) for u in script.utterances]
    assert len(shown_texts(script)) == len(exposes)


def test_a_key_names_one_set_of_features() -> None:
    sets = [
        FeatureSet(),
        FeatureSet(profile=True),
        FeatureSet(embedding=True),
        FeatureSet(question_blind=True),
        FeatureSet(privileged=True),
        FeatureSet(embedder="another"),
    ]
    assert len({item.key for item in sets}) == len(sets)
    assert FeatureSet().key == FeatureSet().key
    for item in sets:
        assert len(set(item.feature_names)) == len(item.feature_names)
        assert len(item.slot_names) == len(item.message_names)


def area_under_curve(scores: Floats, labels: npt.NDArray[np.bool_]) -> float:
    ranks = np.argsort(np.argsort(scores, kind="stable"))
    positives = int(labels.sum())
    pairs = positives * (len(labels) - positives)
    return float((ranks[labels].sum() - positives * (positives - 1) / 2) / pairs)


def fitted(rows: Floats, labels: npt.NDArray[np.bool_]) -> Floats:
    """Return the weights of a logistic regression, by Newton's method with a small penalty."""
    weights = np.zeros(rows.shape[1])
    for _ in range(20):
        chances = 1 / (1 + np.exp(-rows @ weights))
        gradient = rows.T @ (chances - labels) + weights
        curvature = (rows.T * (chances * (1 - chances))) @ rows + np.eye(len(weights))
        weights -= np.linalg.solve(curvature, gradient)
    return weights


def test_a_linear_classifier_tells_exposures_from_their_minimal_pairs() -> None:
    rows, labels, near, topic_of = [], [], [], []
    for number, topic in enumerate(topics("validation")):
        for text, kind in utterances(topic):
            rows.append(wording(text))
            labels.append(kind in ("exposure", "joint"))
            near.append(kind not in ("opener", "follow_up"))
            topic_of.append(number)
    table = np.array(rows, np.float64)
    table = (table - table.mean(axis=0)) / (table.std(axis=0) + 1e-9)
    table = np.concatenate([table, np.ones((len(table), 1))], axis=1)
    truth, pairs, fold = np.array(labels), np.array(near), np.array(topic_of) % 4
    scores = np.zeros(len(table))
    for part in range(4):  # topics of a part are unseen
        weights = fitted(table[fold != part], truth[fold != part])
        scores[fold == part] = table[fold == part] @ weights
    assert area_under_curve(scores, truth) > 0.85
    assert area_under_curve(scores[pairs], truth[pairs]) > 0.9
