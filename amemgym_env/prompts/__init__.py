"""Every call of a language model: template, schema and parser."""
