"""Personas composed from demographic tables, with the fields of the benchmark's profiles.

Age comes first, then what is plausible at that age: education, occupation, marital status, and
what the person has (children, a garden, a car, ...), on which topics may depend. Names and towns
belong to one split each, so no persona of one split can be met in another.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from amemgym_env.scenarios.library import Split
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.seeding import digest

POOL_SIZES: dict[Split, int] = {"train": 600, "validation": 200, "test": 400}
"""Personas of each split."""

_RETIREMENT_AGE = 67
_YOUNGEST, _OLDEST = 18, 86


class Persona(NamedTuple):
    """One person: the profile as the benchmark writes it, and what topics may ask for."""

    profile: dict[str, Any]
    age: int
    has: frozenset[str]
    """Some of `children`, `garden`, `car`, `pet`, `job`, `study`, `retired`, `partner`."""

    @property
    def name(self) -> str:
        """The first name."""
        return str(self.profile["name"])


@dataclass(frozen=True, slots=True)
class _Life:
    """What a persona's tables decide before it is told as a profile."""

    age: int
    woman: bool
    education: str
    occupation: dict[str, Any] | None
    marital_status: str
    has: frozenset[str]


@cache
def personas(split: Split) -> tuple[Persona, ...]:
    """Return the pool of a split, always the same: `POOL_SIZES[split]` distinct personas."""
    return tuple(_persona(split, number) for number in range(POOL_SIZES[split]))


@cache
def _tables() -> dict[str, Any]:
    file = resources.files("amemgym_env").joinpath("scenarios", "library_data", "personas.json")
    tables: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return tables


def _persona(split: Split, number: int) -> Persona:
    tables = _tables()
    draws = Draws("persona", split, number)
    life = _life(draws, tables)
    # Walking through regions and names in turn spreads them evenly; drawing would not.
    regions = tables["regions"]
    region = regions[number % len(regions)][split]
    names = region["women" if life.woman else "men"]
    name = names[number // len(regions) % len(names)]
    hobbies = draws.sample(tables["hobbies"], 3 + draws.below(2))
    skills = [
        *(life.occupation or {"skills": []})["skills"],
        *draws.sample(tables["other_skills"], 2),
    ]
    profile = {
        "uuid": _uuid(split, number),
        "name": name,
        "age": life.age,
        "gender": "Female" if life.woman else "Male",
        "marital_status": life.marital_status,
        "education_level": life.education,
        "occupation": _occupation_name(life),
        "hobbies_and_interests": ", ".join(hobbies),
        "skills_and_expertise": ", ".join(skills),
        "complementary_info": _about(
            draws, tables, split, life, name, draws.pick(region["towns"]), hobbies
        ),
    }
    lines = (f"{key}: {value}" for key, value in profile.items() if key != "uuid")
    return Persona({**profile, "formatted_str": "\n".join(lines)}, life.age, life.has)


def _life(draws: Draws, tables: dict[str, Any]) -> _Life:
    age = _YOUNGEST + draws.below(_OLDEST - _YOUNGEST + 1)
    has: set[str] = set()
    levels: list[str] = tables["education_levels"]
    if age >= _RETIREMENT_AGE:
        has.add("retired")
    elif age <= 26 and draws.chance(0.5):
        has.add("study")
    elif draws.chance(0.9):
        has.add("job")
    # Nobody of 20 has a degree that takes until 22 or 24.
    reachable = [
        level for level, least in zip(levels, (18, 18, 19, 20, 22, 24), strict=True) if least <= age
    ]
    education = "some_college" if "study" in has and age < 22 else draws.pick(reachable)
    if "study" in has and education == "no_diploma":
        education = "high_school"
    occupation = None
    if "job" in has:
        fitting = [
            job
            for job in tables["occupations"]
            if job["min_age"] <= age
            and levels.index(job["lowest_education"])
            <= levels.index(education)
            <= levels.index(job["highest_education"])
        ]
        occupation = draws.pick(fitting)
    marital_status = _marital_status(draws, age)
    if marital_status == "married_present" or (marital_status != "widowed" and draws.chance(0.25)):
        has.add("partner")
    chances = {
        "children": (0.75 if "partner" in has else 0.35) if 28 <= age <= 58 else 0.0,
        "garden": 0.2 if age < 28 else 0.5,
        "car": 0.3 if age < 24 else 0.65,
        "pet": 0.45,
    }
    has.update(thing for thing, chance in chances.items() if draws.chance(chance))
    return _Life(age, draws.chance(0.5), education, occupation, marital_status, frozenset(has))


def _marital_status(draws: Draws, age: int) -> str:
    married = 0.05 if age < 24 else 0.4 if age < 32 else 0.62
    divorced = 0.0 if age < 30 else 0.14
    widowed = 0.0 if age < 50 else 0.06 if age < 67 else 0.28
    drawn = draws.uniform()
    if drawn < widowed:
        return "widowed"
    if drawn < widowed + divorced:
        return "divorced"
    return "married_present" if draws.chance(married) else "never_married"


def _occupation_name(life: _Life) -> str:
    if life.occupation is not None:
        return str(life.occupation["name"])
    return "student" if "study" in life.has else "not_in_workforce"


def _about(
    draws: Draws,
    tables: dict[str, Any],
    split: Split,
    life: _Life,
    name: str,
    town: str,
    hobbies: list[str],
) -> str:
    trait, other_trait = draws.sample(tables["traits"], 2)
    job = _occupation_name(life).replace("_", " ")
    words = {
        "name": name,
        "town": town,
        "trait": trait,
        "other_trait": other_trait,
        "hobby": hobbies[0],
        "job": f"{'an' if job[0] in 'aeiou' else 'a'} {job}",
    }
    things = [thing for thing in tables["has"] if thing in life.has]
    templates = [
        draws.pick(tables["about"][split]),
        *(draws.pick(tables["has"][thing]) for thing in things),
        draws.pick(tables["interest"][split]),
    ]
    return " ".join(template.format(**words) for template in templates)


def _uuid(split: Split, number: int) -> str:
    text = digest("persona id", split, number).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
