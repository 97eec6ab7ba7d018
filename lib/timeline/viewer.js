// The page: its state, and how keys, mouse and address change it. start() is called by the
// last line of the page, behind the data: if the page was cut off, it is never called, and
// the page shows that it is not whole.

const byId = (id) => document.getElementById(id);

/* The state of the page. What is on the screen is a function of it and the data. */
function makeState() {
    return {
        data: null, view: null, // view: the canvas, its sizes, and the time that is shown
        series: null, counters: null, layout: null, colours: null, curveColours: null,
        theme: "light", folded: new Set(), hidden: new Set(),
        text: "", found: null, hit: -1, // the search: its text, its hits, the current hit
        selected: -1, arrows: [], drawn: false, frame: 0,
    };
}
const state = makeState();

/* ---- drawing, at most once a frame ---------------------------------------------------------- */

function redraw() {
    if (state.drawn)
        return;
    state.drawn = true;
    requestAnimationFrame(drawNow);
}

function drawNow() {
    const begin = performance.now();
    state.drawn = false;
    drawChart(state.view, state.data, state);
    state.frame = performance.now() - begin;
    tellLater();
}

let telling = 0;

/* Updates the status and the address when nothing has changed for a while. */
function tellLater() {
    clearTimeout(telling);
    telling = setTimeout(() => {
        tellStatus();
        writeAddress();
    }, 120);
}

function tellStatus() {
    const { data, view, found, hit } = state, step = (view.to - view.from) / 1000;
    const shown = countShown(data, state.series, state.hidden, view.from, view.to);
    let text = `${shown} of ${data.n} spans, ${roundTime(view.from, step)} to ${roundTime(view.to, step)}`;
    if (found)
        text += `; ${found.list.length} ${found.list.length === 1 ? "hit" : "hits"} of "${state.text}"`;
    if (found && hit >= 0)
        text += `, at number ${hit + 1}`;
    byId("status").textContent = text;
    byId("chart").setAttribute("aria-label", `Timeline: ${text}`);
    document.body.dataset.frame = state.frame.toFixed(2);
}

function layOut() {
    state.layout = makeRows(state.data, state.counters, state.folded);
    byId("spacer").style.height = `${Math.max(0, state.layout.height + AXIS - state.view.height)}px`;
}

/* Gives the canvas the size of its place, in pixels of the screen. */
function resize() {
    const scroller = byId("scroller"), canvas = byId("chart"), view = state.view;
    view.ratio = window.devicePixelRatio || 1;
    view.width = Math.max(GUTTER + 50, scroller.clientWidth);
    view.height = Math.max(AXIS + 50, scroller.clientHeight);
    canvas.width = Math.round(view.width * view.ratio);
    canvas.height = Math.round(view.height * view.ratio);
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    view.columns = Math.max(1, Math.round((view.width - GUTTER) * view.ratio));
    view.lines = Math.max(1, Math.round((view.height - AXIS) * view.ratio));
    view.image = view.context.createImageData(view.columns, view.lines);
    view.pixels = new Uint32Array(view.image.data.buffer);
    setTime(view.from, view.to);
    layOut();
}

/* ---- the time that is shown ------------------------------------------------------------------ */

/* Sets the time that is shown. It is at least 10 ns and at most twice the time of all spans
 * long, and its middle is within that time. */
function setTime(from, to) {
    const view = state.view, data = state.data, all = data.to - data.from;
    const span = Math.min(Math.max(to - from, 10), Math.max(10, 2 * all));
    const middle = Math.min(Math.max((from + to) / 2, data.from), data.to);
    view.from = middle - span / 2;
    view.to = middle + span / 2;
    view.scale = (view.width - GUTTER) / span;
    redraw();
}

function showAll() {
    const margin = (state.data.to - state.data.from) * 0.01;
    setTime(state.data.from - margin, state.data.to + margin);
}

