"""Reads SVG pictures of timeline, gnuplot and Graphviz and says what a person could not read there:

    pictures.py FILE.svg...

- a number of more than four significant digits,
- text that leaves the picture, or lies on other text,
- a legend on the area where data are drawn,
- a plot of gnuplot without a title.

One line a fault, and exit status 1. Fonts differ, so the width of text is an estimate.
"""
import itertools
import re
import sys
import xml.etree.ElementTree as xml

WIDTH, ABOVE, BELOW = 0.56, 0.75, 0.22  # of text, in sizes of its font: a character, over and below the line
SAMPLE = 56  # of gnuplot's legends, beside their text: how wide the piece of line or colour is
NUMBER = re.compile(r"(?<![\w.\-/])\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w/]|-\w)")


def digits(number):
    mantissa = number.split("e")[0]
    if "." not in mantissa:
        mantissa = mantissa.rstrip("0")
    return len(mantissa.replace(".", "").lstrip("0"))


class Box:
    def __init__(self, left, top, right, bottom):
        self.left, self.top, self.right, self.bottom = left, top, right, bottom

    def meets(self, other, by=1.0):
        return (min(self.right, other.right) - max(self.left, other.left) > by
                and min(self.bottom, other.bottom) - max(self.top, other.top) > by)

    def inside(self, other):
        return (self.left >= other.left - 1 and self.right <= other.right + 1
                and self.top >= other.top - 1 and self.bottom <= other.bottom + 1)


class Picture:
    def __init__(self, path):
        root = xml.parse(path).getroot()
        left, top, width, height = map(float, root.get("viewBox").split())
        self.view = Box(left, top, left + width, top + height)
        self.texts, self.legend, self.areas, self.bars = [], [], [], []
        self.plotted = any(e.get("id") == "gnuplot_canvas" for e in root)
        self.walk(root, (0.0, 0.0, False), {"font-size": "16", "text-anchor": "start"}, False)
        if self.bars:
            self.areas.append(Box(min(b.left for b in self.bars), min(b.top for b in self.bars),
                                  max(b.right for b in self.bars), max(b.bottom for b in self.bars)))

    def walk(self, element, place, style, legend):
        tag = element.tag.split("}")[-1]
        if tag == "defs":
            return
        x, y, turned = place
        for kind, numbers in re.findall(r"(translate|rotate)\(([^)]*)\)", element.get("transform", "")):
            numbers = [float(n) for n in re.split(r"[\s,]+", numbers.strip())]
            if kind == "translate":
                x, y = x + numbers[0], y + numbers[1]
            else:
                turned = turned or numbers[0] % 180 == 90
        place = x, y, turned
        style = {key: element.get(key, value) for key, value in style.items()}
        # gnuplot has a group for each curve, with its line of the legend; timeline one for the legend
        sample = bool(re.search(r"_plot_\d+$", element.get("id", "")))
        legend = legend or ("timeline" if element.get("id") == "legend" else "gnuplot" if sample else False)
        if tag == "text":
            self.take_text(element, place, style, legend)
        elif tag == "path":
            self.take_path(element.get("d", ""))
        elif tag == "rect" and any(child.tag.endswith("title") for child in element):
            a, b, w, h = (float(element.get(key)) for key in ("x", "y", "width", "height"))
            self.bars.append(Box(a, b, a + w, b + h))
        for child in element:
            self.walk(child, place, style, legend)

    def take_text(self, element, place, style, legend):
        text = "".join(element.itertext()).strip()
        if not text:
            return
        x, y, turned = place
        x, y = x + float(element.get("x", 0)), y + float(element.get("y", 0))
        size = float(style["font-size"])
        width = WIDTH * size * len(text)
        before = {"start": 0, "middle": width / 2, "end": width}[style["text-anchor"]]
        if turned:
            box = Box(x - ABOVE * size, y - width + before, x + BELOW * size, y + before)
        else:
            box = Box(x - before, y - ABOVE * size, x - before + width, y + BELOW * size)
        self.texts.append((text, box, legend))
        if legend:
            self.legend.append(Box(box.left, box.top, box.right + (SAMPLE if legend == "gnuplot" else 0), box.bottom))

    def take_path(self, path):
        """The border of a plot: a closed path of four corners."""
        corner = [tuple(map(float, p.split(","))) for p in re.findall(r"[ML]\s*([-\d.]+,[-\d.]+)", path)]
        if len(corner) == 5 and corner[0] == corner[4] and path.rstrip().endswith("Z"):
            xs, ys = zip(*corner)
            if len(set(xs)) == len(set(ys)) == 2 and max(xs) - min(xs) > 100:
                self.areas.append(Box(min(xs), min(ys), max(xs), max(ys)))

    def faults(self):
        if not self.texts:
            yield "no text at all"
        for text, box, _ in self.texts:
            for number in NUMBER.findall(text):
                if digits(number) > 4:
                    yield f"'{text}' has a number of {digits(number)} digits"
            if not box.inside(self.view):
                yield f"'{text}' leaves the picture"
        for (text, box, _), (other, another, _) in itertools.combinations(self.texts, 2):
            if box.meets(another):
                yield f"'{text}' lies on '{other}'"
        for (text, _, _), line in zip((t for t in self.texts if t[2]), self.legend):
            if any(line.meets(area) for area in self.areas):
                yield f"the legend's '{text}' lies on the data"
        if self.plotted and not self.areas:
            yield "no plot has a border"
        if self.plotted and not any(len(text) > 8 and " " in text and box.bottom < min(a.top for a in self.areas)
                                    for text, box, legend in self.texts if not legend):
            yield "no title"


bad = False
for name in sys.argv[1:]:
    for fault in Picture(name).faults():
        print(f"{name}: {fault}")
        bad = True
sys.exit(bad)
