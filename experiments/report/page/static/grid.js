// The grid of state variables by periods: one cell is focusable, arrow keys move, Enter opens.

const LETTERS = {
  K: ["K", "known", "K"],
  W: ["W", "write failure: not known even when it was new", "W"],
  R: ["R", "read failure: known when it was new, not found now", "R"],
  U: ["U", "used wrongly: known, and the answer was wrong", "U"],
  "?": ["Q", "not scored", "?"],
  "-": ["N", "no question needs it", "·"],
};

function legendKeys() {
  return make("ul", { class: "keys", "aria-label": "Meaning of the letters" },
    Object.values(LETTERS).map(([style, meaning, shown]) =>
      make("li", {}, make("span", { class: `letter ${style}` }, shown), meaning)),
    make("li", {}, "thick left edge: the value is new in this period"));
}

function gridTable(truth, play, name, chosen, open) {
  const periods = truth.ends.length;
  const cells = [];
  const head = make("tr", {}, make("th", { scope: "col" }, "variable"),
    truth.ends.map((end, period) => make("th", { scope: "col", title: `until ${moment(end)}` }, String(period))));
  const body = truth.variables.map(([variable], row) => {
    cells.push([]);
    return make("tr", {},
      make("th", { scope: "row", title: variable }, variable.replaceAll("_", " ")),
      truth.ends.map((_, period) => {
        const [style, meaning, shown] = LETTERS[play.cells[row][period]];
        const fresh = truth.positions[row][period] === period;
        const selected = chosen.variable === row && chosen.period === period;
        const cell = make("td", {
          class: `${style}${fresh ? " fresh" : ""}`, role: "gridcell", tabindex: selected ? "0" : "-1",
          "aria-selected": selected ? "true" : "false",
          "aria-label": `${variable}, period ${period}: ${meaning}${fresh ? "; new value" : ""}`,
          title: `${truth.states[period][row]}: ${meaning}`,
          on: {
            click: () => open(row, period),
            keydown: (event) => moveOrOpen(event, cells, row, period, open),
          },
        }, shown);
        cells[row].push(cell);
        return cell;
      }));
  });
  if (!cells.flat().some((cell) => cell.tabIndex === 0) && cells.length && periods) cells[0][0].tabIndex = 0;
  const table = make("table", { class: "cells", role: "grid", "aria-label": `State variables by periods, ${name}` },
    make("thead", {}, head), make("tbody", {}, body));
  return make("div", {}, make("h3", {}, name), make("div", { class: "scroll" }, table));
}

function moveOrOpen(event, cells, row, period, open) {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    open(row, period, true);
    return;
  }
  let target = null;
  if (event.key in steps) target = cells[row + steps[event.key][0]]?.[period + steps[event.key][1]];
  else if (event.key === "Home") target = cells[row][0];
  else if (event.key === "End") target = cells[row].at(-1);
  if (!target) return;
  event.preventDefault();
  cells.flat().forEach((cell) => { cell.tabIndex = -1; });
  target.tabIndex = 0;
  target.focus();
}
