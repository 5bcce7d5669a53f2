"""The report in a browser: Debian's chromium, driven by Playwright; axe-core for accessibility.

Skipped where one of them is missing. `AMEMGYM_AXE` names axe-core's `axe.min.js`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.models.journal import FileJournal
from amemgym_env.models.last_play import last_play
from amemgym_env.scenarios.files import slug
from experiments.report.page import html as page_maker
from experiments.report.page import runs as run_reader
from experiments.report.page.scenario_records import scenario_records
from experiments.report.run import main
from tests.experiments.report.cases import (
    HOSTILE,
    hostile_items,
    numbers_are_those_of,
    read_page,
    run_folder,
    two_runs,
)

sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="apt-get install chromium")

AXE = Path(os.environ.get("AMEMGYM_AXE", "node_modules/axe-core/axe.min.js"))
AXE = AXE if AXE.is_absolute() else Path(__file__).parents[3] / AXE

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return two_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def report(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    assert main([*map(str, folders.values()), "--out", str(out)]) == 0
    return out


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Return a function that opens a file; afterwards nothing was complained of or fetched."""
    faults: list[str] = []
    contexts = []

    def open_page(path: Path, theme: str = "light", width: int = 1280) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(10_000)
        tab.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        tab.on("pageerror", lambda error: faults.append(str(error)))
        folder = path.parent.resolve().as_uri()
        tab.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((folder, "data:"))
                else faults.append(f"asks for {request.url}")
            ),
        )
        tab.goto(path.resolve().as_uri())
        tab.wait_for_selector(".cells td")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def inspected(tab: Any, number: int = 0) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(tab.text_content(f"#scenario-{number}"))
    return record


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_and_follows_the_theme(
    opened: Any, report: Path, theme: str, width: int
) -> None:
    tab = opened(report, theme, width)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.select_option("#run-other", index=1)
    cut = "[...document.querySelectorAll('.scroll:has(.cells, .chart)')]"
    cut += ".filter((box) => box.scrollWidth > box.clientWidth).length"
    assert tab.evaluate(cut) == 0, "grids and heat maps of eleven periods are seen whole"
    ground = "getComputedStyle(document.body).backgroundColor"
    colors = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 24, 31)"}
    assert tab.evaluate(ground) == colors[theme]
    tab.click("#theme")
    assert tab.evaluate(ground) == colors["light"]
    tab.click("#theme")
    assert tab.evaluate(ground) == colors["dark"]
    assert "SIMULATED" in tab.text_content(".badge")


def test_a_click_on_a_cell_tells_what_the_journal_says(
    opened: Any, report: Path, folders: dict[str, Path]
) -> None:
    tab = opened(report)
    record = inspected(tab)
    truth = record["truth"]
    tab.select_option("#run-one", "awe-2-4-30")
    journal = FileJournal(folders["awe"] / "journals" / f"{slug(truth['id'])}.jsonl").read()
    played = last_play(journal)
    exams, turns = played.exams, played.turns
    period = 2
    variable = truth["questions"][0]["variables"][0]
    name = truth["variables"][variable][0]
    value = truth["states"][period][variable]
    tab.click(f".cells td[aria-label^='{name}, period {period}:']")
    panel = tab.locator("#inspector-detail .panel")
    assert panel.locator("h3").text_content() == f"{name} = {value}"
    said = [t[5] for t in truth["turns"] if t[0] <= period and [variable, value] in t[6]]
    assert said
    assert said[-1] in panel.text_content()
    # The agent's facts name variable and value in plain words.
    fact = f"{name}: {value}".replace("_", " ")
    written = [
        event.place
        for event in turns
        for operation in event.operations
        if operation[2] == fact and event.period <= period
    ]
    likely = panel.locator(".operations").first.text_content()
    assert fact in likely
    place = "period {}, session {}, round {}".format(*written[-1])
    assert place in likely
    shown = panel.locator("ol.operations").first.locator("li")
    ids = [text.split(" ")[0] for text in shown.all_text_contents()]
    assert ids == list(exams[period].retrieved[0])
    entries = {}
    for event in turns:
        if event.period <= period:
            for op, entry, text, status in event.operations:
                if status in ("applied", "refreshed") and op in ("ADD", "UPDATE"):
                    entries[entry] = text
    assert entries[ids[0]] in shown.first.text_content()
    assert "holds the value" in panel.locator("li.hit").first.text_content()
    chosen = exams[period].answers[0]
    assert truth["questions"][0]["choices"][chosen] in panel.text_content()
    panel.get_by_role("button", name="show in dialogue").first.click()
    assert said[0] in tab.locator(".turn.shown").text_content()


