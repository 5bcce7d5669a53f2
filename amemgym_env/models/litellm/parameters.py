"""Address, key and optional parameters of a model's calls.

A refused parameter is left out or lowered from then on, once, with a warning; JSON by schema falls
back to any JSON object, and that to plain text.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from amemgym_env.errors import ConfigError
from amemgym_env.models.backend import Call
from amemgym_env.models.litellm.faults import Fault
from amemgym_env.models.redaction import redacted

Format = Literal["auto", "schema", "object_schema", "object", "plain"]
"""How a reply in JSON is asked for; auto: as strictly as the model allows.

`object_schema` is what servers on llama.cpp take instead of `schema`.
"""

_NEXT: Mapping[Format, Format] = {"schema": "object", "object_schema": "object", "object": "plain"}


class Parameters:
    """The optional parameters of a model's calls; shared by all calls of a backend."""

    def __init__(self, model: str, optional: Mapping[str, Any], form: Format) -> None:
        self.model = model
        self.optional = {name: value for name, value in optional.items() if value is not None}
        self.form: Format = form
        self.dropped: set[str] = set()
        """Parameters that the model refused, left out since."""
        self._lock = threading.Lock()

    def choose_form(self, supported: bool, schema: bool) -> None:
        """Settle `auto` by what is known of the model."""
        if self.form == "auto":
            self.form = "schema" if supported and schema else "object" if supported else "plain"

    def of(self, call: Call) -> dict[str, Any]:
        """Return the parameters of one call that a model may refuse."""
        arguments = dict(self.optional)
        if call.schema is not None and self.form != "plain":
            arguments["response_format"] = response_format(self.form, call)
        return arguments

    def leave_out(self, fault: Fault, sent: Mapping[str, Any]) -> bool:
        """Drop or lower what was refused of what was sent; whether the call may now pass."""
        helped = False
        with self._lock:
            for name in fault.parameters:
                if name not in sent:
                    continue
                helped = True
                if name == "response_format":
                    form = _form(sent[name])
                    # Calls with an open schema ask for any object in every form.
                    if self.form == form or (form == "object" and self.form in _NEXT):
                        self.form = _NEXT[form]
                        self._note(f"response_format:{form}", "is not applied", fault)
                elif name in self.optional and self.optional[name] == sent[name]:
                    self._drop(name, fault)
        return helped

    def _drop(self, name: str, fault: Fault) -> None:
        if name == "max_tokens" and fault.limit is not None:
            self.optional[name] = fault.limit
            self._note(f"{name}:{fault.limit}", "is the limit", fault)
        elif name not in self.dropped:
            del self.optional[name]
            self._note(name, "is not applied", fault)

    def _note(self, name: str, what: str, fault: Fault) -> None:
        self.dropped.add(name)
        warn(f"{self.model}: {name} {what} from now on ({fault.message})")


def response_format(mode: Format, call: Call) -> dict[str, Any]:
    """Return the parameter that holds a model to JSON; open schemas only ask for an object."""
    schema = dict(call.schema or {})
    closed = schema.get("additionalProperties") is False
    if mode == "schema" and closed:
        wanted = {"name": call.kind, "schema": schema, "strict": True}
        return {"type": "json_schema", "json_schema": wanted}
    if mode == "object_schema" and closed:
        return {"type": "json_object", "schema": schema}
    return {"type": "json_object"}


def _form(sent: Mapping[str, Any]) -> Format:
    """Return the form that a sent `response_format` has."""
    if sent["type"] == "json_schema":
        return "schema"
    return "object_schema" if "schema" in sent else "object"


def connection(model: str, api_base: str | None, api_key_env: str | None) -> dict[str, Any]:
    """Return the address and key of a call."""
    found: dict[str, Any] = {}
    if api_base is not None:
        found["api_base"] = api_base
    if api_key_env is not None:
        found["api_key"] = os.environ.get(api_key_env)
    elif api_base is not None and model.startswith("openai/") and not os.getenv("OPENAI_API_KEY"):
        found["api_key"] = "none"  # local servers ask for none, but the SDK does
    return found


def checked_address(api_base: str) -> str:
    """Return an address without credentials in it.

    Raises:
        ConfigError: it is no web address, or holds a user, password or query.
    """
    parts = urlsplit(api_base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"backend.api_base: expected http(s)://host..., found {redacted(api_base)!r}"
        )
    if "@" in parts.netloc or parts.query:
        raise ConfigError(
            f"backend.api_base: expected an address without user, password or query, found one at "
            f"{parts.hostname!r}; keys come from the environment (backend.api_key_env)"
        )
    return api_base


def checked_key_name(model: str, name: str | None) -> str | None:
    """Return the name of a key's variable.

    Raises:
        ConfigError: the environment does not have it, or the key cannot be sent.
    """
    if name is not None and not os.environ.get(name):
        raise ConfigError(
            "backend.api_key_env: expected the name of a variable that is set in the environment, "
            f"found {redacted(name)!r}"
        )
    provider = _provider(model)
    for variable in (name,) if name else (f"{provider}_API_KEY", f"{provider}_KEY"):
        if not os.environ.get(variable, "").isprintable():
            raise ConfigError(
                f"{variable}: expected a key without line breaks and control characters"
            )
    return name


def usual_address(model: str) -> str | None:
    """Return the address that litellm would take from the environment, None: the provider's own."""
    provider = _provider(model)
    names = [f"{provider}_API_BASE"]
    if provider in ("OPENAI", "ANTHROPIC"):
        names.insert(provider == "ANTHROPIC", f"{provider}_BASE_URL")
    found = next((os.environ[name] for name in names if os.environ.get(name)), None)
    return found if found is None else checked_address(found)


def _provider(model: str) -> str:
    name = model.split("/")[0] if "/" in model else "openai"
    return {"ollama_chat": "ollama"}.get(name, name).upper()


OWN = ("model", "messages", "api_key", "stream", "timeout", "num_retries", "max_retries")
"""Arguments of a request that `extra` cannot set."""


def checked_extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return further arguments of a request.

    Raises:
        ConfigError: one of them is set by other settings, or must not be written down.
    """
    for name in extra:
        if name in OWN:
            raise ConfigError(f"backend.extra: expected arguments of a provider, found {name!r}")
    text = json.dumps(dict(extra), sort_keys=True)
    if redacted(text) != text:
        raise ConfigError(
            "backend.extra: expected no secrets, found one; keys come from the environment "
            "(backend.api_key_env)"
        )
    return dict(extra)


def warn(text: str) -> None:
    """Tell the user about something that changes what is measured, on standard error."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)
