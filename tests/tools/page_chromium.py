"""Opens a page in headless Chromium, without a network, and prints what stands in it; or draws it.

    page_chromium.py CHROMIUM text PAGE [#ADDRESS]          the elements of the page, after its program
    page_chromium.py CHROMIUM colours PAGE [#ADDRESS]       the colours of a picture of it, most first
    page_chromium.py CHROMIUM picture FILE.png PAGE [#ADDRESS]
"""
import collections
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib


def open_page(chromium, page, address, *more):
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND",
             f"--user-data-dir={profile}", "--window-size=1200,800", "--hide-scrollbars",
             "--virtual-time-budget=3000", *more, pathlib.Path(page).resolve().as_uri() + address],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
            env={**os.environ, "HOME": profile})
    if done.returncode != 0:
        sys.exit(done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def pixels(path):
    """The pixels of a PNG as Chromium writes it: 8 bits, RGB or RGBA, not interlaced."""
    raw = open(path, "rb").read()
    at, data = 8, b""
    while at < len(raw):
        size, kind = struct.unpack(">I4s", raw[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", raw[at + 8:at + 21])
            assert depth == 8 and colour in (2, 6) and not interlaced
        if kind == b"IDAT":
            data += raw[at + 8:at + 8 + size]
        at += size + 12
    step = 3 if colour == 2 else 4
    data, stride = zlib.decompress(data), step * width
    before = bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        filtered, row = data[start], bytearray(data[start + 1:start + 1 + stride])
        for i in range(stride):
            left = row[i - step] if i >= step else 0
            corner = before[i - step] if i >= step else 0
            if filtered == 1:
                row[i] = (row[i] + left) & 255
            elif filtered == 2:
                row[i] = (row[i] + before[i]) & 255
            elif filtered == 3:
                row[i] = (row[i] + (left + before[i]) // 2) & 255
            elif filtered == 4:
                guess = left + before[i] - corner
                near = min((abs(guess - left), 0, left), (abs(guess - before[i]), 1, before[i]),
                           (abs(guess - corner), 2, corner))[2]
                row[i] = (row[i] + near) & 255
        before = row
        for x in range(0, stride, step):
            yield bytes(row[x:x + 3])


chromium, what, *rest = sys.argv[1:]
if what == "text":
    print(open_page(chromium, rest[0], "".join(rest[1:]), "--dump-dom"))
elif what == "picture":
    open_page(chromium, rest[1], "".join(rest[2:]), f"--screenshot={os.path.abspath(rest[0])}")
else:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "page.png")
        open_page(chromium, rest[0], "".join(rest[1:]), f"--screenshot={path}")
        count = collections.Counter(pixels(path))
    for colour, n in count.most_common():
        print(f"#{colour.hex()} {n}")
