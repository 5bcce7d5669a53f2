// One cell: who said the value, what was written, what was found at the exam, and why it counts.

const WHY = {
  K: "The probe after this period named the true value, and no question that needs it failed by use.",
  U: "The probe after this period named the true value, yet a question was answered wrong although "
    + "everything it needs was known: the memory was used wrongly.",
  W: "The probe does not name the true value now, and did not when the value was new: it was never "
    + "usably written.",
  R: "The probe named the true value when it was new and does not now: it was known for a while, and "
    + "later lost or not found.",
  "?": "A probe that decides this was not scored (none took place, or it could not be asked).",
  "-": "No question needs this variable, so nothing was asked about it.",
};

function detailPanel(truth, play, name, chosen, show) {
  const { variable, period } = chosen;
  const begin = truth.positions[variable][period];
  const value = truth.states[period][variable];
  const until = lastTurn(truth, period);
  return make("div", { class: "panel" },
    make("h3", {}, `${truth.variables[variable][0]} = ${value}`),
    make("p", { class: "facts" }, `${name}; period ${period}; the value holds since period ${begin}`),
    make("p", {}, make("strong", {}, `${LETTERS[play.cells[variable][period]][1]}. `), WHY[play.cells[variable][period]]),
    exposurePart(truth, play, variable, value, begin, period, show),
    writingPart(truth, play, variable, begin, until, show),
    questionParts(truth, play, variable, period, begin, until));
}

function exposurePart(truth, play, variable, value, begin, period, show) {
  const said = truth.turns.flatMap((turn, index) =>
    turn[0] >= begin && turn[0] <= period && turn[6].some(([v, x]) => v === variable && x === value) ? [index] : []);
  return [make("h4", {}, "Said by the user"),
    said.length ? said.map((turn) => sayBlock("user", `${place(truth, turn)} (${truth.turns[turn][4].replace("_", " ")})`,
      message(truth, play, turn), show && (() => show(turn)))) : make("p", {}, "Nothing said so far gives it away.")];
}

function sayBlock(who, facts, text, show) {
  return make("div", { class: `say ${who}` },
    make("span", { class: "who" }, `${who}, ${facts} `,
      show ? make("button", { type: "button", on: { click: show } }, "show in dialogue") : ""), text);
}

function writingPart(truth, play, variable, begin, until, show) {
  const likely = (play.traces[`${variable}.${begin}`] ?? []);
  const before = likely.filter(([turn]) => turn <= until);
  const head = make("h4", {}, "Written by");
  if (!before.length) {
    const later = likely.length ? ` The first that does is later: ${place(truth, likely[0][0])}.` : "";
    const none = play.operations.some((parts) => parts.length)
      ? "No memory operation up to this exam holds the value, by its words."
      : "This agent made no memory operations.";
    return [head, make("p", {}, none + later)];
  }
  return [head, make("ul", { class: "operations" }, before.map(([turn, number, reason, share]) => {
    const operation = play.operations[turn][number];
    const sure = reason === "shares words" ? `shares ${Math.round(share * 100)} % of the words` : reason;
    const after = operation[1] === null ? [] : entryHistory(play, operation[1], until)
      .filter((step) => step.turn > turn || (step.turn === turn && step.number > number));
    return make("li", {}, operationText(operation), make("span", { class: "facts" }, ` ${place(truth, turn)}; ${sure} `),
      show ? make("button", { type: "button", on: { click: () => show(turn) } }, "show in dialogue") : "",
      after.length ? make("ul", {}, after.map((step) => make("li", {},
        step.operation[0] === "DELETE" ? "then dropped: " : "then changed: ",
        operationText(step.operation), make("span", { class: "facts" }, ` ${place(truth, step.turn)}`)))) : "");
  }))];
}

function operationText([op, id, text, status]) {
  const refused = !DONE.has(status) && status !== "noop";
  return make("span", { class: refused ? "refused" : "" },
    make("span", { class: "operation" }, `${op}${id === null ? "" : ` ${id}`}`),
    text === null ? "" : ` “${text}”`, refused ? ` (refused: ${status.replace("_", " ")})` : "",
    status === "refreshed" ? " (stood there already: refreshed)" : "");
}

