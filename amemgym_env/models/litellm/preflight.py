"""Checks of an address and a key before the first call; no provider library is loaded for them."""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from urllib.parse import urlsplit
from urllib.request import getproxies

from amemgym_env.errors import ConfigError

_SECONDS = 3.0
"""Time that a server may take to accept a connection here; a slower one is left to the call."""
_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "azure": ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_AD_TOKEN"),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
}
"""Variables of which a provider needs one; other providers are left to the call."""


def check_key(model: str, api_key_env: str | None, api_base: str | None) -> None:
    """Raise ConfigError if a provider's key is not in the environment."""
    provider = model.split("/")[0] if "/" in model else "openai"
    names = _KEYS.get(provider, ())
    if api_key_env is not None or (provider == "openai" and api_base is not None):
        return
    if names and not any(os.environ.get(name) for name in names):
        # Azure also takes identities; litellm finds those by other variables.
        if provider == "azure" and any(name.startswith("AZURE_") for name in os.environ):
            return
        raise ConfigError(
            f"backend.model={model}: expected an API key in the environment variable {names[0]}, "
            "found none; export it, or name another variable by backend.api_key_env"
        )


def check_address(key: str, api_base: str | None) -> None:
    """Raise ConfigError if the server at an address cannot be reached or has no valid certificate.

    `key` names the setting in messages.
    """
    if api_base is None:
        return
    parts = urlsplit(api_base)
    if parts.hostname is None or parts.scheme in getproxies():
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    where = f"{key}: {parts.hostname}:{port}"
    try:
        with socket.create_connection((parts.hostname, port), _SECONDS) as connection:
            if parts.scheme == "https" and _verified():
                _context().wrap_socket(connection, server_hostname=parts.hostname).close()
    except socket.gaierror as error:
        raise ConfigError(f"{where}: the host name is unknown; check backend.api_base") from error
    except ConnectionRefusedError as error:
        raise ConfigError(
            f"{where}: nothing listens there; start the server or check backend.api_base"
        ) from error
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(
            f"{where}: the certificate is not trusted here ({error.verify_message}); set "
            "SSL_CERT_FILE to its authority, or use another backend.api_base"
        ) from error
    except OSError:
        return  # slow or odd: the call will tell


def _verified() -> bool:
    return os.environ.get("SSL_VERIFY", "").lower() not in ("false", "0", "no")


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    with suppress(ImportError):
        import certifi

        context.load_verify_locations(certifi.where())
    return context
