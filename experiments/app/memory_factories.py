"""Factories of similarity stores and embedders, with their settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.memory.index import NumpyStore, StoreFactory
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.script import Script
from experiments.app.run_folder import inside
from experiments.app.settings import Settings, with_usual_address


class NumpySettings(Settings):
    """`store=numpy`."""

    name: Literal["numpy"] = "numpy"


class ChromaSettings(Settings):
    """`store=chroma`."""

    name: Literal["chroma"]
    path: str | None = None
    index: Literal["exact", "approximate"] = "exact"


class HashedSettings(Settings):
    """`embedding=hashed`."""

    name: Literal["hashed"] = "hashed"


class WordLlamaSettings(Settings):
    """`embedding=wordllama`."""

    name: Literal["wordllama"]


class LitellmEmbeddingSettings(Settings):
    """`embedding=litellm`. There is no key in it: keys come from the environment only."""

    name: Literal["litellm"]
    model: str
    api_base: str | None = None
    api_key_env: str | None = None
    timeout: Annotated[float, Field(gt=0)] = 30.0
    retries: Annotated[int, Field(ge=0)] = 5
    max_wait: Annotated[float, Field(ge=0)] = 120.0
    cache: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _usual_address(cls, given: Any) -> Any:
        """Write down the address that litellm would take from the environment."""
        return with_usual_address(given)


StoreSettings = Annotated[NumpySettings | ChromaSettings, Field(discriminator="name")]
EmbeddingSettings = Annotated[
    HashedSettings | WordLlamaSettings | LitellmEmbeddingSettings, Field(discriminator="name")
]


def store(settings: StoreSettings, folder: Path) -> Callable[[Script], StoreFactory]:
    """Return what makes the store of a scenario; chroma's lies in the run's folder by default."""
    if isinstance(settings, NumpySettings):
        return lambda script: NumpyStore
    from amemgym_env.memory.chroma import ChromaStore

    root = folder / "stores" if settings.path is None else Path(settings.path)

    def of(script: Script) -> StoreFactory:
        scenario = script.scenario.id
        name = slug(scenario)
        path = inside(folder if settings.path is None else root, root / name)
        # A continued run is replayed from its start: its store is written anew.
        return lambda width: ChromaStore(
            width, path, name, index=settings.index, fresh=True, scenario=scenario
        )

    return of


def offline(name: str) -> Embedder:
    """Return an offline embedder by its name: hashed or wordllama.

    Raises:
        ConfigError: its package is not installed.
    """
    if name == "hashed":
        return DEFAULT
    from amemgym_env.memory.wordllama import WordLlamaEmbedder

    return WordLlamaEmbedder()


def embedder(settings: EmbeddingSettings, folder: Path) -> Embedder:
    """Return the embedder; what a provider computed is kept in the run's folder by default."""
    if isinstance(settings, HashedSettings):
        return DEFAULT
    if isinstance(settings, WordLlamaSettings):
        return offline("wordllama")
    from amemgym_env.models.litellm.embedding import LitellmEmbedder

    cache = folder / "embeddings" if settings.cache is None else Path(settings.cache)
    return LitellmEmbedder(**settings.model_dump(exclude={"name", "cache"}), cache=cache)
