"""Plots of how cost grows: SVG with logarithmic axes, legible on light and dark pages.
plots(figures) gives {name: text}."""
import math
from statistics import median

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 380, 250, 58, 44, 14, 46
LEGEND_LINE = 15
COLUMNS = 2
COLOURS = ["a", "b", "c", "d"]
LIGHT = "#1f6fb5", "#c2571a", "#2c8a4b", "#8652b8"
DARK = "#6db3f2", "#f39a5f", "#6fcf8f", "#c39af0"


def style():
    colours = lambda shades: " ".join(f"polyline.{c} {{ stroke: {s} }} circle.{c} {{ fill: {s} }}"
                                      for c, s in zip(COLOURS, shades))
    return ("text { font: 11px sans-serif; fill: #333 } .title { font-weight: bold }"
            " .end { text-anchor: end } .mid { text-anchor: middle }"
            " .grid { stroke: #888; stroke-opacity: 0.3 }"
            " polyline { fill: none; stroke-width: 2 }\n"
            f"{colours(LIGHT)}\n@media (prefers-color-scheme: dark)"
            f" {{ text {{ fill: #ddd }} {colours(DARK)} }}")


# name: (x axis, [(title with unit, [(figure, label)])])
PLOTS = {
    "papers": ("papers", [
        ("µs per paper", [("init_us", "db init"), ("warm_us", "db warm")]),
        ("CPU µs per paper", [("init_cpu_us", "db init"), ("init_mariadb_us", "MariaDB meanwhile"),
                              ("warm_cpu_us", "db warm"), ("warm_redis_us", "Redis meanwhile")]),
        ("memory, MB", [("init_mb", "db init"), ("warm_mb", "db warm")]),
        ("bytes of Redis per paper", [("redis_bytes", "Redis")])]),
    "runs": ("runs that wait", [
        ("papers per second of another run", [("per_s", "screening")]),
        ("CPU µs per paper", [("node_us", "node"), ("redis_us", "Redis"),
                              ("mariadb_us", "MariaDB")]),
        ("CPU ms per second, nothing runs", [("idle_node_ms", "node"),
                                             ("idle_redis_ms", "Redis")])]),
    "workers": ("workers, AI at 200 ms", [
        ("papers per second", [("per_s", "screening")]),
        ("CPU µs per paper", [("node_us", "node"), ("redis_us", "Redis"),
                              ("mariadb_us", "MariaDB")]),
        ("memory of the node, MB", [("rss_mb", "node")])]),
}

def short(v):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if v >= size:
            return f"{v / size:g}{letter}"
    return f"{v:g}"


def decades(values):
    """The axis: whole powers of ten, at least two of them."""
    values = [v for v in values if v > 0] or [1]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return (low, high) if high > low else (low, low + 1)


class Panel:
    def __init__(self, title, unit, series):
        self.title, self.unit, self.series = title, unit, series
        points = [p for _, s in series for p in s]
        self.x, self.y = decades([p[0] for p in points]), decades([p[1] for p in points])

    def at(self, x, y):
        place = lambda v, axis: (math.log10(max(v, 10.0**axis[0])) - axis[0]) / (axis[1] - axis[0])
        return (LEFT + place(x, self.x) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - place(y, self.y) * (HEIGHT - BOTTOM - TOP))

    def axes(self):
        out = [f'<text class="title" x="{LEFT}" y="18">{self.title}</text>']
        for power in range(self.y[0], self.y[1] + 1):
            x, y = self.at(10.0 ** self.x[0], 10.0 ** power)
            end = self.at(10.0 ** self.x[1], 10.0 ** power)[0]
            out.append(
                f'<line class="grid" x1="{x:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}"/>')
            out.append(
                f'<text class="end" x="{x - 5:.1f}" y="{y + 4:.1f}">{short(10.0 ** power)}</text>')
        for power in range(self.x[0], self.x[1] + 1):
            x, y = self.at(10.0 ** power, 10.0 ** self.y[0])
            out.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{y:.1f}"/>')
            out.append(
                f'<text class="mid" x="{x:.1f}" y="{y + 16:.1f}">{short(10.0 ** power)}</text>')
        x = (LEFT + WIDTH - RIGHT) / 2
        out.append(f'<text class="mid" x="{x:.1f}" y="{HEIGHT - 12}">{self.unit}</text>')
        return out

    def lines(self):
        out = []
        for i, (label, points) in enumerate(self.series):
            colour = COLOURS[i % len(COLOURS)]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.at(*p) for p in points))
            out.append(f'<polyline class="{colour}" points="{path}"/>')
            for p in points:
                x, y = self.at(*p)
                out.append(f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
                           f'<title>{label}: {short(p[0])}, {p[1]:g}</title></circle>')
            y = HEIGHT + 6 + i * LEGEND_LINE
            out.append(f'<circle class="{colour}" cx="{LEFT + 4}" cy="{y - 4}" r="4"/>')
            out.append(f'<text x="{LEFT + 14}" y="{y}">{label}: '
                       f'{", ".join(short(float(f"{p[1]:.3g}")) for p in points)}</text>')
        return out


def draw(kind, unit, panels, found):
    """Panels in rows; a series without figures is left out, and so is a panel without series."""
    shown = []
    for title, series in panels:
        points = [(label, sorted(found.get(f"growth/{kind}/{name}", []))) for name, label in series]
        points = [(label, p) for label, p in points if p]
        if points:
            shown.append(Panel(title, unit, points))
    if not shown:
        return None
    row = HEIGHT + 10 + max(len(p.series) for p in shown) * LEGEND_LINE
    width, height = min(COLUMNS, len(shown)) * WIDTH, -(-len(shown) // COLUMNS) * row
    body = "\n".join(f'<g transform="translate({i % COLUMNS * WIDTH},{i // COLUMNS * row})">\n' +
                     "\n".join(p.axes() + p.lines()) + "\n</g>" for i, p in enumerate(shown))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}">'
            f"<style>\n{style()}\n</style>\n{body}\n</svg>\n")


def plots(figures):
    found = {}
    for f in figures:
        what, _, size = f["name"].rpartition("/")
        if what.startswith("growth/"):
            found.setdefault(what, []).append((int(size), median(f["values"])))
    drawn = {name: draw(name, unit, panels, found) for name, (unit, panels) in PLOTS.items()}
    return {name: svg for name, svg in drawn.items() if svg}