def test_the_grid_is_used_by_keyboard(opened: Any, report: Path) -> None:
    tab = opened(report)
    tab.focus("#run-other")
    tab.keyboard.press("Tab")
    for _ in range(12):
        if tab.evaluate("document.activeElement.getAttribute('role')") == "gridcell":
            break
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.getAttribute('role')") == "gridcell"
    tab.keyboard.press("Home")
    before = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    label = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label != before
    assert ", period 2:" in label
    tab.keyboard.press("Enter")
    tab.wait_for_selector("td[aria-selected='true'][aria-label*='period 2:']")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == label
    assert "period 2" in tab.text_content("#inspector-detail .facts")
    tab.focus("#scenario")
    tab.keyboard.press("ArrowDown")
    sync_api.expect(tab.locator("#scenario")).to_have_value("1")
    assert tab.evaluate("document.activeElement.id") == "scenario"


def test_two_runs_stand_side_by_side_and_part_where_they_do(opened: Any, report: Path) -> None:
    tab = opened(report)
    record = inspected(tab)
    tab.select_option("#run-one", "awe-2-4-30")
    tab.select_option("#run-other", "rag-2-4-30")
    one, other = (record["plays"][name] for name in ("awe-2-4-30", "rag-2-4-30"))
    first = next(
        turn
        for turn in range(len(record["truth"]["turns"]))
        if one["replies"][turn] != other["replies"][turn]
        or [o[0::2] for o in one["operations"][turn]]
        != [o[0::2] for o in other["operations"][turn]]
    )
    period, session, round_, *_ = record["truth"]["turns"][first]
    said = tab.text_content("#inspector-grids")
    assert f"The runs part at period {period}, session {session}, round {round_}," in said
    tab.get_by_role("button", name="Show that turn").click()
    assert "Here the two runs part." in tab.text_content(f"#turn-{first}")
    assert tab.locator(".cells").count() == 2
    assert tab.locator(f"#turn-{first} .say.assistant").count() == 2


def test_tables_are_sorted_and_copied(opened: Any, report: Path) -> None:
    tab = opened(report)
    tab.evaluate(
        "Object.defineProperty(navigator, 'clipboard', "
        "{value: {writeText: async (text) => { window.copied = text; }}})"
    )
    board = tab.locator("table[data-copy='Leaderboard']")
    board.get_by_role("button", name="memory").click()
    down = board.locator("tbody").first.locator("th").all_text_contents()
    board.get_by_role("button", name="memory").click()
    assert board.locator("tbody").first.locator("th").all_text_contents() == down[::-1]
    section = tab.locator("#leaderboard")
    section.get_by_role("button", name="Copy as Markdown").click()
    lines = tab.evaluate("window.copied").splitlines()
    assert lines[0].startswith("| agent | overall |")
    assert lines[1].startswith("| --- | ---: |")
    assert lines[2].startswith(f"| {down[-1]} | ")
    section.get_by_role("button", name="Copy as CSV").click()
    assert tab.evaluate("window.copied").splitlines()[0].startswith("agent,overall,95 %,memory")


