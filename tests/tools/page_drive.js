// Runs the program of a page of timeline --html with as much of a browser around it as it uses, and
// does what the words behind it say, in order: a test without a browser of what it computes.
//
//     node page_drive.js PAGE [ACTION [VALUE]...]...
//
// hash '#find=a'   the address, before the page is loaded; must come first
// dark             the system wants dark pages; likewise
// size W H         of the chart; likewise
// key K            a key is pressed          type TEXT     into the search box
// click X Y        on the chart              drag X Y X Y
// wheel X Y D      on the chart              hover X Y     prints the box
// tick KIND        the box of a kind         press ID      a button
// status, details, legend, address, names, broken   print what stands there
// top              prints how high up lines go, such as those around counters
// colours          prints the colours of the chart and how many pixels have them, most first
// frames N         moves N times, prints the processor time of a frame, ms
// ppm FILE         writes the pixels of the spans
"use strict";
const fs = require("fs");
const vm = require("vm");

const [path, ...words] = process.argv.slice(2);
const page = fs.readFileSync(path, "utf8");
const size = { width: 1200, height: 700 };
const location = { hash: "" };
let dark = false;

class Element {
    constructor(tag) {
        Object.assign(this, { tag, value: "", hidden: false, checked: false, open: false, own: "", scroll: 0,
            style: {}, dataset: {}, children: [], listeners: {}, attributes: {}, classList: { add() {}, remove() {} } });
    }
    get textContent() { return this.own + this.children.map((c) => c.textContent ?? c).join("\n"); }
    set textContent(text) { this.own = String(text); this.children = []; }
    get clientWidth() { return size.width; }
    get clientHeight() { return size.height; }
    get scrollTop() { return this.scroll; }
    set scrollTop(y) { this.scroll = Math.max(0, y); this.fire("scroll", {}); }
    append(...more) { this.children.push(...more); }
    replaceChildren(...all) { this.own = ""; this.children = all; }
    setAttribute(name, value) { this.attributes[name] = value; }
    addEventListener(type, listener) { (this.listeners[type] ||= []).push(listener); }
    fire(type, event) {
        for (const listener of this.listeners[type] || [])
            listener({ target: this, preventDefault() {}, ...event });
    }
    setPointerCapture() {}
    focus() { this.focused = true; }
    showModal() { this.open = true; }
    getContext() { return context; }
}

// The context counts what is asked for, and keeps the pixels and the texts.
const texts = [], heights = [];
let image = null;
const context = new Proxy({
    createImageData: (width, height) => ({ width, height, data: new Uint8ClampedArray(4 * width * height) }),
    putImageData: (pixels) => { image = pixels; },
    fillText: (text) => texts.push(text),
    lineTo: (x, y) => heights.push(y),
}, { get: (target, name) => target[name] ?? (() => {}) });

const ids = {};
for (const [, tag, id] of page.matchAll(/<(\w+)[^>]*? id="([\w-]+)"/g))
    ids[id] = new Element(tag);
if (ids.data)
    ids.data.textContent = /<script type="application\/json" id="data">([^]*?)<\/script>/.exec(page)?.[1] ?? "";
const document = new Element("document");
Object.assign(document, { body: new Element("body"), documentElement: new Element("html"),
    getElementById: (id) => ids[id], createElement: (tag) => new Element(tag) });
const window = new Element("window");
Object.assign(window, { location, devicePixelRatio: 1, innerWidth: 1200, innerHeight: 800,
    history: { replaceState: (_, __, hash) => { location.hash = hash; } },
    matchMedia: () => ({ matches: dark }) });
let waiting = [];
// Not a context of its own: each use of a global would be slow there, and times mean nothing.
Object.assign(globalThis, { window, document, requestAnimationFrame: (draw) => waiting.push(() => {
        texts.length = heights.length = 0; // of the frame before
        draw();
    }),
    setTimeout: (call) => waiting.push(call), clearTimeout: () => {} });

function settle() {
    while (waiting.length > 0)
        waiting.splice(0).forEach((call) => call());
}

const word = () => {
    if (words.length === 0)
        throw new Error("a value is missing behind the last word");
    return words.shift();
};
const number = () => Number(word());
const point = () => ({ offsetX: number(), offsetY: number(), clientX: 0, clientY: 0, pointerId: 1 });

for (let early = true; early;) {
    switch (words[0]) {
    case "hash": words.shift(); location.hash = word(); break;
    case "dark": words.shift(); dark = true; break;
    case "size": words.shift(); size.width = number(); size.height = number(); break;
    default: early = false;
    }
}
// A script that is cut off is not run by a browser, either.
for (const [, script] of page.matchAll(/<script>([^]*?)<\/script>/g))
    vm.runInThisContext(script);
settle();

const actions = {
    key: () => document.fire("keydown", { key: word() }),
    type: () => { ids.find.value = word(); ids.find.fire("input", {}); },
    press: () => ids[word()].fire("click", {}),
    click: () => {
        const at = point();
        ids.chart.fire("pointerdown", at);
        ids.chart.fire("pointerup", at);
    },
    drag: () => {
        const from = point(), to = point();
        ids.chart.fire("pointerdown", from);
        ids.chart.fire("pointermove", to);
        ids.chart.fire("pointerup", to);
    },
    wheel: () => ids.chart.fire("wheel", { ...point(), deltaX: 0, deltaY: number() }),
    hover: () => {
        ids.chart.fire("pointermove", point());
        console.log(ids.hover.hidden ? "(nothing)" : ids.hover.textContent.replaceAll("\n", "; "));
    },
    tick: () => {
        const kind = word();
        const label = ids.kinds.children.find((one) => one.children[2].startsWith(kind + " "));
        label.children[0].checked = !label.children[0].checked;
        label.children[0].fire("change", {});
    },
    status: () => console.log(ids.status.textContent),
    details: () => console.log(ids.details.hidden ? "(nothing)" : ids.details.textContent),
    legend: () => console.log(ids.kinds.children.map((one) => one.children[2]).join(", ")),
    address: () => console.log(location.hash),
    names: () => console.log(texts.join("\n")),
    broken: () => console.log(ids.broken.hidden ? "whole" : "broken"),
    top: () => console.log(heights.reduce((a, b) => Math.min(a, b), Infinity)),
    colours: () => {
        const count = new Map();
        for (const colour of new Uint32Array(image.data.buffer)) // bytes: red, green, blue, opaque
            count.set(colour, (count.get(colour) || 0) + 1);
        const hex = (colour) => Buffer.from(Uint32Array.of(colour).buffer, 0, 3).toString("hex");
        console.log([...count].sort((a, b) => b[1] - a[1]).map(([c, n]) => `#${hex(c)} ${n}`).join("\n"));
    },
    frames: () => {
        const n = number(), begin = process.cpuUsage();
        for (let i = 0; i < n; i++) {
            document.fire("keydown", { key: i % 2 ? "a" : "d" });
            settle();
        }
        const { user, system } = process.cpuUsage(begin);
        console.log(((user + system) / 1000 / n).toFixed(2));
    },
    ppm: () => {
        const rgb = Buffer.alloc((image.data.length / 4) * 3);
        for (let i = 0; i < image.data.length / 4; i++)
            rgb.set(image.data.subarray(4 * i, 4 * i + 3), 3 * i);
        fs.writeFileSync(word(), Buffer.concat([Buffer.from(`P6 ${image.width} ${image.height} 255\n`), rgb]));
    },
};
while (words.length > 0) {
    const name = word();
    if (!Object.hasOwn(actions, name))
        throw new Error(`there is no action '${name}'`);
    actions[name]();
    settle();
}
