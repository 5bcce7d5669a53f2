"""Version of the package, recorded in every result."""

VERSION = "0.1.0"
