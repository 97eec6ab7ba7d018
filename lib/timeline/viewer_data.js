"use strict";
// The data of a page: spans as columns of numbers, sorted by track and time (page.c writes
// them), and what is computed from them: series for drawing, hits of a search, counters.
// Times are nanoseconds, in doubles: exact up to 104 days.

/* Makes the data of a page from its JSON. Columns become typed arrays, because plain arrays
 * would take twice the memory. */
function makeData(json) {
    const n = json.start.length;
    const data = {
        n,
        processes: json.processes,
        provenance: json.provenance,
        names: json.names,
        details: json.details,
        kinds: json.kinds,
        marks: json.marks,
        arrows: json.arrows,
        start: new Float64Array(n),
        length: Float64Array.from(json.length),
        name: Uint32Array.from(json.name),
        kind: Uint8Array.from(json.kind),
        detail: Uint32Array.from(json.detail),
        track: new Uint32Array(n),
        tracks: [],
    };
    for (const column of ["length", "name", "kind", "detail"])
        if (json[column].length !== n)
            throw new Error(`column ${column} has ${json[column].length} numbers for ${n} spans`);
    let at = 0;
    json.tracks.forEach(([process, name, flights, count], i) => {
        data.tracks.push({ process, name, flights: flights === 1, first: at, end: at + count });
        for (let time = 0, end = at + count; at < end; at++) {
            time += json.start[at]; // the first is a time, the others are differences
            data.start[at] = time;
            data.track[at] = i;
        }
    });
    if (at !== n)
        throw new Error(`the tracks have ${at} of ${n} spans`);
    data.from = Infinity;
    data.to = -Infinity;
    for (let i = 0; i < n; i++) {
        data.from = Math.min(data.from, data.start[i]);
        data.to = Math.max(data.to, data.start[i] + data.length[i]);
    }
    if (data.to <= data.from)
        data.to = data.from + 1;
    return data;
}

/* The value of a key in lines NAME=VALUE; "" if the key is not there. */
function findKey(detail, key) {
    for (const line of detail.split("\n"))
        if (line.startsWith(key + "="))
            return line.slice(key.length + 1);
    return "";
}

/* ---- series: the spans of a track that look alike ----------------------------------------- */

/* The first position in list[from..to) whose element e has of[e] >= value; `to` if none
 * has. Binary search. */
