// Only improves what works without it: sorts whole tables, selects what is to be copied, moves to what went wrong.
"use strict";

const value = (cell) => {
  const text = (cell.dataset.value ?? cell.textContent).trim();
  const number = Number(text.replace(/[\s,]/g, ""));
  return text !== "" && !Number.isNaN(number) ? number : text.toLocaleLowerCase();
};

const sortBy = (table, column, ascending) => {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const order = (a, b) => {
    const [x, y] = [value(a.cells[column]), value(b.cells[column])];
    if (typeof x === "number" && typeof y === "number") return x - y;
    return String(x).localeCompare(String(y));
  };
  rows.sort((a, b) => (ascending ? order(a, b) : order(b, a)));
  body.append(...rows);
};

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    if ("unsorted" in header.dataset) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const ascending = header.getAttribute("aria-sort") !== "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortBy(table, column, ascending);
    });
  });
}

for (const field of document.querySelectorAll("[data-select]")) {
  field.addEventListener("focus", () => field.select());
}

document.getElementById("summary")?.focus();
