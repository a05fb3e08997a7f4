"use strict";
(() => {
  const tip = document.getElementById("tip");
  let marked = null;

  // A mark's <title> becomes its name; what it says is shown beside it rather than by the browser.
  for (const mark of document.querySelectorAll(".m")) {
    const title = mark.querySelector("title");
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", title.textContent);
    title.remove();
  }

  // A narrow screen shows the rows of tables as cards, each cell under the name of its column.
  for (const table of document.querySelectorAll(".scroll table")) {
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => { cell.dataset.l = names[i]; });
  }
  document.documentElement.classList.add("named");

  function hide() {
    if (marked) marked.classList.remove("on");
    marked = null;
    tip.hidden = true;
  }

  function show(mark, x, y) {
    if (marked !== mark) {
      hide();
      marked = mark;
      mark.classList.add("on");
      tip.textContent = mark.getAttribute("aria-label");
      tip.hidden = false;
    }
    const box = tip.getBoundingClientRect();
    const above = y - box.height - 12;
    tip.style.left = `${Math.max(8, Math.min(x + 10, innerWidth - box.width - 8))}px`;
    tip.style.top = `${above > 4 ? above : y + 16}px`;
  }

  function showAtMark(mark) {
    const box = mark.getBoundingClientRect();
    show(mark, box.left + Math.min(box.width / 2, 40), box.top);
  }

  const markOf = (event) => event.target instanceof Element ? event.target.closest(".m") : null;
  document.addEventListener("pointermove", (event) => {
    const mark = markOf(event);
    if (mark) show(mark, event.clientX, event.clientY);
    else if (event.pointerType === "mouse" && !document.activeElement?.matches(".chart")) hide();
  });
  document.addEventListener("click", (event) => {
    const mark = markOf(event);
    if (mark) show(mark, event.clientX, event.clientY);
    else hide();
  });
  // Who goes by keys is still at the mark when the page has scrolled, as it does to show a chart with the focus.
  document.addEventListener("scroll", () => {
    if (marked && document.activeElement?.matches(".chart")) showAtMark(marked);
    else hide();
  }, { passive: true });

  // In a chart the arrow keys go from mark to mark, in the order of time.
  const orders = new WeakMap();
  function order(chart) {
    if (!orders.has(chart)) {
      const placed = [...chart.querySelectorAll(".m")].map((mark) => [mark, mark.getBoundingClientRect()]);
      placed.sort(([, a], [, b]) => a.left - b.left || a.top - b.top);
      orders.set(chart, placed.map(([mark]) => mark));
    }
    return orders.get(chart);
  }
  function step(chart, key) {
    const marks = order(chart);
    const now = marks.indexOf(marked);
    const next = { ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1, Home: 0,
      End: marks.length - 1 }[key];
    return marks[Math.max(0, Math.min(next, marks.length - 1))];
  }
  for (const chart of document.querySelectorAll(".chart")) {
    chart.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      if (!["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
      const mark = step(chart, event.key);
      if (!mark) return;
      event.preventDefault();
      showAtMark(mark);
    });
    chart.addEventListener("blur", hide);
  }

  // A link into a folded cluster unfolds it.
  function unfold() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();

  // On paper nothing can be unfolded: what an open cluster folds is shown for as long as it is printed.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll(".lake details:not([open]), .cluster[open] details:not([open])")];
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of folded) part.open = false; });

  const find = document.getElementById("find");
  if (find) {
    const rows = [...document.querySelectorAll(".fleet tbody tr")];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    find.addEventListener("input", () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        if (!row.hidden) found += 1;
      });
      document.getElementById("found").textContent = words.length ? `${found} of ${rows.length}` : "";
    });
  }
})();
