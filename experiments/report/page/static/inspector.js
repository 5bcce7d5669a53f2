// The inspector: what is chosen, loading a scenario's record, and drawing its parts anew.

const REPORT = JSON.parse(document.getElementById("report-data").textContent);
const RECORDS = new Map();
const WAITING = new Map();
let drawings = 0;
const CHOSEN = { scenario: 0, one: null, other: "", variable: 0, period: 0, dialogue: 0, focus: null };

// Called by the record files beside the page.
window.amemgymRecord = (key, record) => { WAITING.get(key)?.(record); };

async function record(number) {
  const { key, file } = REPORT.scenarios[number];
  if (!RECORDS.has(key)) {
    if (file) {
      RECORDS.set(key, await new Promise((resolve, reject) => {
        WAITING.set(key, resolve);
        const failed = () => reject(new Error(`${file} is not there; keep it beside this page`));
        document.head.append(make("script", { src: file, on: { error: failed } }));
      }));
      // A reader may walk through a thousand of them.
      if (RECORDS.size > 30) RECORDS.delete(RECORDS.keys().next().value);
    } else {
      RECORDS.set(key, JSON.parse(document.getElementById(`scenario-${number}`).textContent));
    }
  }
  return RECORDS.get(key);
}

function option(value, label, selected) {
  return make("option", { value, selected }, label);
}

function choice(id, label, options, act) {
  return make("div", {}, make("label", { for: id }, label),
    make("select", { id, on: { change: (event) => act(event.target.value) } }, options));
}

async function draw(part) {
  const root = document.getElementById("inspector-root");
  const focused = document.activeElement?.id;
  drawings += 1;
  const mine = drawings;
  let found;
  try {
    found = await record(CHOSEN.scenario);
  } catch (error) {
    for (const name of ["grids", "detail", "dialogue"]) root.querySelector(`#inspector-${name}`).replaceChildren();
    root.querySelector("#inspector-controls").replaceChildren(controls([]));
    root.querySelector("#inspector-grids").replaceChildren(make("p", { role: "alert" }, error.message));
    return;
  }
  // Another scenario was asked for while this one was loaded.
  if (mine !== drawings) return;
  const { truth, plays } = found;
  const names = Object.keys(plays);
  if (!names.includes(CHOSEN.one)) CHOSEN.one = names[0];
  if (!names.includes(CHOSEN.other) || CHOSEN.other === CHOSEN.one) CHOSEN.other = "";
  CHOSEN.variable = Math.min(CHOSEN.variable, truth.variables.length - 1);
  CHOSEN.period = Math.min(CHOSEN.period, truth.ends.length - 1);
  CHOSEN.dialogue = Math.min(CHOSEN.dialogue, truth.ends.length - 1);
  const shown = [CHOSEN.one, CHOSEN.other].filter(Boolean).map((name) => [name, plays[name]]);
  const apart = shown.length > 1 ? parting(truth, shown[0][1], shown[1][1]) : null;
  const show = (turn) => {
    CHOSEN.dialogue = truth.turns[turn][0];
    CHOSEN.focus = turn;
    draw("dialogue");
  };
  root.className = `inspection ${shown.length > 1 || truth.ends.length > 13 ? "double" : "single"}`;
  if (part !== "dialogue") {
    root.querySelector("#inspector-controls").replaceChildren(controls(names));
    root.querySelector("#inspector-grids").replaceChildren(
      make("p", { class: "facts" }, [...new Set([truth.name, truth.id, `difficulty ${truth.difficulty}`, `seed ${truth.seed}`])].filter(Boolean).join(", ")),
      make("details", {}, make("summary", {}, "Who the user is"), make("p", { class: "say" }, truth.profile)),
      ...shown.filter(([, play]) => play.error).map(([name, play]) => make("p", { class: "mark-wrong" }, `${name}: not played to its end: ${play.error}`)),
      legendKeys(),
      make("div", { class: "pair" }, shown.map(([name, play]) => gridTable(truth, play, name, CHOSEN, (variable, period, byKey) => open(variable, period, byKey)))),
      partingPart(truth, shown, apart, show));
    root.querySelector("#inspector-detail").replaceChildren(make("div", { class: "pair" },
      shown.map(([name, play]) => detailPanel(truth, play, name, CHOSEN, show))));
  }
  const periods = truth.ends.map((end, period) => option(period, `period ${period} (until ${moment(end).slice(0, 10)})`, period === CHOSEN.dialogue));
  root.querySelector("#inspector-dialogue").replaceChildren(
    make("h3", {}, "Dialogue"),
    make("div", { class: "controls" }, choice("dialogue-period", "Period", periods, (value) => {
      CHOSEN.dialogue = Number(value);
      CHOSEN.focus = null;
      draw("dialogue");
    })),
    dialoguePart(truth, shown, CHOSEN.dialogue, apart, CHOSEN.focus));
  if (focused) document.getElementById(focused)?.focus();
  if (part === "dialogue" && CHOSEN.focus !== null) {
    const turn = document.getElementById(`turn-${CHOSEN.focus}`);
    turn.scrollIntoView({ block: "center" });
    turn.focus({ preventScroll: true });
  }
}

async function open(variable, period, byKey) {
  Object.assign(CHOSEN, { variable, period, dialogue: period, focus: null });
  await draw();
  if (byKey) document.querySelector('.cells td[aria-selected="true"]').focus();
  announce(document.querySelector('.cells td[aria-selected="true"]').getAttribute("aria-label"));
}

function partingPart(truth, shown, apart, show) {
  if (shown.length < 2) return "";
  if (!apart) return make("p", {}, "The two runs do not differ in anything said or written.");
  const exam = partingExam(truth, shown[0][1], shown[1][1]);
  return make("p", {}, `The runs part at ${place(truth, apart.turn)}: ${apart.differs.join(", ")} differ. `,
    make("button", { type: "button", on: { click: () => show(apart.turn) } }, "Show that turn"),
    exam ? ` First unlike answer: question ${exam.question + 1} of the exam after period ${exam.period}.` : " All answers are alike.");
}

function controls(names) {
  const scenarios = REPORT.scenarios.map(({ title }, index) => option(index, title, index === CHOSEN.scenario));
  const step = (by) => () => {
    CHOSEN.scenario = (CHOSEN.scenario + by + REPORT.scenarios.length) % REPORT.scenarios.length;
    draw();
  };
  return make("div", { class: "controls" },
    choice("scenario", "Scenario", scenarios, (value) => { CHOSEN.scenario = Number(value); draw(); }),
    make("div", {}, make("button", { type: "button", id: "scenario-before", on: { click: step(-1) } }, "Previous"), " ",
      make("button", { type: "button", id: "scenario-after", on: { click: step(1) } }, "Next")),
    choice("run-one", "Run", names.map((name) => option(name, name, name === CHOSEN.one)), (value) => { CHOSEN.one = value; draw(); }),
    choice("run-other", "Beside it", [option("", "no other run", !CHOSEN.other),
      ...names.filter((name) => name !== CHOSEN.one).map((name) => option(name, name, name === CHOSEN.other))],
    (value) => { CHOSEN.other = value; draw(); }));
}

if (REPORT.scenarios.length) {
  const first = REPORT.first;
  Object.assign(CHOSEN, { variable: first[0], period: first[1], dialogue: first[1] });
  draw();
}
