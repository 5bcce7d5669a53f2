"""Import of litellm, and one request through it.

litellm's and the SDKs' own retries are switched off. Keys are read from the environment when a
request is made and kept nowhere.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from amemgym_env.models.litellm import event_loop as loop_thread
from amemgym_env.models.litellm.faults import Fault, classify, out_of_time
from amemgym_env.models.litellm.responses import Answered, read_response, refused_response
from amemgym_env.models.redaction import guard_loggers

SETTINGS = {
    # Its price table comes from its own files, not from the network.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # Nobody sees the copy of all messages that it makes for logs: a tenth of a request's time.
    "MAX_BASE64_LENGTH_FOR_LOGGING": "0",
}
"""What litellm reads from the environment when it is imported."""


def set_environment() -> None:
    """Set what litellm reads, where the user did not."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


@functools.cache
def library() -> Any:
    """Return litellm, offline where it can be, quiet, and without keys in its logs."""
    set_environment()
    collected = gc.isenabled()
    gc.disable()  # it makes a million objects that stay: looking through them takes a second
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own imports use what pydantic deprecates
            import litellm
    finally:
        if collected:
            gc.enable()
    # It writes what it got into classes that are a little narrower: dozens of lines a run.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    guard_loggers("LiteLLM", "LiteLLM Router", "openai._base_client", "httpx", "asyncio")
    # Registered after litellm's own, so run before it.
    loop_thread.at_exit(litellm.close_litellm_async_clients)  # type: ignore[attr-defined]
    return litellm


def log_nothing() -> None:
    """Let requests that begin in this context skip litellm's own logs, a tenth of their time.

    For processes in which nobody can have asked for them (by `litellm.success_callback`).
    """
    library()
    with suppress(ImportError):  # another version may not know it, and logs
        from litellm._internal_context import is_internal_call

        is_internal_call.set(True)


class Facts(NamedTuple):
    """What litellm knows of a model."""

    prices: tuple[float, float] | None
    """Dollars a prompt and a completion token; None: not known."""
    takes_format: bool
    """Whether a form of the reply may be asked for."""
    takes_schema: bool
    """Whether that form may be a JSON schema."""


def facts(model: str) -> Facts:
    """Return what litellm knows of a model by its name."""
    litellm = library()
    try:
        known = litellm.get_model_info(model)
        # For some providers it makes up an entry, with prices of 0, for any name.
        listed = litellm.model_cost.get(known["key"]) or {}
        prices = float(listed["input_cost_per_token"]), float(listed["output_cost_per_token"])
    except Exception:  # noqa: BLE001 - and so here
        prices = None
    try:
        supported = litellm.get_supported_openai_params(model) or []
        schema = bool(litellm.supports_response_schema(model))
    except Exception:  # noqa: BLE001 - and so here
        supported, schema = [], False
    return Facts(prices, "response_format" in supported, schema)


async def request(arguments: Mapping[str, Any], timeout: float) -> Answered | Fault:
    """Send one request (seconds at most) and return what came of it; nothing is raised.

    `arguments` are those of `litellm.acompletion`, as plain data; they are left as they are.
    """
    messages = [dict(part) for part in arguments["messages"]]  # providers' code changes them
    try:
        # litellm's own limit counts from byte to byte: a server that drips would hold it for ever.
        async with asyncio.timeout(timeout):
            response = await library().acompletion(
                **{**arguments, "messages": messages},
                timeout=timeout,
                num_retries=0,
                max_retries=0,
            )
        return read_response(response, arguments)
    except TimeoutError:
        return out_of_time(timeout)
    except Exception as error:  # noqa: BLE001 - every error is classified
        response = refused_response(error)
        if response is None:
            return classify(error, arguments)
        return read_response(response, arguments)