/* Zooms by a factor; the time at x stays where it is. */
function zoom(factor, x) {
    const view = state.view, at = view.from + (x - GUTTER) / view.scale;
    setTime(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function move(share) {
    const view = state.view, by = (view.to - view.from) * share;
    setTime(view.from + by, view.to + by);
}

/* ---- what is below the pointer ---------------------------------------------------------------- */

function rowAt(y) {
    const { view, layout } = state, at = y - AXIS + view.scroll;
    return y < AXIS || at >= layout.height ? null : layout.rows[rowIndex(layout, at)];
}

/* The spans within 2 pixels of a place, the nearest first. */
function spansAt(x, y) {
    const { data, view } = state, row = rowAt(y), found = [];
    if (!row || !row.lanes || x < GUTTER)
        return found;
    const time = view.from + (x - GUTTER) / view.scale, reach = 2 / view.scale;
    const inside = y - AXIS + view.scroll - row.y;
    row.lanes.forEach((lane, i) => {
        const [top, bottom] = laneAt(row, i), track = data.tracks[lane];
        if (row.lanes.length > 1 && (inside < top - 1 || inside > bottom + 1))
            return;
        for (let k = firstAt(data, track, time - reach); k < track.end && data.start[k] <= time + reach; k++)
            if (!state.hidden.has(data.kinds[data.kind[k]].name))
                found.push(k);
    });
    const off = (i) => Math.max(0, data.start[i] - time, time - data.start[i] - data.length[i]);
    return found.sort((a, b) => off(a) - off(b) || data.length[b] - data.length[a]);
}

function describeSpan(i) {
    const data = state.data, bytes = findKey(data.details[data.detail[i]], "bytes");
    const lines = [data.names[data.name[i]], data.kinds[data.kind[i]].name,
        `start ${timeText(data.start[i])}`, `length ${timeText(data.length[i])}`];
    if (bytes !== "")
        lines.push(`bytes ${bytes}${Number(bytes) >= 1000 ? ` (${sizeText(Number(bytes))})` : ""}`);
    return lines;
}

function describePlace(x, y) {
    const { view } = state, row = rowAt(y), spans = spansAt(x, y);
    if (spans.length > 0) {
        const lines = describeSpan(spans[0]);
        if (spans.length > 1)
            lines.push(`${spans.length - 1} more within 2 pixels: zoom in`);
        return lines;
    }
    if (!row)
        return [];
    if (x < GUTTER)
        return [row.name];
    const time = view.from + (x - GUTTER) / view.scale;
    if (row.type === "counter")
        return [row.name, ...row.counter.curves.map((curve) => {
            const at = stepAt(curve, time), value = at < 0 ? 0 : curve.value[at];
            return `${curve.name === "" ? "" : curve.name + " "}${curve.name === "bytes" ? sizeText(value) : value}`;
        })];
    return (row.marks || []).filter((mark) => Math.abs(xOf(view, mark[0]) - x) <= 5)
        .map((mark) => `${mark[2]} at ${timeText(mark[0])}`);
}

function hover(event) {
    const box = byId("hover"), lines = describePlace(event.offsetX, event.offsetY);
    box.hidden = lines.length === 0;
    box.textContent = lines.join("\n");
    box.style.left = `${Math.max(0, Math.min(event.clientX + 14, window.innerWidth - 300))}px`;
    box.style.top = `${Math.max(0, Math.min(event.clientY + 14, window.innerHeight - 120))}px`;
}

/* ---- what is selected ------------------------------------------------------------------------- */

function addList(parent, pairs) {
    const list = document.createElement("dl");
    for (const [name, value] of pairs) {
        const term = document.createElement("dt"), text = document.createElement("dd");
        term.textContent = name;
        text.textContent = value;
        list.append(term, text);
    }
    parent.append(list);
}

/* Splits lines NAME=VALUE into pairs. */
function keysOf(detail) {
    return detail === "" ? [] : detail.split("\n").map((line) => {
        const at = line.indexOf("=");
        return at < 0 ? ["", line] : [line.slice(0, at), line.slice(at + 1)];
    });
}

function showDetails(title, pairs) {
    const panel = byId("details"), heading = document.createElement("h2");
    heading.textContent = title;
    panel.replaceChildren(heading);
    addList(panel, pairs);
    if (panel.hidden) {
        panel.hidden = false;
        resize();
    }
    return panel;
}

function addArrows(panel, title, spans) {
    if (spans.length === 0)
        return;
    const heading = document.createElement("h3"), list = document.createElement("ul");
    heading.textContent = title;
    for (const [span, kind] of spans.slice(0, 50)) {
        const item = document.createElement("li"), button = document.createElement("button");
        button.textContent = `${state.data.names[state.data.name[span]]} (${kind})`;
        button.addEventListener("click", () => {
            select(span);
            reveal(span);
        });
        item.append(button);
        list.append(item);
    }
    if (spans.length > 50) {
        const item = document.createElement("li");
        item.textContent = `and ${spans.length - 50} more`;
        list.append(item);
    }
    panel.append(heading, list);
}

function select(span) {
    const data = state.data;
    state.selected = span;
    state.arrows = span < 0 ? [] : data.arrows.filter(([from, to]) => from === span || to === span);
    redraw();
    if (span < 0) {
        byId("details").hidden = true;
        resize();
        return;
    }
    const track = data.tracks[data.track[span]], kind = data.kinds[data.kind[span]];
    const panel = showDetails(data.names[data.name[span]], [
        ["kind", kind.name], ["process", data.processes[track.process]],
        ...(track.name === "" ? [] : [["track", track.name]]),
        ["start", timeText(data.start[span])], ["length", timeText(data.length[span])],
        ["end", timeText(data.start[span] + data.length[span])], ["record", kind.record],
        ...keysOf(data.details[data.detail[span]])]);
    addArrows(panel, "Waited for", state.arrows.filter((a) => a[1] === span).map((a) => [a[0], a[2]]));
    addArrows(panel, "Then", state.arrows.filter((a) => a[0] === span).map((a) => [a[1], a[2]]));
}

/* Moves the chart so that a span is visible. Zooms if the span would be narrower than 3
 * pixels or wider than the chart. */
function reveal(span) {
    const { data, view } = state, start = data.start[span], length = data.length[span];
    const process = data.tracks[data.track[span]].process;
    if (state.folded.delete(process))
        layOut();
    let width = view.to - view.from;
    if (length > width)
        width = 1.5 * length;
    else if (length > 0 && length * view.scale < 3)
        width = Math.max(10, length * 8);
    if (width !== view.to - view.from || start < view.from || start + length > view.to)
        setTime(start + length / 2 - width / 2, start + length / 2 + width / 2);
    const place = placeOf(view, state.layout, data.track[span]);
    if (place && (place.top < AXIS || place.bottom > view.height)) {
        view.scroll = Math.max(0, view.scroll + place.top - view.height / 2);
        byId("scroller").scrollTop = view.scroll;
    }
    redraw();
}

function selectNext(by) {
    const next = state.selected + by, data = state.data;
    if (state.selected < 0 || next < 0 || next >= data.n || data.track[next] !== data.track[state.selected])
        return;
    select(next);
    reveal(next);
}

/* ---- search, kinds, theme --------------------------------------------------------------------- */

function find(text) {
    state.text = text;
    state.found = search(state.data, text);
    state.hit = -1;
    state.series = makeSeries(state.data, state.found && state.found.hits);
    redraw();
}

function stepHit(by) {
    const found = state.found;
    if (!found || found.list.length === 0)
        return;
    const n = found.list.length;
    state.hit = state.hit < 0 && by < 0 ? n - 1 : (state.hit + by + n) % n;
    select(found.list[state.hit]);
    reveal(found.list[state.hit]);
}

function setTheme(theme) {
    state.theme = theme;
    document.documentElement.dataset.theme = theme;
    byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
    state.colours = makeColours(state.data, THEMES[theme]);
    state.curveColours = theme === "dark" ? ["#5b8fb9", "#6f8f6f", "#777777"]
        : ["#8fb8d8", "#b9d8b0", "#d0d0d0"];
    drawLegend();
    redraw();
}

/* A check box for each name of a kind: kinds of different records may share a name. */
function drawLegend() {
    const data = state.data, count = new Map(), list = byId("kinds");
    for (let i = 0; i < data.n; i++)
        count.set(data.kind[i], (count.get(data.kind[i]) || 0) + 1);
    const names = new Map();
    data.kinds.forEach((kind, i) => {
        const one = names.get(kind.name) || { n: 0, colour: state.colours[i].css };
        one.n += count.get(i) || 0;
        names.set(kind.name, one);
    });
    list.replaceChildren(...[...names].map(([name, one]) => {
        const label = document.createElement("label"), box = document.createElement("input");
        const swatch = document.createElement("span");
        box.type = "checkbox";
        box.checked = !state.hidden.has(name);
        box.addEventListener("change", () => {
            if (box.checked)
                state.hidden.delete(name);
            else
                state.hidden.add(name);
            redraw();
        });
        swatch.className = "swatch";
        swatch.style.background = one.colour;
        label.append(box, swatch, `${name} (${one.n})`);
        return label;
    }));
}

/* ---- the address: #from=SECONDS&to=SECONDS&find=TEXT&hide=KIND,KIND&theme=dark ------------------- */

function readAddress() {
    const said = new URLSearchParams(window.location.hash.slice(1));
    const from = 1e9 * parseFloat(said.get("from")), to = 1e9 * parseFloat(said.get("to"));
    const dark = window.matchMedia && window.matchMedia("(prefers-color-scheme: dark)").matches;
    state.hidden = new Set((said.get("hide") || "").split(",").filter((name) => name !== ""));
    setTheme(Object.hasOwn(THEMES, said.get("theme") || "") ? said.get("theme") : dark ? "dark" : "light");
    byId("find").value = said.get("find") || "";
    find(byId("find").value);
    if (to > from)
        setTime(from, to);
    else
        showAll();
}

let written = "";

function writeAddress() {
    const view = state.view, said = new URLSearchParams();
    said.set("from", Number((view.from / 1e9).toPrecision(12)));
    said.set("to", Number((view.to / 1e9).toPrecision(12)));
    if (state.text !== "")
        said.set("find", state.text);
    if (state.hidden.size > 0)
        said.set("hide", [...state.hidden].join(","));
    said.set("theme", state.theme);
    written = "#" + said;
    try {
        window.history.replaceState(null, "", written);
    } catch (error) {
        // a page in a frame of another page may have no address of its own
    }
}

/* ---- keys and mouse ------------------------------------------------------------------------------ */

function listenToKeys() {
    const middle = () => (GUTTER + state.view.width) / 2;
    const scrollBy = (by) => { byId("scroller").scrollTop += by; };
    const keys = {
        w: () => zoom(1 / 1.4, state.pointer || middle()),
        s: () => zoom(1.4, state.pointer || middle()),
        a: () => move(-0.15),
        d: () => move(0.15),
        ArrowUp: () => scrollBy(-60),
        ArrowDown: () => scrollBy(60),
        0: showAll,
        "/": () => byId("find").focus(),
        n: () => stepHit(1),
        N: () => stepHit(-1),
        ",": () => selectNext(-1),
        ".": () => selectNext(1),
        f: () => {
            const { data, selected } = state;
            if (selected >= 0)
                setTime(data.start[selected] - data.length[selected] * 0.2,
                    data.start[selected] + Math.max(10, data.length[selected] * 1.2));
        },
        t: () => setTheme(state.theme === "dark" ? "light" : "dark"),
        "?": () => byId("keys").showModal(),
        Escape: () => {
            byId("find").value = "";
            find("");
            select(-1);
        },
    };
    Object.assign(keys, { "+": keys.w, "=": keys.w, "-": keys.s, ArrowLeft: keys.a, ArrowRight: keys.d });
    document.addEventListener("keydown", (event) => {
        const typing = event.target === byId("find");
        if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key) ||
            (typing && event.key !== "Escape") || byId("keys").open || byId("origin").open)
            return;
        event.preventDefault();
        keys[event.key]();
    });
    byId("find").addEventListener("input", () => find(byId("find").value));
    byId("find").addEventListener("keydown", (event) => {
        if (event.key === "Enter")
            stepHit(event.shiftKey ? -1 : 1);
    });
    byId("fit").addEventListener("click", showAll);
    byId("in").addEventListener("click", () => zoom(1 / 1.4, middle()));
    byId("out").addEventListener("click", () => zoom(1.4, middle()));
    byId("previous").addEventListener("click", () => stepHit(-1));
    byId("next").addEventListener("click", () => stepHit(1));
    byId("theme").addEventListener("click", keys.t);
    byId("help").addEventListener("click", keys["?"]);
    byId("info").addEventListener("click", () => byId("origin").showModal());
}

