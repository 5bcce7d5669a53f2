// Tables: sorted by a click on a column's name, copied as Markdown or CSV as they stand.

function cellValue(row, column) {
  const cell = row.cells[column];
  const value = cell.dataset.value ?? cell.textContent;
  return value === "" || Number.isNaN(Number(value)) ? value : Number(value);
}

function sortTable(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const down = heads[column].getAttribute("aria-sort") !== "descending";
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((one, other) => {
    const [a, b] = [cellValue(one, column), cellValue(other, column)];
    if (a === "" || b === "") return (a === "") - (b === "");
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return down ? -order : order;
  });
  body.append(...rows);
  announce(`Sorted by ${heads[column].textContent}, ${down ? "descending" : "ascending"}`);
}

function tableRows(table) {
  return [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
}

function asMarkdown(rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  const rule = rows[0].map((_, index) => (index ? "---:" : "---"));
  return [line(rows[0]), line(rule), ...rows.slice(1).map(line)].join("\n") + "\n";
}

function asCsv(rows) {
  const cell = (text) => {
    // A spreadsheet would run what begins like a formula; numbers may begin with a minus.
    const safe = /^[=+@\t]|^-(?![.\d])/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

async function copyText(text, name) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages opened from a file may not have a clipboard of their own.
    const area = make("textarea", { "aria-label": "text to copy" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  announce(`Table copied as ${name}`);
}

for (const table of document.querySelectorAll("table[data-copy]")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = make("button", { type: "button", on: { click: () => sortTable(table, column) } });
    button.append(...head.childNodes);
    head.append(button);
  });
  const copy = (name, write) => async (event) => {
    const button = event.currentTarget;
    await copyText(write(tableRows(table)), name);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1200);
  };
  const buttons = make("div", { class: "copy" },
    make("button", { type: "button", on: { click: copy("Markdown", asMarkdown) } }, "Copy as Markdown"),
    make("button", { type: "button", on: { click: copy("CSV", asCsv) } }, "Copy as CSV"));
  table.closest(".scroll").after(buttons);
}
