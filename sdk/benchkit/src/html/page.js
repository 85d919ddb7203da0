'use strict';
(() => {
  // Tables: a click on a heading sorts by it, the next one turns the order round.
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.key === undefined ? cell.textContent.trim() : Number(cell.dataset.key || NaN);
  };
  const order = (a, b, turn) => {
    if (typeof a === 'string') return turn * a.localeCompare(b, undefined, { numeric: true });
    // Cells without a figure stay at the end.
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return turn * (a - b);
  };
  const sort = (table, heading) => {
    const turn = heading.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
    for (const other of table.tHead.rows[0].cells) other.setAttribute('aria-sort', 'none');
    heading.setAttribute('aria-sort', turn > 0 ? 'ascending' : 'descending');
    const body = table.tBodies[0];
    const column = heading.cellIndex;
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    rows.sort((a, b) => order(a[0], b[0], turn));
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll('table.sortable')) {
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener('click', () => sort(table, heading));
    }
  }

  // Values beside the pointer: what the titles of marks say, at once, and on touch too.
  const tip = document.getElementById('tip');
  const says = new WeakMap();
  for (const title of document.querySelectorAll('.point > title')) {
    says.set(title.parentNode, title.textContent);
    title.remove();
  }
  const hide = () => { tip.hidden = true; };
  const show = (point) => {
    tip.textContent = says.get(point);
    tip.hidden = false;
    const at = point.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = at.left + at.width / 2 - tip.offsetWidth / 2;
    const above = at.top - tip.offsetHeight - 4;
    tip.style.left = `${Math.max(4, Math.min(left, width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${above < 4 ? at.bottom + 4 : above}px`;
  };
  document.addEventListener('pointerover', (event) => {
    const point = event.target.closest('.point');
    if (point) show(point); else hide();
  });
  document.addEventListener('scroll', hide, { capture: true, passive: true });
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });

  // The records, as `--record` writes them.
  const save = document.getElementById('save');
  save.hidden = false;
  save.addEventListener('click', () => {
    const text = document.getElementById('records').textContent;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }));
    link.download = save.dataset.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
