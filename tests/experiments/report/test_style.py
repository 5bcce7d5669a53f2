"""The report's look, checked without a browser: colours that stand out, short files."""

from __future__ import annotations

import re

import pytest

from experiments.report.page.html import HERE


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_of_charts_stand_out(theme: int) -> None:
    text = (HERE / "charts.css").read_text("utf-8")
    pairs = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", text)
    color = {name: both[theme] for name, *both in pairs}
    for name in ("ink", "quiet"):
        assert contrast(color[name], color["surface"]) >= 4.5, name
    for name in ("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "write", "used", "unknown"):
        assert contrast(color[name], color["surface"]) >= 3, name
    rules = re.findall(r"^(\.t\d.*?) \{ fill: (.*?); \}", text, re.MULTILINE)
    for step in range(7):
        inks = next(fill for names, fill in rules if f".t{step}" in names)
        ink = re.findall(r"#\w{6}", inks * 2)[theme]
        assert contrast(ink, color[f"h{step}"]) >= 4.5, step


def test_files_of_the_page_are_short() -> None:
    for path in HERE.iterdir():
        if path.is_file():
            assert len(path.read_text("utf-8").splitlines()) <= 300, path.name
