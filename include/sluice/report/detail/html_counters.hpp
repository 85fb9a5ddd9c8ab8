// The part of a page's script that draws counters, and the part that sorts tables.
#pragma once

namespace sluice::detail::drawing {

/// Stands behind the drawing of rows, in the same function.
inline constexpr const char* html_script_counters = R"js(
function valueText(value, unit) {
  const number = size => {
    const whole = Math.abs(size);
    if (whole >= 999999.5) return size.toExponential(3);
    return trimmed(size, whole < 9.9995 ? 3 : whole < 99.995 ? 2 : whole < 999.95 ? 1 : 0);
  };
  if (unit !== 'B') return number(value) + (unit ? ' ' + unit : '');
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let name = 0;
  for (; name < 4 && Math.abs(value) >= 1024; ++name) value /= 1024;
  return number(value) + ' ' + names[name];
}
// A row for each counter of a timeline. The scale stays the same while one zooms.
function addCounters(timeline) {
  for (const source of timeline.counters) {
    const counter = {name: source.name, unit: source.unit, steps: [], end: source.end, low: 0, high: 0, height: 48};
    for (let i = 0; i < source.steps.length; i += 2)
      counter.steps.push({time: source.steps[i], value: source.steps[i + 1]});
    counter.canvas = element('canvas');
    counter.canvas.style.height = counter.height + 'px';
    counter.canvas.setAttribute('role', 'img');
    counter.label = element('span', 'counter', '');
    const line = element('div', 'row apart');
    line.append(counter.label, counter.canvas);
    view.append(line);
    counters.push(counter);
  }
}
function scaleCounters() {
  for (const counter of counters) {
    counter.end = Math.min(counter.end, last);
    // The last step before the first span holds at its begin.
    const from = counter.steps.findIndex((step, i) => !(counter.steps[i + 1]?.time <= first));
    counter.steps = from < 0 ? [] : counter.steps.slice(from).filter(step => step.time <= last);
    for (const {value} of counter.steps) {
      counter.low = Math.min(counter.low, value);
      counter.high = Math.max(counter.high, value);
    }
    const scale = counter.steps.length === 0 ? 'no values'
      : (counter.low < 0 ? valueText(counter.low, counter.unit) : '0') + ' to ' + valueText(counter.high, counter.unit);
    counter.label.append(element('b', '', counter.name), element('small', '', scale));
    counter.label.title = counter.name + ': ' + scale;
    counter.canvas.setAttribute('aria-label', counter.name + ': ' + scale);
  }
}
// The number of the last step at or before `time`; -1: there is none.
const stepAt = (counter, time) => {
  let low = -1, high = counter.steps.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (counter.steps[middle].time <= time) low = middle; else high = middle - 1;
  }
  return low;
};
function drawCounter(counter, ticks) {
  const draw = context(counter.canvas, counter.height), width = counter.canvas.clientWidth;
  const scale = width / (end - begin), base = counter.height - 4;
  const size = (counter.high / 2 - counter.low / 2) || 1;
  const yOf = value => base - (value / 2 - counter.low / 2) / size * (base - 6);
  draw.fillStyle = colours.grid;
  for (const tick of ticks) draw.fillRect(Math.round((tick - begin) * scale), 0, 1, counter.height);
  draw.fillRect(0, base, width, 1);
  const {steps} = counter;
  let i = Math.max(0, stepAt(counter, begin));
  if (!steps.length || steps[i].time > end || counter.end < begin) return;
  const left = Math.max(-9, (steps[i].time - begin) * scale);
  const right = Math.min(width + 9, (Math.max(counter.end, steps[steps.length - 1].time) - begin) * scale);
  draw.beginPath();
  draw.moveTo(left, yOf(steps[i].value));
  for (let before = yOf(steps[i].value); i < steps.length && steps[i].time <= end;) {
    // Of several steps in half a pixel the highest, the lowest and the last are drawn.
    const x = Math.max(left, (steps[i].time - begin) * scale);
    let low = steps[i].value, high = low, latest = low;
    for (++i; i < steps.length && (steps[i].time - begin) * scale < x + .5; ++i) {
      latest = steps[i].value;
      low = Math.min(low, latest);
      high = Math.max(high, latest);
    }
    draw.lineTo(x, before);
    draw.lineTo(x, yOf(high));
    draw.lineTo(x, yOf(low));
    before = yOf(latest);
    draw.lineTo(x, before);
    const next = i < steps.length && steps[i].time <= end ? (steps[i].time - begin) * scale : right;
    draw.lineTo(next, before);
  }
  draw.strokeStyle = colours.line;
  draw.lineWidth = 1.5;
  draw.stroke();
  draw.lineTo(right, base);
  draw.lineTo(left, base);
  draw.fillStyle = colours.line;
  draw.globalAlpha = .15;
  draw.fill();
  draw.globalAlpha = 1;
}
const counterText = (counter, time) => {
  const step = stepAt(counter, time);
  if (step < 0) return '';
  return counter.name + '\n' + valueText(counter.steps[step].value, counter.unit) + '\nfrom ' +
    timeText(counter.steps[step].time) + ' on';
};
)js";

/// A function of its own: a page may have tables and no timeline.
inline constexpr const char* html_script_tables = R"js(
(() => {
const numberOf = text => {
  const value = parseFloat(text.replaceAll(',', ''));
  return Number.isNaN(value) ? -Infinity : value;
};
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => head.querySelector('button').addEventListener('click', () => {
    const numbers = head.classList.contains('n');
    const now = head.getAttribute('aria-sort');
    // Numbers begin with the largest.
    const down = now ? now === 'ascending' : numbers;
    for (const other of heads) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const textOf = row => row.cells[column].textContent;
    const order = (a, b) => numbers ? Math.sign(numberOf(textOf(a)) - numberOf(textOf(b))) || 0
      : textOf(a).localeCompare(textOf(b), 'en');
    body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
  }));
}
})();
)js";

} // namespace sluice::detail::drawing