function lowerBound(of, list, from, to, value) {
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (of[list[middle]] < value)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/*
 * Makes the series of each track: its spans of one kind, hits of a search apart from the
 * others, in order, with the sums of the lengths before each. The sums give the share of a
 * pixel that spans take in the same time, whether there are one or a million of them.
 */
function makeSeries(data, hits) {
    return data.tracks.map((track) => {
        const found = new Map();
        for (let i = track.first; i < track.end; i++) {
            const key = 2 * data.kind[i] + (hits && !hits[i] ? 1 : 0);
            const one = found.get(key);
            if (one)
                one.count++;
            else
                found.set(key, { kind: data.kind[i], dim: key % 2 === 1, count: 1 });
        }
        const series = [...found.keys()].sort((a, b) => a - b).map((key) => found.get(key));
        for (const one of series) {
            one.list = new Uint32Array(one.count);
            one.sum = new Float64Array(one.count + 1);
            one.count = 0;
        }
        for (let i = track.first; i < track.end; i++) {
            const one = found.get(2 * data.kind[i] + (hits && !hits[i] ? 1 : 0));
            one.list[one.count] = i;
            one.sum[one.count + 1] = one.sum[one.count] + data.length[i];
            one.count++;
        }
        return series;
    });
}

/* Counts the spans of kinds that are not hidden which overlap with [from, to]. Spans of a
 * track do not overlap with each other, so their ends are sorted, too. */
function countShown(data, series, hidden, from, to) {
    let n = 0;
    data.tracks.forEach((track, i) => {
        const first = firstAt(data, track, from);
        for (const one of series[i])
            if (!hidden.has(data.kinds[one.kind].name)) {
                let at = 0, end = one.count;
                while (at < end) {
                    const middle = (at + end) >>> 1;
                    if (one.list[middle] < first)
                        at = middle + 1;
                    else
                        end = middle;
                }
                n += Math.max(0, lowerBound(data.start, one.list, at, one.count, to + 1) - at);
            }
    });
    return n;
}

/* The first span of a track that ends at `time` or later. */
function firstAt(data, track, time) {
    let from = track.first, to = track.end;
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (data.start[middle] + data.length[middle] < time)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* ---- search -------------------------------------------------------------------------------- */

/* The spans whose name or keys contain a text, whatever its case: {hits: 1 for each span
 * found, list: these spans by time}. null: the text is empty. */
function search(data, text) {
    if (text === "")
        return null;
    const wanted = text.toLowerCase();
    const has = (one) => one.toLowerCase().includes(wanted);
    const names = data.names.map(has), details = data.details.map(has);
    const hits = new Uint8Array(data.n), list = [];
    for (let i = 0; i < data.n; i++)
        if (names[data.name[i]] || details[data.detail[i]]) {
            hits[i] = 1;
            list.push(i);
        }
    list.sort((a, b) => data.start[a] - data.start[b] || a - b);
    return { hits, list };
}

/* ---- counters ------------------------------------------------------------------------------ */

/* The curves of a counter: the keys whose values a span adds to it while it lasts. A
 * counter that is not listed has one curve, which counts spans. */
const CURVES = {
    "bytes in flight": ["bytes"],
    instances: ["active", "standby", "preparing"],
};

/*
 * Makes the counters of each process: [{process, name, curves: [{name, time, value, most,
 * blocks}]}]. A curve is a step function: value[i] holds from time[i] on. Spans without
 * length are not counted.
 */
function makeCounters(data) {
    const found = new Map();
    for (const track of data.tracks)
        for (let i = track.first; i < track.end; i++) {
            const name = data.kinds[data.kind[i]].counter;
            if (name === "" || data.length[i] === 0)
                continue;
            const key = track.process + " " + name;
            if (!found.has(key))
                found.set(key, { process: track.process, name, spans: [] });
            found.get(key).spans.push(i);
        }
    return [...found.values()].map((counter) => {
        const spans = counter.spans, n = spans.length;
        const begins = Uint32Array.from(spans).sort((a, b) => data.start[a] - data.start[b]);
        const end = (i) => data.start[i] + data.length[i];
        const ends = Uint32Array.from(spans).sort((a, b) => end(a) - end(b));
        const curves = (CURVES[counter.name] || [""]).map((key) => {
            const value = new Map(); // by number of a details text, which many spans share
            const weigh = (i) => {
                const detail = data.detail[i];
                if (key === "")
                    return 1;
                if (!value.has(detail))
                    value.set(detail, Number(findKey(data.details[detail], key)));
                return value.get(detail);
            };
            const curve = { name: key, time: [], value: [], most: 0 };
            let now = 0;
            for (let b = 0, e = 0; e < n;) {
                const time = b < n ? Math.min(data.start[begins[b]], end(ends[e])) : end(ends[e]);
                for (; e < n && end(ends[e]) === time; e++)
                    now -= weigh(ends[e]);
                for (; b < n && data.start[begins[b]] === time; b++)
                    now += weigh(begins[b]);
                if (e === b)
                    now = 0; // no span is left: remove rounding errors
                curve.time.push(time);
                curve.value.push(now);
                curve.most = Math.max(curve.most, now);
            }
            // the maximum of each 64 steps, so that drawing can skip them
            curve.blocks = new Float64Array((curve.value.length >>> 6) + 1);
            curve.value.forEach((value, i) => {
                curve.blocks[i >>> 6] = Math.max(curve.blocks[i >>> 6], value);
            });
            return curve;
        });
        return { process: counter.process, name: counter.name, curves };
    });
}

/* The index of the last step of a curve at or before a time; -1: there is none. */
function stepAt(curve, time) {
    let from = 0, to = curve.time.length;
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (curve.time[middle] <= time)
            from = middle + 1;
        else
            to = middle;
    }
    return from - 1;
}

/* ---- how times and sizes are written -------------------------------------------------------- */

const UNITS = [["d", 86400e9, 5 * 86400e9], ["h", 3600e9, 7200e9], ["min", 60e9, 600e9],
    ["s", 1e9, 1e9], ["ms", 1e6, 1e6], ["µs", 1e3, 1e3], ["ns", 1, 0]];

/* The unit that suits a span of time: [name, nanoseconds, shortest span]. */
function unitOf(span) {
    return UNITS.find((unit) => Math.abs(span) >= unit[2]);
}

/* A length or a point in time as text, exact to the nanosecond up to 15 digits. */
function timeText(time) {
    const [name, size] = unitOf(time);
    return `${Number((time / size).toPrecision(15))} ${name}`;
}

/* A point in time as text, with as many digits as a difference of `step` needs. */
function roundTime(time, step) {
    const [name, size] = unitOf(Math.max(Math.abs(time), step));
    const digits = Math.max(0, Math.min(12, Math.ceil(-Math.log10(step / size))));
    return `${Number((time / size).toFixed(digits))} ${name}`;
}

function sizeText(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0, value = bytes;
    for (; Math.abs(value) >= 1000 && unit + 1 < units.length; unit++)
        value /= 1000;
    return `${Number(value.toPrecision(4))} ${units[unit]}`;
}
