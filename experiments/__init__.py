"""The jobs: `python -m experiments.<job>`. Nothing imports them."""
