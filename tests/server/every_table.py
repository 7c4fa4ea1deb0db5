"""Rows in every table, whichever migration makes it: made up by the types of the columns, and
compared after a restore."""
import re

from drill import restore, rows_of
from harness import equal, folder, ok, run
from loading import Database

JSON = '{"a": "\\\\u6c34 \\\\"q\\\\" \\\\\\\\ \\\\t"}'  # as a literal of SQL

CHOSEN = {("admin_info", "role"): "'admin'"}  # what a CHECK demands


def tables(db):
    return [r[0] for r in db.ask("SELECT table_name FROM information_schema.tables WHERE"
                                 f" table_schema = '{db.name}' AND table_type = 'BASE TABLE'"
                                 " ORDER BY 1")]


def columns(db, table):
    """(name, type, as it was declared, length) of those that are not computed."""
    return db.ask("SELECT column_name, data_type, column_type,"
                  " COALESCE(character_maximum_length, 0)"
                  f" FROM information_schema.columns WHERE table_schema = '{db.name}'"
                  f" AND table_name = '{table}' AND extra NOT LIKE '%GENERATED%'"
                  " ORDER BY ordinal_position")


def value(data, declared, length):
    if data in ("char", "varchar", "text", "mediumtext", "longtext", "json", "tinytext"):
        return f"'{JSON}'" if int(length) == 0 or int(length) >= 64 else "'7'"
    if data in ("binary", "varbinary"):
        return "0x" + "0a00095c27"[:2 * int(length)].ljust(2 * min(int(length), 5), "0")
    if data.endswith("blob"):
        return "0x000aff095c27"
    if data in ("datetime", "timestamp"):
        return "'2026-01-02 03:04:05.678'"
    if data == "date":
        return "'2026-01-02'"
    if data == "enum":
        return re.search(r"'[^']*'", declared)[0]
    return "7"  # numbers


def fill(db):
    """A row in each table that has none."""
    for table in tables(db):
        if db.ask(f"SELECT 1 FROM `{table}` LIMIT 1"):
            continue
        names, values = [], []
        for name, data, declared, length in columns(db, table):
            names.append(f"`{name}`")
            values.append(CHOSEN.get((table, name)) or value(data, declared, length))
        db.ask(f"INSERT INTO `{table}` ({', '.join(names)}) VALUES ({', '.join(values)})")


def content(db):
    """{table: its rows}; bytes in hex."""
    out = {}
    for table in tables(db):
        shown = [f"HEX(`{name}`)" if data.endswith(("blob", "binary")) else f"`{name}`"
                 for name, data, _, _ in columns(db, table)]
        out[table] = sorted(db.ask(f"SELECT {', '.join(shown)} FROM `{table}`"))
    return out


def comes_back(server, redis):
    """From one database of the server's MySQL into another. A table that a later migration makes is
    among them."""
    db, target = Database(server), Database(server)
    env = {"MILLRACE_REDIS_URL": redis.url, "MILLRACE_DATA_DIR": folder()}
    done = run("db", "migrate", env={**env, **db.env}, timeout=120)
    equal(done.returncode, 0, "tables are made", done.stderr)
    fill(db)
    before = content(db)
    before.pop("schema_migration")
    equal([t for t, rows in before.items() if not rows], [], f"{len(before)} tables have a row")
    path = f"{folder()}/b"
    done = run("backup", path, env={**env, **db.env}, timeout=120)
    equal(done.returncode, 0, "a backup", done.stdout, done.stderr)
    equal(rows_of(path), {t: len(rows) for t, rows in before.items()}, "has all rows of each")
    redis.say("FLUSHDB")
    restore({**env, **target.env}, path)
    after = content(target)
    # vector_store tells of copies on machines, which are made anew.
    equal([t for t in before if before[t] != after.get(t)], ["vector_store"],
          "every row comes back as it was")
    equal(after["vector_store"], [], "but for stores of points, which are made anew")