function questionParts(truth, play, variable, period, begin, until) {
  const entries = memoryAfter(play, until);
  const written = (play.traces[`${variable}.${begin}`] ?? []).filter(([turn]) => turn <= until)
    .map(([turn, number]) => play.operations[turn][number]);
  // An entry that was dropped, or changed to something else since, holds the value no more.
  const holders = new Set(written.filter(([, id, text]) => entries.get(id)?.text === text).map(([, id]) => id));
  return truth.questions.flatMap((question, number) =>
    question.variables.includes(variable)
      ? [examPart(truth, play, question, number, period, begin, variable, entries, holders, written.length > 0)] : []);
}

function examPart(truth, play, question, number, period, begin, variable, entries, holders, written) {
  const exam = play.exams[period];
  const column = question.variables.indexOf(variable);
  const named = (at) => {
    const index = play.probes[at]?.values[number]?.[column];
    if (index === undefined || index === -2) return "not asked";
    return index < 0 ? "no value named" : truth.variables[variable][1][index];
  };
  const retrieved = exam?.retrieved[number] ?? [];
  return make("div", {},
    make("h4", {}, `Exam after period ${period}: ${question.text}`),
    exam ? make("p", {}, answerText(truth, play, question, number, period)) : make("p", {}, "It was not played."),
    make("p", { class: "facts" }, "It needs ", question.variables.map((one, index) => [index ? ", " : "",
      truth.variables[one][0].replaceAll("_", " "), ` (${LETTERS[play.cells[one][period]][2]})`]), "."),
    make("p", { class: "facts" }, `Probe now: ${named(period)} (true: ${truth.states[period][variable]}). `,
      begin === period ? "" : `Probe after period ${begin}, when the value was new: ${named(begin)}. `,
      stoodInWindow(truth, play, variable, begin)
        ? "Then the utterance still stood word for word in the agent's window: whether it would be written was not tested yet." : ""),
    missing(retrieved, holders, written),
    !retrieved.length ? make("p", { class: "facts" }, "No entries were retrieved: the agent answered from its own context.")
      : make("details", { open: retrieved.length <= 40 }, make("summary", {}, `${retrieved.length} entries retrieved`),
        make("ol", { class: "operations" }, retrieved.map((id) => make("li", { class: holders.has(id) ? "hit" : null },
          make("span", { class: "operation" }, `${id} `), entries.get(id)?.text ?? "(text unknown)",
          holders.has(id) ? " ← holds the value" : "")))));
}

function missing(retrieved, holders, written) {
  if (!written || retrieved.some((id) => holders.has(id))) return "";
  const why = !holders.size ? "By then no entry held the value any more: it was dropped or changed."
    : retrieved.length ? "The entry that holds the value was not among them." : "";
  return why && make("p", { class: "mark-wrong" }, why);
}

function answerText(truth, play, question, number, period) {
  const exam = play.exams[period];
  const [chosen, right] = [exam.answers[number], question.right[period]];
  const failure = play.failures[period][number];
  const verdict = play.scores[period][number];
  const chosenText = chosen >= 0 ? `${chosen + 1}. ${question.choices[chosen]}`
    : chosen === -2 ? "not asked" : `no answer (${exam.causes[number] ?? "no answer"})`;
  const luck = verdict === 1 && unknownTo(truth, play, question, number, period) ? " by luck: not all it needs was known" : "";
  const mark = verdict === 1 ? make("span", { class: "mark-right" }, `right${luck}`)
    : verdict === 0 ? make("span", { class: "mark-wrong" }, failure ? `wrong, counts as ${failure} failure` : "wrong")
      : make("span", {}, "unscored");
  return [mark, ": ", chosenText, verdict === 1 ? "" : make("span", {}, make("br"), `right would be ${right + 1}. ${question.choices[right]}`)];
}

// Whether a probed question had a variable whose true value its probe did not name.
function unknownTo(truth, play, question, number, period) {
  const row = play.probes[period]?.values[number];
  if (!row || row.some((index) => index === -2)) return false;
  return question.variables.some((variable, column) =>
    truth.variables[variable][1][row[column] ?? -1] !== truth.states[period][variable]);
}

// Whether a value's utterance stood verbatim in the short-term window at the probe of its first period.
function stoodInWindow(truth, play, variable, begin) {
  const window = play.probes[begin]?.window ?? [];
  return truth.turns.some(([period, session, round, , kind, , exposed]) => period === begin && kind !== "re_mention"
    && exposed.some(([v]) => v === variable) && window.some(([s, r]) => s === session && r === round));
}