function click(x, y) {
    const row = rowAt(y), spans = spansAt(x, y);
    if (row && row.type === "process" && x < GUTTER) {
        if (!state.folded.delete(row.process))
            state.folded.add(row.process);
        layOut();
        redraw();
    } else if (spans.length > 0) {
        select(spans[0]);
    } else {
        const mark = row && (row.marks || []).find((one) => Math.abs(xOf(state.view, one[0]) - x) <= 5);
        select(-1);
        if (mark)
            showDetails(mark[2], [["process", row.name], ["time", timeText(mark[0])], ...keysOf(mark[3])]);
    }
}

function listenToMouse() {
    const canvas = byId("chart"), scroller = byId("scroller");
    let drag = null; // where dragging began; null: no button is down
    scroller.addEventListener("scroll", () => {
        state.view.scroll = scroller.scrollTop;
        redraw();
    });
    canvas.addEventListener("wheel", (event) => {
        if (event.offsetX < GUTTER)
            return; // above the names, the wheel scrolls as usual
        event.preventDefault();
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
            move((event.deltaX || event.deltaY) / 1000);
        else
            zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), event.offsetX);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
        const view = state.view;
        drag = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, scroll: view.scroll, far: false };
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
        state.pointer = event.offsetX >= GUTTER ? event.offsetX : 0;
        if (!drag) {
            hover(event);
            return;
        }
        drag.far = drag.far || Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 4;
        if (!drag.far)
            return;
        canvas.classList.add("dragged");
        byId("hover").hidden = true;
        setTime(drag.from - (event.offsetX - drag.x) / state.view.scale,
            drag.to - (event.offsetX - drag.x) / state.view.scale);
        scroller.scrollTop = drag.scroll - (event.offsetY - drag.y);
    });
    canvas.addEventListener("pointerup", (event) => {
        canvas.classList.remove("dragged");
        if (drag && !drag.far)
            click(event.offsetX, event.offsetY);
        drag = null;
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerleave", () => {
        byId("hover").hidden = true;
        state.pointer = 0;
    });
}

/* ---- the beginning ---------------------------------------------------------------------------------- */

function start() {
    const data = makeData(JSON.parse(byId("data").textContent));
    state.data = data;
    state.counters = makeCounters(data);
    state.series = makeSeries(data, null);
    state.view = { context: byId("chart").getContext("2d"), from: data.from, to: data.to, scroll: 0 };
    byId("broken").hidden = true;
    byId("whole").hidden = false;
    byId("provenance").textContent = data.provenance.join("\n");
    document.title = `timeline: ${data.processes.slice(0, 3).join(", ")}${data.processes.length > 3 ? ", ..." : ""}`;
    byId("title").textContent = document.title;
    state.theme = "light";
    state.colours = makeColours(data, THEMES.light);
    state.curveColours = [];
    resize();
    readAddress();
    listenToKeys();
    listenToMouse();
    window.addEventListener("resize", () => {
        resize();
        redraw();
    });
    window.addEventListener("hashchange", () => {
        if (window.location.hash !== written)
            readAddress();
    });
    drawNow(); // now, not in a frame: a tab in the background gets none, and must not be empty
    tellStatus();
}
