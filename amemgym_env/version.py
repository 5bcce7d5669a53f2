"""The version of the installed package; stands in every result."""

VERSION = "0.1.0"
