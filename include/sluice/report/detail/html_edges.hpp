// The part of a page's script that draws missing edges, on a picture above the rows.
#pragma once

namespace sluice::detail::drawing {

/// `addEdges` is called for each timeline when its rows are there, `drawEdges` whenever the range or the width changes.
inline constexpr const char* html_script_edges = R"js(
function svgElement(tag, css) {
  const created = document.createElementNS(edgePicture().namespaceURI, tag);
  if (css) created.setAttribute('class', css);
  return created;
}
function addEdges(timeline, firstRow) {
  for (const {from, to, text} of timeline.edges) {
    const group = svgElement('g'), title = svgElement('title'), wide = svgElement('path', 'wide'), line = svgElement('path', 'edge');
    const head = svgElement('path', 'head');
    title.textContent = text;
    group.append(title, wide, line, head);
    edgePicture().append(group);
    edges.push({from, to, firstRow, group, wide, line, head});
  }
}
function edgePicture() {
  // A parser knows the namespace.
  if (!view.querySelector('svg.edges')) view.insertAdjacentHTML('beforeend', '<svg class="edges"></svg>');
  return view.querySelector('svg.edges');
}
function drawEdges() {
  if (!edges.length) return;
  const page = view.getBoundingClientRect();
  const place = ([number, lane, time], firstRow) => {
    const row = rows[firstRow + number], box = row.canvas.getBoundingClientRect();
    const y = box.top - page.top + 3 + lane * (row.laneHeight + 1) + row.laneHeight / 2;
    return [box.left - page.left + (time - begin) / (end - begin) * box.width, y, time >= begin && time <= end];
  };
  for (const {from, to, firstRow, group, wide, line, head} of edges) {
    const [x1, y1, seen1] = place(from, firstRow), [x2, y2, seen2] = place(to, firstRow);
    group.style.display = seen1 && seen2 ? '' : 'none';
    const reach = Math.max(24, Math.abs(x2 - x1) / 2), sag = y1 === y2 ? 12 : 0;
    const curve = `M${x1} ${y1} C${x1 + reach} ${y1 + sag} ${x2 - reach} ${y2 + sag} ${x2 - 6} ${y2}`;
    wide.setAttribute('d', curve);
    line.setAttribute('d', curve);
    head.setAttribute('d', `M${x2} ${y2} L${x2 - 8} ${y2 - 4} L${x2 - 8} ${y2 + 4}Z`);
  }
}
)js";

} // namespace sluice::detail::drawing