def test_a_thousand_scenarios_open_and_are_loaded_one_by_one(opened: Any, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", "scenarios=tiny")
    found, *_ = run_reader.load([folder])
    (first, *_) = scenario_records(found, [])
    many = [
        first._replace(
            key=f"copy-{n}",
            title=f"copy {n}",
            content=first.content.replace('"id":"', f'"id":"{n} '),
        )
        for n in range(1000)
    ]
    built = page_maker.build(found, many, [], "report_data")
    out = tmp_path / "out" / "report.html"
    page_maker.save(built, out, pictures=False)
    tab = opened(out)
    assert tab.locator("script[src]").count() == 1
    tab.select_option("#scenario", "999")
    sync_api.expect(tab.locator("#inspector-grids .facts").first).to_contain_text("999 ")
    tab.click("#scenario-after")
    sync_api.expect(tab.locator("#inspector-grids .facts").first).to_contain_text(" 0 ")
    assert tab.evaluate("performance.getEntriesByType('resource').length") <= 3


@pytest.mark.evidence
def test_a_thousand_played_scenarios(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", "scenarios=train:1000:3", "agent=native")
    out = tmp_path / "page" / "report.html"
    assert main([str(folder), "--out", str(out)]) == 0
    assert len(list((out.parent / "report_data").iterdir())) == 1000
    assert out.stat().st_size < 1_000_000
    # Not before: a browser that waits for many minutes may be gone.
    opened = request.getfixturevalue("opened")
    began = time.monotonic()
    tab = opened(out)
    assert time.monotonic() - began < 5
    for number in ("999", "500", "3"):
        tab.select_option("#scenario", number)
        sync_api.expect(tab.locator("#inspector-grids .facts").first).to_contain_text(
            f"train-3-{number},"
        )
        tab.locator(".cells td.W, .cells td.R, .cells td.U").first.click()
        assert "Said by the user" in tab.text_content("#inspector-detail")
    assert tab.evaluate("performance.getEntriesByType('resource').length") <= 5


def test_a_record_that_is_gone_is_told(opened: Any, browser: Any, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", "scenarios=tiny")
    found, *_ = run_reader.load([folder])
    built = page_maker.build(found, list(scenario_records(found, [])), [], "data", most_inline=0)
    page_maker.save(built, tmp_path / "report.html", pictures=False)
    second = sorted((tmp_path / "data").iterdir())[-1]
    entries = json.loads(built.html.split('id="report-data">')[1].split("</script>")[0])[
        "scenarios"
    ]
    number = next(i for i, entry in enumerate(entries) if entry["file"] == f"data/{second.name}")
    second.unlink()
    tab = browser.new_page()
    tab.goto((tmp_path / "report.html").as_uri())
    tab.wait_for_selector("#scenario")
    tab.select_option("#scenario", str(number))
    tab.wait_for_selector("[role=alert]")
    assert "is not there; keep it beside this page" in tab.text_content("[role=alert]")
    tab.close()


def test_hostile_texts_are_shown_and_do_nothing(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "hostile.json").write_text(hostile_items(), "utf-8")
    folder = run_folder(tmp_path / "run", f"scenarios={tmp_path / 'hostile.json'}")
    assert main([str(folder)]) == 0
    tab = opened(folder / "report.html")
    record = inspected(tab)
    for cell in range(len(record["truth"]["variables"])):
        tab.locator(".cells tbody tr").nth(cell).locator("td").first.click()
    assert HOSTILE in tab.text_content("#inspector-detail")
    assert tab.evaluate("document.images.length") == 0
    assert tab.title() != "hit"


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_serious(opened: Any, report: Path, theme: str, width: int) -> None:
    if not AXE.exists():
        pytest.skip("npm install axe-core, and AMEMGYM_AXE=…/axe-core/axe.min.js")
    tab = opened(report, theme, width)
    tab.select_option("#run-other", index=1)
    tab.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    tab.evaluate(AXE.read_text("utf-8"))
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (rule["id"], rule["impact"], [node["html"][:200] for node in rule["nodes"][:3]])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.evidence
def test_four_agents_on_the_benchmarks_set(opened: Any, real_data: Path, tmp_path: Path) -> None:
    folders = [
        run_folder(tmp_path / agent, f"scenarios={real_data}", f"agent={agent}")
        for agent in ("native", "rag", "awe", "awi")
    ]
    out = tmp_path / "report.html"
    assert main([*map(str, folders), "--out", str(out)]) == 0
    numbers_are_those_of(read_page(out), folders)
    tab = opened(out)
    assert tab.locator("#scenario option").count() == 20
    for name in ("native", "rag-2-4-30", "awe-2-4-30", "awi-2-4"):
        tab.select_option("#run-one", name)
        for letter in "KWRU":
            cell = tab.locator(f".cells td.{letter}").first
            if cell.count():
                cell.click()
                assert "Said by the user" in tab.text_content("#inspector-detail")
