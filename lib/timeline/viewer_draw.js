// The layout of the chart, and how it is drawn. Spans are drawn into an array of pixels,
// which is faster than calls of the canvas for many small boxes. Lines and text are drawn
// over it.

const GUTTER = 190, AXIS = 26, HEADER = 22, TRACK = 22, CURVE = 40, GAP = 3;
const THEMES = {
    light: { back: "#ffffff", text: "#1b1f24", faint: "#57606a", line: "#d0d7de", head: "#f0f3f6",
        select: "#d6006c", mark: "#8250df" },
    dark: { back: "#14171a", text: "#e3e7eb", faint: "#9aa4ae", line: "#363d45", head: "#22272d",
        select: "#ff7ab8", mark: "#c297ff" },
};

/* ---- colours ------------------------------------------------------------------------------- */

function parseColour(text) {
    return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

function mix(a, b, share) {
    return a.map((value, i) => Math.round(value * (1 - share) + b[i] * share));
}

function brightness([red, green, blue]) {
    return (0.3 * red + 0.59 * green + 0.11 * blue) / 255;
}

/* A colour as an element of a Uint32Array over pixels: the bytes red, green, blue, 255. */
function pixel([red, green, blue]) {
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/* The colours of each kind: of spans, [normal, dimmed], and of text on them. A dark colour
 * on a dark background is made lighter. */
function makeColours(data, theme) {
    const back = parseColour(theme.back), dark = brightness(back) < 0.5;
    return data.kinds.map((kind) => {
        let colour = parseColour(kind.colour);
        if (dark && brightness(colour) < 0.4)
            colour = mix(colour, [255, 255, 255], 0.45);
        return {
            pixels: [pixel(colour), pixel(mix(colour, back, 0.75))],
            text: brightness(colour) > 0.5 ? "#111111" : "#ffffff",
            dimText: theme.faint,
            css: `rgb(${colour.join(",")})`,
        };
    });
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* The height of a lane of flights, if there are n lanes. */
function laneHeight(n) {
    return n <= 20 ? 8 : n <= 80 ? 4 : 2;
}

/* Makes the rows, from the top: for each process its name, its counters, its tracks, and
 * one row for all lanes of its flights. */
function makeRows(data, counters, folded) {
    const rows = [], of = new Map(); // of: track -> its row
    let y = 0;
    const add = (row, height) => {
        rows.push({ ...row, y, height });
        for (const track of row.lanes || [])
            of.set(track, rows[rows.length - 1]);
        y += height;
    };
    // sorted by process once: there may be thousands of processes
    const parts = data.processes.map(() => ({ tracks: [], marks: [], counters: [] }));
    data.tracks.forEach((track, i) => parts[track.process].tracks.push(i));
    data.marks.forEach((mark) => parts[mark[1]].marks.push(mark));
    counters.forEach((counter) => parts[counter.process].counters.push(counter));
    data.processes.forEach((name, process) => {
        const { tracks, marks } = parts[process];
        if (tracks.length === 0 && marks.length === 0)
            return;
        add({ type: "process", process, name, marks }, HEADER);
        if (folded.has(process))
            return;
        for (const counter of parts[process].counters)
            add({ type: "counter", process, name: counter.name, counter }, CURVE);
        for (const i of tracks)
            if (!data.tracks[i].flights)
                add({ type: "track", process, name: data.tracks[i].name, lanes: [i] }, TRACK);
        const lanes = tracks.filter((i) => data.tracks[i].flights);
        if (lanes.length > 0) {
            const kinds = new Set();
            for (const i of lanes)
                kinds.add(data.kinds[data.kind[data.tracks[i].first]].name);
            const height = Math.max(TRACK, lanes.length * laneHeight(lanes.length) + 2 * GAP);
            add({ type: "flights", process, name: [...kinds].join(", "), lanes }, height);
        }
    });
    return { rows, of, height: y };
}

/* The index of the row at the height y of the chart, or of the last row. */
function rowIndex(layout, y) {
    let from = 0, to = layout.rows.length - 1;
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (layout.rows[middle].y + layout.rows[middle].height <= y)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

function visibleRows(view, layout) {
    const end = rowIndex(layout, view.scroll + view.height - AXIS);
    return layout.rows.slice(rowIndex(layout, view.scroll), end + 1);
}

/* The top and the bottom of a lane, counted from the top of its row. */
function laneAt(row, lane) {
    const height = (row.height - 2 * GAP) / row.lanes.length;
    return [GAP + lane * height, GAP + (lane + 1) * height];
}

/* ---- spans --------------------------------------------------------------------------------- */

/* Fills the visible part of a box, which is at least one pixel of the screen wide and
 * high. */
function fillBox(view, x0, x1, y0, y1, colour) {
    const { pixels, columns } = view;
    const left = Math.max(0, Math.round(x0)), top = Math.max(0, Math.round(y0));
    const right = Math.min(columns, Math.max(Math.round(x1), Math.round(x0) + 1));
    const bottom = Math.min(view.lines, Math.max(Math.round(y1), Math.round(y0) + 1));
    if (right - left === 1) {
        for (let at = top * columns + left; at < bottom * columns; at += columns)
            pixels[at] = colour;
        return;
    }
    for (let y = top; y < bottom && left < right; y++)
        pixels.fill(colour, y * columns + left, y * columns + right);
}

/*
 * Draws the spans of a series between two lines of pixels. A span that is at least one pixel
 * wide is a box. Narrower spans that begin in the same column of pixels are drawn together:
 * as high as the share of that time that they take, and at least one line, on top of the
 * columns of other kinds (`used`).
 */
function drawSeries(view, data, track, one, top, bottom, colour, used) {
    const scale = view.columns / (view.to - view.from), { list, sum, count } = one;
    const first = firstAt(data, track, view.from);
    let i = 0, k;
    for (let end = count; i < end;) {
        const middle = (i + end) >>> 1;
        if (list[middle] < first)
            i = middle + 1;
        else
            end = middle;
    }
    for (; i < count && data.start[list[i]] <= view.to; i = k) {
        const start = data.start[list[i]], length = data.length[list[i]];
        const x = (start - view.from) * scale;
        k = i + 1;
        if (length * scale >= 1) {
            // one pixel less leaves a line between spans that follow each other
            const right = x + length * scale;
            fillBox(view, x, right - x > 4 ? right - 1 : right, top, bottom, colour);
            continue;
        }
        const column = Math.max(0, Math.floor(x)), until = view.from + (column + 1) / scale;
        // The first span behind the pixel is usually near: search in steps that double, then
        // between the last two (galloping search).
        let step = 1;
        for (; k + step < count && data.start[list[k + step]] < until; step *= 2)
            k += step;
        k = lowerBound(data.start, list, k, Math.min(count, k + step), until);
        if (k > i + 1 && data.length[list[k - 1]] * scale >= 1)
            k--; // the last span reaches beyond the pixel, and gets a box
        if (column >= view.columns)
            continue;
        const share = Math.min(1, (sum[k] - sum[i]) * scale);
        const height = Math.max(view.ratio, share * (bottom - top));
        const low = Math.max(top + height, bottom - used[column]);
        fillBox(view, column, column + 1, low - height, low, colour);
        used[column] = bottom - low + height;
    }
}

function drawSpans(view, data, series, rows, colours, hidden) {
    const used = new Float64Array(view.columns);
    for (const row of rows) {
        const y = AXIS + row.y - view.scroll;
        if (!row.lanes)
            continue;
        row.lanes.forEach((lane, i) => {
            const [top, bottom] = laneAt(row, i).map((at) => (y + at - AXIS) * view.ratio);
            const gap = bottom - top >= 4 * view.ratio && row.lanes.length > 1 ? view.ratio : 0;
            if (bottom < 0 || top > view.lines)
                return;
            used.fill(0);
            for (const one of series[lane])
                if (!hidden.has(data.kinds[one.kind].name))
                    drawSeries(view, data, data.tracks[lane], one, Math.round(top),
                        Math.max(Math.round(bottom - gap), Math.round(top) + 1),
                        colours[one.kind].pixels[one.dim ? 1 : 0], used);
        });
    }
}

/* Writes the names of spans into those that are wide enough, cut to fit. */
function drawNames(view, data, rows, colours, hidden, hits) {
    const context = view.context, least = 24 / view.scale;
    context.textBaseline = "middle";
    context.font = "11px system-ui, sans-serif";
    for (const row of rows) {
        const y = AXIS + row.y - view.scroll;
        if (row.type !== "track")
            continue;
        const track = data.tracks[row.lanes[0]];
        let i = firstAt(data, track, view.from);
        for (; i < track.end && data.start[i] <= view.to; i++) {
            if (data.length[i] < least) { // many short spans may follow
                i = skipShort(data, track, i, least);
                continue;
            }
            if (hidden.has(data.kinds[data.kind[i]].name))
                continue;
            const left = Math.max(GUTTER, xOf(view, data.start[i])) + 4;
            const right = Math.min(view.width, xOf(view, data.start[i] + data.length[i])) - 4;
            const fits = Math.floor((right - left) / 6.6), name = data.names[data.name[i]];
            if (fits < Math.min(4, name.length))
                continue;
            const colour = colours[data.kind[i]];
            context.fillStyle = hits && !hits[i] ? colour.dimText : colour.text;
            context.fillText(name.length <= fits ? name : name.slice(0, fits - 1) + "…", left,
                y + row.height / 2);
        }
    }
}

/* The last span of a track, from i on, before one that is at least `least` long. The
 * longest of each block of 256 spans is known, so that blocks of short ones are skipped. */
function skipShort(data, track, i, least) {
    if (!data.longest) {
        data.longest = new Float64Array((data.n >>> 8) + 1);
        for (let k = 0; k < data.n; k++)
            data.longest[k >>> 8] = Math.max(data.longest[k >>> 8], data.length[k]);
    }
    while (i + 1 < track.end && data.length[i + 1] < least)
        i = (i + 1) % 256 === 0 && data.longest[(i + 1) >>> 8] < least ? i + 256 : i + 1;
    return Math.min(i, track.end - 1);
}

/* ---- counters, axis, names ------------------------------------------------------------------ */

function xOf(view, time) {
    return GUTTER + (time - view.from) * view.scale;
}

/* Draws the curves of a counter on top of each other. Each pixel shows the maximum. */
function drawCounter(view, row, y, colours) {
    const curves = row.counter.curves, context = view.context;
    const width = view.width - GUTTER, step = (view.to - view.from) / width;
    const level = curves.map(() => new Float64Array(width));
    curves.forEach((curve, c) => {
        let at = Math.max(0, stepAt(curve, view.from));
        for (let x = 0; x < width; x++) {
            const until = view.from + (x + 1) * step;
            let most = curve.time[at] < until ? curve.value[at] : 0;
            while (at + 1 < curve.time.length && curve.time[at + 1] < until) {
                const block = (at + 1) % 64 === 0 && curve.time[at + 64] < until;
                most = Math.max(most, block ? curve.blocks[(at + 1) / 64] : curve.value[at + 1]);
                at += block ? 64 : 1;
            }
            level[c][x] = most;
        }
    });
    const top = curves.reduce((sum, curve) => sum + curve.most, 0) || 1;
    const height = row.height - 2 * GAP, base = new Float64Array(width);
    curves.forEach((curve, c) => {
        context.fillStyle = colours[c % colours.length];
        context.beginPath();
        context.moveTo(GUTTER, y + row.height - GAP - (base[0] / top) * height);
        for (let x = 0; x < width; x++) {
            const low = base[x];
            base[x] = Math.min(top, low + level[c][x]);
            if (x > 0 && base[x] === base[x - 1] && x + 1 < width)
                continue; // no corner of the outline is here
            if (x > 0)
                context.lineTo(GUTTER + x, y + row.height - GAP - (base[x - 1] / top) * height);
            context.lineTo(GUTTER + x, y + row.height - GAP - (base[x] / top) * height);
        }
        context.lineTo(GUTTER + width, y + row.height - GAP - (base[width - 1] / top) * height);
        for (let x = width - 1; x >= 0; x--) {
            const low = base[x] - level[c][x];
            if (x === width - 1 || x === 0 || low !== base[x - 1] - level[c][x - 1] ||
                low !== base[x + 1] - level[c][x + 1])
                context.lineTo(GUTTER + x, y + row.height - GAP - (Math.max(0, low) / top) * height);
        }
        context.closePath();
        context.fill();
    });
}

/* The distance of ticks: 1, 2 or 5 times a power of ten of a unit, so that the span has
 * about `n` of them. */
function chooseStep(span, n) {
    const unit = unitOf(span)[1], rough = span / unit / n;
    const power = 10 ** Math.floor(Math.log10(rough));
    return unit * power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
}

function drawAxis(view, theme) {
    const context = view.context;
    const step = chooseStep(view.to - view.from, Math.max(2, (view.width - GUTTER) / 120));
    // all ticks have the same unit: that of the times, or a smaller one if steps need digits
    const most = Math.max(Math.abs(view.from), Math.abs(view.to));
    const [unit, size] = unitOf(Math.min(most, 10000 * step));
    const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.font = "11px system-ui, sans-serif";
    for (let i = Math.ceil(view.from / step); i * step <= view.to; i++) {
        const x = Math.round(xOf(view, i * step)) + 0.5;
        context.strokeStyle = theme.line;
        context.globalAlpha = 0.5;
        context.beginPath();
        context.moveTo(x, AXIS - 4);
        context.lineTo(x, view.height);
        context.stroke();
        context.globalAlpha = 1;
        context.fillStyle = theme.faint;
        context.fillText(`${Number((i * step / size).toFixed(digits))} ${unit}`, x, AXIS / 2);
    }
    context.textAlign = "start";
}

function fit(text, width) {
    const most = Math.floor(width / 6.6);
    return text.length <= most ? text : text.slice(0, most - 1) + "…";
}

/* Draws the names at the left of rows, and rows without spans: processes and counters. */
function drawRows(view, rows, theme, folded, curveColours) {
    const context = view.context;
    for (const row of rows) {
        const y = AXIS + row.y - view.scroll;
        if (row.type === "process") {
            context.fillStyle = theme.head;
            context.fillRect(0, y, view.width, row.height);
        }
        context.fillStyle = row.type === "process" ? theme.text : theme.faint;
        context.font = `${row.type === "process" ? "bold " : ""}12px system-ui, sans-serif`;
        const sign = row.type !== "process" ? "   " : folded.has(row.process) ? "▸ " : "▾ ";
        context.fillText(fit(sign + row.name, GUTTER - 10), 6, y + Math.min(row.height, TRACK) / 2);
        context.fillStyle = theme.line;
        context.fillRect(0, y + row.height - 1, view.width, 1);
        if (row.type === "counter") {
            const curve = row.counter.curves[0];
            const most = row.counter.curves.length > 1 ? row.counter.curves.map((c) => c.name).join(", ")
                : `most: ${curve.name === "bytes" ? sizeText(curve.most) : curve.most}`;
            context.fillStyle = theme.faint;
            context.font = "10px system-ui, sans-serif";
            context.fillText(fit(most, GUTTER - 20), 16, y + 28);
            drawCounter(view, row, y, curveColours);
        }
        for (const mark of row.marks || []) {
            const x = xOf(view, mark[0]);
            if (x < GUTTER - 4 || x > view.width + 4)
                continue;
            context.fillStyle = theme.mark;
            context.beginPath();
            context.moveTo(x - 4, y + 6);
            context.lineTo(x + 4, y + 6);
            context.lineTo(x, y + row.height - 4);
            context.fill();
        }
    }
}

/* The top and the bottom of a track on the screen; null: its process is folded. */
function placeOf(view, layout, track) {
    const row = layout.of.get(track);
    if (!row)
        return null;
    const [top, bottom] = laneAt(row, row.lanes.indexOf(track));
    return { top: AXIS + row.y - view.scroll + top, bottom: AXIS + row.y - view.scroll + bottom };
}

/* Draws a frame around the selected span, and the arrows that lead to and from it. */
function drawSelected(view, data, layout, span, arrows, theme) {
    const context = view.context, place = placeOf(view, layout, data.track[span]);
    if (!place)
        return;
    const left = Math.max(GUTTER - 2, xOf(view, data.start[span]));
    const right = Math.min(view.width + 2, xOf(view, data.start[span] + data.length[span]));
    context.strokeStyle = theme.select;
    context.lineWidth = 2;
    if (right >= GUTTER && left <= view.width)
        context.strokeRect(left, place.top, Math.max(2, right - left), place.bottom - place.top);
    context.lineWidth = 1.2;
    for (const [from, to] of arrows) {
        const a = placeOf(view, layout, data.track[from]), b = placeOf(view, layout, data.track[to]);
        if (!a || !b)
            continue;
        const x0 = xOf(view, data.start[from] + data.length[from]), x1 = xOf(view, data.start[to]);
        const y0 = (a.top + a.bottom) / 2, y1 = (b.top + b.bottom) / 2;
        const bend = Math.max(20, (x1 - x0) / 2);
        context.beginPath();
        context.moveTo(x0, y0);
        context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
        context.stroke();
        context.beginPath();
        context.moveTo(x1, y1);
        context.lineTo(x1 - 6, y1 - 3);
        context.lineTo(x1 - 6, y1 + 3);
        context.closePath();
        context.fillStyle = theme.select;
        context.fill();
    }
    context.lineWidth = 1;
}

/* Draws the whole chart. */
function drawChart(view, data, state) {
    const context = view.context, theme = THEMES[state.theme];
    const rows = visibleRows(view, state.layout);
    view.pixels.fill(pixel(parseColour(theme.back)));
    drawSpans(view, data, state.series, rows, state.colours, state.hidden);
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    context.fillStyle = theme.back;
    context.fillRect(0, 0, view.width, view.height);
    context.putImageData(view.image, Math.round(GUTTER * view.ratio), Math.round(AXIS * view.ratio));
    context.save();
    context.beginPath();
    context.rect(0, AXIS, view.width, view.height - AXIS);
    context.clip();
    drawRows(view, rows, theme, state.folded, state.curveColours);
    drawNames(view, data, rows, state.colours, state.hidden, state.found && state.found.hits);
    context.beginPath();
    context.rect(GUTTER, AXIS, view.width - GUTTER, view.height - AXIS);
    context.clip();
    if (state.selected >= 0)
        drawSelected(view, data, state.layout, state.selected, state.arrows, theme);
    context.restore();
    drawAxis(view, theme);
}
