// Sorts and filters the table of runs; without it all rows are there, the newest first.
const rows = [...document.querySelectorAll("#all tbody tr")];
const headings = [...document.querySelectorAll("#all thead th")];
const [words, notebook, verdict] = ["words", "notebook", "verdict"].map((id) => document.getElementById(id));

function filter() {
  const wanted = words.value.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !(
      wanted.every((word) => text.includes(word)) &&
      ["", row.dataset.notebook].includes(notebook.value) &&
      ["", row.dataset.verdict].includes(verdict.value)
    );
  }
  document.getElementById("shown").textContent = `${rows.filter((row) => !row.hidden).length} shown`;
}

function sort(column) {
  const up = headings[column].getAttribute("aria-sort") !== "ascending";
  headings.forEach((heading) => heading.removeAttribute("aria-sort"));
  headings[column].setAttribute("aria-sort", up ? "ascending" : "descending");
  const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
  rows.sort((a, b) => (up ? 1 : -1) * key(a).localeCompare(key(b), "en", { numeric: true }));
  document.querySelector("#all tbody").append(...rows);
}

headings.forEach((heading, column) => heading.addEventListener("click", () => sort(column)));
[words, notebook, verdict].forEach((control) => control.addEventListener("input", filter));
document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
filter(); // a browser may have kept what was typed
