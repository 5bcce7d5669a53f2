// The dialogue of one period, one column a run, with times, operations, retrievals and costs.

function dialoguePart(truth, plays, period, apart, focus) {
  const turns = truth.turns.flatMap((turn, index) => (turn[0] === period ? [index] : []));
  const parts = turns.map((turn) => turnPart(truth, plays, turn, apart?.turn === turn, focus === turn));
  parts.push(make("div", { class: "turn" }, make("h4", {}, `Exam after period ${period}, ${moment(truth.ends[period])}`),
    make("div", { class: "pair" }, plays.map(([name, play]) => examList(truth, play, name, period)))));
  return make("div", {}, parts);
}

function turnPart(truth, plays, turn, apart, shown) {
  const [period, session, round, time, kind, , exposed] = truth.turns[turn];
  const gives = exposed.map(([v, value]) => `${truth.variables[v][0]} = ${value}`).join("; ");
  return make("div", { class: `turn${apart ? " apart" : ""}${shown ? " shown" : ""}`, id: `turn-${turn}`, tabindex: "-1" },
    apart ? make("p", { class: "mark-wrong" }, "Here the two runs part.") : "",
    make("p", { class: "facts" }, `period ${period}, session ${session}, round ${round}, ${moment(time)}; ${kind.replace("_", " ")}`,
      gives ? `; gives away ${gives}` : ""),
    make("div", { class: "pair" }, plays.map(([name, play]) => make("div", {},
      plays.length > 1 ? make("p", { class: "facts" }, name) : "",
      sayBlock("user", moment(time), message(truth, play, turn)),
      play.replies[turn] === null ? make("p", { class: "facts" }, "Not played.") : sayBlock("assistant", spent(play.costs[turn]), play.replies[turn]),
      operationList(play.operations[turn]),
      retrievedList(play, turn)))));
}

function operationList(operations) {
  if (!operations.length) return "";
  return make("ul", { class: "operations", "aria-label": "Memory operations" },
    operations.map((operation) => make("li", {}, operationText(operation))));
}

function retrievedList(play, turn) {
  const ids = play.retrieved[turn];
  if (!ids.length) return "";
  const details = make("details", {}, make("summary", { class: "facts" }, `${ids.length} entries retrieved`));
  // Long lists are filled in when they are opened.
  details.addEventListener("toggle", () => {
    if (details.children.length > 1) return;
    const entries = memoryAfter(play, turn - 1);
    details.append(make("ol", { class: "operations" }, ids.map((id) => make("li", {},
      make("span", { class: "operation" }, `${id} `), entries.get(id)?.text ?? "(text unknown)"))));
  });
  return details;
}

function examList(truth, play, name, period) {
  const exam = play.exams[period];
  if (!exam) return make("p", {}, `${name}: not played.`);
  const right = play.scores[period].filter((one) => one === 1).length;
  return make("div", {}, make("p", { class: "facts" }, `${name}: ${right} of ${truth.questions.length} right; ${spent(exam.cost)}`),
    make("ol", { class: "operations" }, truth.questions.map((question, number) =>
      make("li", {}, make("em", {}, question.text), make("br"), answerText(truth, play, question, number, period)))));
}
