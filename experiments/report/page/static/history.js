// What a run's memory held, replayed from its operations; `turn` counts the scenario's utterances.

const DONE = new Set(["applied", "refreshed"]);

function lastTurn(truth, period) {
  let last = -1;
  truth.turns.forEach((turn, index) => { if (turn[0] <= period) last = index; });
  return last;
}

// Entries by id as they stand after a turn.
function memoryAfter(play, turn) {
  const entries = new Map();
  for (let index = 0; index <= turn; index += 1) {
    for (const [op, id, text, status] of play.operations[index]) {
      if (!DONE.has(status)) continue;
      if (op === "DELETE") entries.delete(id);
      else if (op !== "NOOP") entries.set(id, { text, turn: index });
    }
  }
  return entries;
}

// All operations on one entry, first to last, until a turn.
function entryHistory(play, id, turn) {
  const found = [];
  for (let index = 0; index <= turn; index += 1) {
    play.operations[index].forEach((operation, number) => {
      if (operation[1] === id && DONE.has(operation[3])) found.push({ turn: index, number, operation });
    });
  }
  return found;
}

function place(truth, turn) {
  const [period, session, round, time] = truth.turns[turn];
  return `period ${period}, session ${session}, round ${round}, ${moment(time)}`;
}

function message(truth, play, turn) {
  return play.worded[turn] ?? truth.turns[turn][5];
}

// The first turn at which two runs of one script differ, and in what.
function parting(truth, one, other) {
  for (let turn = 0; turn < truth.turns.length; turn += 1) {
    const differs = [];
    if (message(truth, one, turn) !== message(truth, other, turn)) differs.push("the user's words");
    if (one.replies[turn] !== other.replies[turn]) differs.push("the reply");
    const plain = (play) => JSON.stringify(play.operations[turn].map(([op, , text, status]) => [op, text, status]));
    if (plain(one) !== plain(other)) differs.push("the memory operations");
    if (differs.length) return { turn, differs };
  }
  return null;
}

// The first exam question that two runs answered unlike.
function partingExam(truth, one, other) {
  for (let period = 0; period < truth.ends.length; period += 1) {
    const [a, b] = [one.exams[period], other.exams[period]];
    if (!a || !b) continue;
    const question = truth.questions.findIndex((_, index) => a.answers[index] !== b.answers[index]);
    if (question >= 0) return { period, question };
  }
  return null;
}
