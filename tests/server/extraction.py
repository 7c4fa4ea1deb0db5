"""Tasks of extraction made by SQL, for whole-server tests: their rows are what the nodes would have
written, flags and sort keys among them, told once more here."""
import json
import struct
import subprocess

FIELDS = [
    {"name": "dose", "type": "number", "unit": "mg", "required": True},
    {"name": "design", "type": "choice", "choices": ["RCT", "cohort"]},
    {"name": "size", "type": "integer"},
    {"name": "blind", "type": "boolean"},
    {"name": "begin", "type": "date"},
    {"name": "drugs", "type": "list", "of": "text"},
    {"name": "结论", "type": "text"},
]
PLACES = 16384


def found(value, verified=True, quote="as it stands", **more):
    """A value as values.h has it."""
    if value is None:
        return {"value": None}
    evidence = {"quote": quote, "begin": 3, "end": 9, "part": 0, "verified": verified}
    if isinstance(value, list):
        items = [{"value": v, **evidence} for v in value]
        return {"value": value, "items": items, "verified": verified, **more}
    return {"value": value, **evidence, **more}


def sort_key(field, one):
    value = one["value"]
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (int, float)):
        bits, = struct.unpack(">Q", struct.pack(">d", float(value) + 0.0))
        return f"{bits ^ (2**64 - 1) if bits >> 63 else bits | 2**63:016x}"
    return value.strip()[:40]


def flags(fields, values):
    """missing, unverified, differs, edited: bits; and the sort keys."""
    of = lambda rule: sum(1 << i for i, f in enumerate(fields) if rule(values[f["name"]]))
    return (of(lambda v: v["value"] is None), of(lambda v: v["value"] is not None
                                                 and not v.get("edited") and not v["verified"]),
            of(lambda v: "differs" in v), of(lambda v: bool(v.get("edited"))),
            "".join(sort_key(f, values[f["name"]]) + "\n" for f in fields))


def quoted(value):
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def run(m, text):
    """Statements of any length."""
    done = subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", m.sql_socket,
                           "--default-character-set=utf8mb4", m.database],
                          input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def make_task(m, uid, rows, fields=None, name="doses", simulated=False):
    """A task that is completed. Each row: title, values by field (absent: not found), or an error
    text, or None: cancelled (no node works on it). Returns the id of the task."""
    fields = fields or FIELDS
    task = f"{uid}-{'%032x' % (abs(hash((uid, name, len(rows)))) % 16**32)}"
    run(m, "INSERT INTO extraction_task (id, uid, name, template_id, template_version,"
           " template_name, fields, total_count, status, cents, model, asked, created_at)"
           f" VALUES ('{task}', {uid}, {quoted(name)}, 'pico', 3, 'Doses', "
           f"{quoted(json.dumps(fields, ensure_ascii=False))}, {len(rows)}, 'completed', 10,"
           " 'model-1', '', UTC_TIMESTAMP(3))")
    out = subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", m.sql_socket, "-N",
                          m.database, "-e",
                          f"SELECT number FROM extraction_task WHERE id = '{task}'"],
                         capture_output=True, text=True, check=True)
    number = int(out.stdout)
    lines = []
    for place, (title, what) in enumerate(rows, 1):
        head = [number * PLACES + place, f"{task}.{place}", number, place, uid,
                f"10.1/{place}", title]
        text = f"{title or ''}\n\nas it stands".encode().decode()
        if isinstance(what, dict):
            values = {f["name"]: what.get(f["name"], {"value": None}) for f in fields}
            cells = ["completed", None, None, json.dumps(values, ensure_ascii=False),
                     *flags(fields, values), int(simulated), text]
        else:
            state = "cancelled" if what is None else "error"
            cells = [state, what, what and "no_text", None, 0, 0, 0, 0, None, 0, None]
        lines.append("(" + ",".join(map(quoted, head + cells))
                     + ", 1, 10, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))")
    columns = ("number, id, task, place, uid, doi, title, state, error, error_code,"
               " result, missing,"
               " unverified, differs, edited, sort_keys, simulated, text, priority, cents,"
               " created_at, changed_at")
    for i in range(0, len(lines), 500):
        run(m, f"INSERT INTO extraction_result ({columns}) VALUES "
               + ",\n".join(lines[i:i + 500]))
    return task
