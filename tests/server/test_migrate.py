"""`millrace db migrate` on a real MariaDB, or MySQL (test_mysql.py): what it makes, and how it
survives interruptions."""
import hashlib
import os
import re
import subprocess
import time

from harness import (BIN, MYSQL, Millrace, environment, equal, folder, ok, run, run_tests, test,
                     wait_for)
from loading import COLLATIONS

SCHEMA = os.path.join(os.path.dirname(__file__), "..", "..", "schema")
FILES = sorted(n.removesuffix(".sql") for n in os.listdir(SCHEMA) if n.endswith(".sql"))
NEWEST = len(FILES)
# Of pools: their texts are handed out as they are, and compare byte by byte.
ITEMS = {"titles", "contents"}
# For searches: words that are made here, in ASCII.
WORDS = {"post_words", "paper_words"}
TABLES = {"user_info", "admin_info", "contentlist", "contentlist_year_number", "paperinfo",
          "info_tag", "info_paper_with_tag", "query_log", "search_result", "api_list", "session",
          "setting", "admin_audit", "billing_log", "zstd_dictionary", "corpus_file",
          "corpus_block", "ledger_request", "ledger_outbox", "cache_stale",
          "ledger_reversal", "archive_outbox", "distill_paper", "distillation",
          "prompt_text", "query_judge", "corpus_bare", "corpus_load", "corpus_change",
          "job_reserve", "api_token", "pool_group", "pool_list", "pool_request", "pool_batch",
          "pool_run", "cluster_turn",
          "prompt_template", "prompt_template_version", "generation_task", "plan_user",
          "training_plan", "training_day", "nutrition_plan", "nutrition_day", "project",
          "extraction_template", "extraction_template_version", "document", "document_piece",
          "extraction_task", "extraction_result", "extraction_edit", "webhook_delivery",
          "vector_collection", "vector_space", "vector_store", "point_owner", "point_vector",
          "point_change", "journal_number", "tb_post", "post_turn", "embedding_unit",
          "embedding_paper", *ITEMS, *WORDS}
APPLIED = "".join(f"applied {name}\n" for name in FILES)
NOTHING = f"Nothing to do: the database is at migration {NEWEST:04} already.\n"


class Database:
    """A database of its own beside that of a running server; the administrator asks, a user with
    nothing but this database migrates."""

    def __init__(self, server, name, rights="ALL"):
        self.socket, self.name = server.sql_socket, name
        self.user = f"u_{name}"
        self.url = f"unix:{self.socket}?user={self.user}&database={name}"
        self.env = {"MILLRACE_MYSQL_URL": self.url, "MILLRACE_MYSQL_PASSWORD": "pass-word"}
        self.admin(f"DROP DATABASE IF EXISTS {name}; DROP USER IF EXISTS {self.user}@localhost;"
                   f"CREATE DATABASE {name}; CREATE USER {self.user}@localhost IDENTIFIED BY"
                   f" 'pass-word'; GRANT {rights} ON {name}.* TO {self.user}@localhost")

    def client(self, *args):
        return ["mariadb", "--no-defaults", "-uroot", "-S", self.socket, "-N", "-B",
                "--default-character-set=utf8mb4", *args]

    def admin(self, sql):
        return subprocess.run(self.client("-e", sql), check=True, capture_output=True, text=True,
                              timeout=30).stdout

    def ask(self, sql, strict=True):
        """Rows as lists; a string when the server refuses."""
        sql = ("SET sql_mode = 'TRADITIONAL'; " if strict else "") + sql
        done = subprocess.run(self.client(self.name, "-e", sql), capture_output=True, text=True,
                              timeout=30)
        if done.returncode:
            return done.stderr.strip()
        return [line.split("\t") for line in done.stdout.splitlines()]

    def migrate(self, *args, **kw):
        return run("db", "migrate", *args, env={**self.env, **kw})

    def launch(self):
        return subprocess.Popen([BIN, "db", "migrate"], env=environment(self.env), cwd=folder(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True)

    def tables(self):
        return {row[0] for row in self.ask("SHOW TABLES")}

    def shape(self):
        """Everything that a table is made of, for comparing."""
        return {name: re.sub(r" AUTO_INCREMENT=\d+", "",
                             self.ask(f"SHOW CREATE TABLE {name}")[0][1])
                for name in sorted(self.tables())}

    def records(self):
        return self.ask("SELECT number, name, applied_at IS NOT NULL FROM schema_migration"
                        " ORDER BY number")


THOUSAND = ("(WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < 1000)"
            " SELECT seq FROM n) numbers")
COMPLETE = [[str(i), name[5:], "1"] for i, name in enumerate(FILES, 1)]


def succeeded(done, out, name):
    return equal((done.returncode, done.stdout, done.stderr), (0, out, ""), name)


def refused(done, text, name):
    return ok(done.returncode == 1 and text in done.stderr and not done.stdout, name,
              done.returncode, done.stdout, done.stderr)


@test("command line")
def _():
    for args, text in {(): "a command is missing",
                       ("migrat",): 'did you mean "migrate"?', ("--x",): 'unknown option "--x"',
                       ("frobnicate",): "unknown command"}.items():
        r = run("db", *args)
        ok(r.returncode == 2 and text in r.stderr and 'See "millrace db --help".' in r.stderr
           and not r.stdout, f"db {' '.join(args)}", r.stderr)
    r = run("db", "--help")
    ok(r.returncode == 0 and "migrate" in r.stdout and not r.stderr, "db --help", r.stderr)
    r = run("db", "migrate", "--help")
    ok(r.returncode == 0 and r.stdout.startswith("usage: millrace db migrate"), "migrate --help")
    equal(run("db", "migrate", "extra").returncode, 2, "an operand")
    refused(run("db", "migrate", "--config", "/nonexistent.json"),
            "/nonexistent.json: cannot be read", "settings that cannot be read")
    refused(run("db", "migrate"), 'while "millrace serve" does: start that first',
            "private stores that were never started")
    r = run("db", "migrate", env={"MILLRACE_MYSQL_URL": "mysql://u:hush@127.0.0.1:9/x"})
    refused(r, "MySQL at mysql://u:***@127.0.0.1:9/x: ", "a MySQL that does not answer")
    ok("hush" not in r.stderr, "its password is not shown")


def private():
    with Millrace() as m:
        own = {"MILLRACE_DATA_DIR": m.data}
        succeeded(run("db", "migrate", "--check", env=own), NOTHING.replace(" already", ""),
                  "the server has done it")
        succeeded(run("db", "migrate", env=own), NOTHING, "so there is nothing to do")
    refused(run("db", "migrate", env=own), 'while "millrace serve" does: start that first',
            "a server that has been stopped")


if not MYSQL:
    test("private stores")(private)


def with_database(name, rights="ALL"):
    def wrap(fn):
        @test(name)
        def _():
            with Millrace(env={"MILLRACE_NODES": "1"}) as m:
                fn(Database(m, "one", rights), m)
    return wrap


@with_database("what is made")
def _(db, _server):
    r = db.migrate("--check")
    equal((r.returncode, r.stdout, db.tables()), (1, APPLIED.replace("applied", "missing"), set()),
          "--check names what is missing and makes nothing")
    db.ask("CREATE TABLE task_queue (a INT); CREATE TABLE sentence (a INT)")
    r = db.migrate()
    equal(r.returncode, 0, "a fresh database", r.stderr)
    equal(r.stdout, APPLIED + "Tables of the former system are here and left alone; millrace does "
          "not use them: sentence, task_queue.\n", "tables of the former system are reported")
    equal(db.tables(), TABLES | {"schema_migration", "task_queue", "sentence"}, "and left alone")
    equal(db.records(), COMPLETE, "every migration is recorded")
    text, exact_name = COLLATIONS[not MYSQL]
    other = [row[0] for row in db.ask(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'one'"
        f" AND table_collation != '{text}'")]
    equal(set(other) - {"schema_migration", "task_queue", "sentence", *ITEMS}, WORDS,
          "texts: neither case nor accents matter, but in these tables")
    exact = {tuple(r) for r in db.ask(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'one'"
        f" AND collation_name = '{exact_name}'")}
    for column in [("paperinfo", "DOI"), ("paperinfo", "journal"), ("contentlist", "Name"),
                   ("contentlist_year_number", "Name"), ("info_paper_with_tag", "Name"),
                   ("query_log", "query_id"), ("query_log", "original_query_id"),
                   ("search_result", "query_id"), ("search_result", "doi"),
                   ("search_result", "block_key"), ("billing_log", "qid"), ("billing_log", "doi"),
                   ("session", "sid"), ("user_info", "username_folded"), ("api_list", "api_key")]:
        ok(column in exact, f"{column[0]}.{column[1]} compares byte by byte")
    equal(db.ask("SELECT engine FROM information_schema.tables WHERE table_schema = 'one'"
                 " GROUP BY engine"), [["InnoDB"]], "all of them can be rolled back")
    shape = db.shape()
    db.ask(f"UPDATE schema_migration SET applied_at = NULL WHERE number = {NEWEST}")
    ok(db.migrate().returncode == 0 and db.shape() == shape,
       "the newest, begun and not ended, is repeated")


def paper(doi, journal, year):
    return (f"INSERT INTO paperinfo (DOI, Bib) VALUES ('{doi}',"
            f" JSON_OBJECT('bib', '@article{{x}}', 'journal', '{journal}', 'year', {year}))")


@with_database("papers")
def _(db, _server):
    db.migrate()
    for values in [("10.1/a", "NATURE", 2024), ("10.1/A", "NATURE", "'2023'"),
                   ("10.1/b", "Nature", 2024), ("10.1/c", "NATURE ", 2024),
                   ("10.1/d", 'Caf\u00e9 "X" / \u7814\u7a76', 2024)]:
        equal(db.ask(paper(*values)), [], f"paper {values}")
    equal(db.ask("SELECT DOI FROM paperinfo WHERE journal = 'NATURE' AND year = 2024"),
          [["10.1/a"]], "a block is of one journal, byte by byte, and one year")
    equal(db.ask("SELECT DOI FROM paperinfo WHERE journal = 'NATURE' AND year = 2023"),
          [["10.1/A"]], "a year that is written as text; DOIs that differ in case are two")
    equal(db.ask("SELECT DOI FROM paperinfo WHERE journal = 'Caf\u00e9 \"X\" / \u7814\u7a76'"),
          [["10.1/d"]], "a journal that JSON has to escape")
    escaped = '{"bib": "", "journal": "\\\\u0041\\\\/B", "year": 1999}'
    equal(db.ask(f"INSERT INTO paperinfo (DOI, Bib) VALUES ('10.1/e', '{escaped}');"
                 " SELECT journal, year FROM paperinfo WHERE DOI = '10.1/e'"), [["A/B", "1999"]],
          "escapes are undone")
    db.ask("INSERT INTO paperinfo (DOI, Bib) SELECT CONCAT('10.2/', seq), JSON_OBJECT('bib', '',"
           f" 'journal', CONCAT('J', seq % 50), 'year', 1990 + seq % 30) FROM {THOUSAND};"
           " ANALYZE TABLE paperinfo")
    plan = db.ask("EXPLAIN FORMAT=TRADITIONAL SELECT DOI, Bib FROM paperinfo"
                  " WHERE journal = 'J7' AND year = 1997")
    kind = 4 if MYSQL else 3  # MySQL has a column "partitions" before it
    equal(plan[0][kind:kind + 3] + plan[0][kind + 4:kind + 5],
          ["ref", "block", "block", "const,const"],
          "a block is found by journal and year in the index", plan)
    equal(
        db.ask("UPDATE paperinfo SET Bib = JSON_SET(Bib, '$.year', 2001) WHERE DOI = '10.1/a';"
               " SELECT DOI FROM paperinfo WHERE journal = 'NATURE' AND year = 2001"), [["10.1/a"]],
        "the index follows a change")
    ok("1062" in db.ask(paper("10.1/b", "X", 2000)), "a DOI is taken once")
    ok("Data truncated" in db.ask(paper("10.1/x", "X", "'20x'")), "a year that is no number")
    said = db.ask("INSERT INTO paperinfo (DOI, Bib) VALUES ('10.1/y', '{')")
    ok("JSON" in said, "no JSON", said)
    equal(db.ask("SELECT SUM(extra LIKE '%VIRTUAL%'), SUM(extra = '') FROM"
                 " information_schema.columns WHERE table_schema = 'one' AND"
                 " table_name = 'paperinfo'"), [["2", "2"]], "two columns are stored, two computed")


@with_database("people and money")
def _(db, _server):
    db.migrate()
    add = "INSERT INTO user_info (username, username_folded, password) VALUES ('{}', '{}', 'x')"
    equal(db.ask(add.format("Jos\u00e9", "jos\u00e9")), [], "a user")
    ok("1062" in db.ask(add.format("JOS\u00c9", "jos\u00e9")), "a name that folds to the same")
    equal(db.ask(add.format("Jose", "jose")), [], "one without the accent is another")
    equal(db.ask("SELECT COUNT(*) FROM user_info WHERE username = 'JOSE'"), [["2"]],
          "but a search finds both")
    equal(db.ask("SELECT balance, permission, banned, version, billed_seq, move_no FROM user_info"
                 " WHERE uid = 1"), [["0.00", "0", "0", "0", "0", "0"]], "what a new user has")
    equal(db.ask("UPDATE user_info SET balance = 999999999999.99 WHERE uid = 1"), [], "rich")
    ok("user_balance_not_negative" in db.ask("UPDATE user_info SET balance = -0.01 WHERE uid = 1"),
       "but never in debt")
    bill = "INSERT INTO billing_log VALUES (1, '{}', 1, '{}', 'q', '10.1/a', {}, UTC_TIMESTAMP(3))"
    equal(db.ask(bill.format("redis", "charge", 200)), [], "a charge")
    equal(db.ask(bill.format("mysql", "recharge", 5)), [], "the other source counts by itself")
    ok("1062" in db.ask(bill.format("redis", "charge", 200)), "the same record again")
    ok("truncated" in db.ask(bill.format("redis", "gift", 200)), "an unknown kind")
    result = "INSERT INTO search_result (uid, query_id, doi, block_key) VALUES (1, 'q', '{}', 'b')"
    equal([db.ask(result.format("10.1/a")), db.ask(result.format("10.1/A"))], [[], []], "results")
    ok("1062" in db.ask(result.format("10.1/a")), "one result for each paper of a run")
    audit = "INSERT INTO admin_audit (at, admin_uid, admin_name, action, target_uid, request_id," \
            " ip_address) VALUES (NOW(), 1, 'a', 'recharge', 1, {}, '::1')"
    equal([db.ask(audit.format("'r1'")),
           db.ask(audit.format("NULL")),
           db.ask(audit.format("NULL"))], [[], [], []], "actions")
    ok("1062" in db.ask(audit.format("'r1'")), "a request is carried out once")


def made_after(number):
    """Names of the tables that later migrations make."""
    text = "".join(open(f"{SCHEMA}/{n}.sql", encoding="utf-8").read() for n in FILES[number:])
    return ", ".join(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", text))


@with_database("a catalog with journals that have no papers")
def _(db, _server):
    db.migrate()
    rows = ("INSERT INTO contentlist_year_number VALUES"
            " ('A', '{\"2001\": 3}'), ('a', '{}'), ('A ', '{}'), ('B', '{}'), ('C', '{}')")
    again = ("DELETE FROM schema_migration WHERE number >= 15;"
             f" DROP TABLE IF EXISTS {made_after(15)}; ")
    db.ask(again + rows)
    db.ask("INSERT INTO corpus_block (journal, year, papers, digest) VALUES ('A', 2001, 3, 0),"
           " ('A', 2002, 0, 0), ('B', 2001, 0, 0)")
    equal(db.migrate().returncode, 0, "migrated")
    equal(db.ask("SELECT * FROM contentlist_year_number"), [["A", '{"2001": 3}']],
          "those whose name, byte by byte, no block with papers has are gone")
    db.ask(again + "DELETE FROM corpus_block")
    equal(db.migrate().returncode, 0, "an empty corpus")
    equal(db.ask("SELECT * FROM contentlist_year_number"), [], "has an empty catalog")


@with_database("refused")
def _(db, server):
    db.migrate()
    shape = db.shape()
    db.ask(f"INSERT INTO schema_migration VALUES ({NEWEST + 4}, 'later', 'x', NOW())")
    for args in (), ("--check",):
        refused(
            db.migrate(*args), f"it is at migration {NEWEST + 4:04}, this millrace knows those up "
            f"to {NEWEST:04}", f"a newer database {args}")
    db.ask(f"DELETE FROM schema_migration WHERE number > {NEWEST};"
           " UPDATE schema_migration SET checksum = REPEAT('0', 64) WHERE number = 2")
    for args in (), ("--check",):
        refused(db.migrate(*args),
                f"migration {FILES[1]} has been changed since it was applied here",
                f"a changed migration {args}")
    db.ask("DELETE FROM schema_migration WHERE number = 2")
    refused(db.migrate(), "has no migration 0002, but 0003", "a gap")
    equal(db.shape(), shape, "all that changed nothing")

    other = Database(server, "two")
    other.ask("CREATE TABLE info_tag (a INT)")
    refused(other.migrate(), f"migration {FILES[1]}: there is a table info_tag already, which "
            "millrace did not make", "a table that somebody else made")
    equal(other.ask("SHOW CREATE TABLE info_tag")[0][1].count("\\n"), 2, "it is as it was")
    ok("contentlist" not in other.tables(), "nothing of that migration was made")
    other.ask("DROP TABLE info_tag")
    succeeded(other.migrate(), "".join(f"applied {n}\n" for n in FILES[1:]), "once it is gone")
    refused(other.migrate(MILLRACE_MYSQL_URL=other.url.partition("&")[0]), "names no database",
            "no database")
    refused(other.migrate(MILLRACE_MYSQL_PASSWORD="wrong"), "Access denied", "a wrong password")


@with_database("an error in the middle, then a kill", rights="SELECT, INSERT, UPDATE")
def _(db, server):
    whole = Database(server, "whole")
    whole.migrate()
    made = ["schema_migration", "user_info", "admin_info"]
    for name in made:
        db.admin(f"GRANT CREATE ON one.{name} TO u_one@localhost")
    refused(db.migrate(), f"migration {FILES[0]}: ", "rights for the first tables only")
    equal((db.tables(), db.records()), (set(made), [["1", FILES[0][5:], "0"]]),
          "it stops in between")
    db.admin("GRANT ALL ON one.* TO u_one@localhost")
    db.ask("INSERT INTO user_info (username, username_folded, password) VALUES ('a', 'a', 'x')")

    # Somebody keeps a table locked, so the next try stands in the middle; there it is killed. MySQL
    # does not wait for a table that is not to be made because it exists.
    locker = subprocess.Popen(db.client("one"), stdin=subprocess.PIPE, text=True)
    hold = "LOCK INSTANCE FOR BACKUP" if MYSQL else "LOCK TABLES admin_info WRITE"
    locker.stdin.write(f"{hold}; DO GET_LOCK('held', 0);\n")
    locker.stdin.flush()
    ok(wait_for(lambda: db.admin("SELECT IS_USED_LOCK('held')").strip() != "NULL"),
       "a locked table")
    p = db.launch()
    stands = ("SELECT COUNT(*) FROM information_schema.processlist"
              " WHERE state LIKE 'Waiting for table metadata%'"
              " OR state = 'Waiting for backup lock'")
    ok(wait_for(lambda: db.admin(stands).strip() == "1"), "the second try waits for it")
    p.kill()
    p.communicate()
    equal(db.records(), [["1", FILES[0][5:], "0"]], "killed there")
    locker.stdin.close()
    locker.wait(10)
    succeeded(db.migrate(), "An interrupted migration was found and is complete now.\n" + APPLIED,
              "the third try completes it")
    equal(db.records(), COMPLETE, "all is recorded")
    equal(db.shape(), whole.shape(), "and is as if nothing had happened")
    equal(db.ask("SELECT username FROM user_info"), [["a"]], "what was in a table is there")


@with_database("killed at any moment")
def _(db, server):
    began = time.monotonic()
    db.migrate()
    took = time.monotonic() - began
    shape, between, rounds = db.shape(), 0, 16
    for i in range(rounds):
        db.admin("DROP DATABASE one; CREATE DATABASE one")
        p = db.launch()
        time.sleep(took * (0.2 + 0.8 * i / rounds))
        p.kill()
        p.communicate()
        between += 0 < len(db.tables()) < len(TABLES) + 1
        r = db.migrate()
        if r.returncode or db.shape() != shape or db.records() != COMPLETE:
            ok(False, f"killed in round {i}", r.stdout, r.stderr, db.records())
            return
    ok(True, f"{rounds} kills, {between} of them half-way: always completed by the next run")


@with_database("two at once")
def _(db, _server):
    for i in range(4):
        db.admin("DROP DATABASE one; CREATE DATABASE one")
        both = [db.launch(), db.launch()]
        said = sorted(p.communicate(timeout=60) for p in both)
        equal(([p.returncode for p in both], said), ([0, 0], [(NOTHING, ""), (APPLIED, "")]),
              f"round {i}: one works, the other finds nothing to do")
    equal(db.records(), COMPLETE, "all is there")
    db.admin("DROP DATABASE one; CREATE DATABASE one")
    locker = subprocess.Popen(db.client("one"), stdin=subprocess.PIPE, text=True)
    name = "millrace.migrate." + hashlib.sha256(b"one").hexdigest()[:32]
    locker.stdin.write(f"DO GET_LOCK('{name}', 0), GET_LOCK('held', 0);\n")
    locker.stdin.flush()
    ok(wait_for(lambda: db.admin("SELECT IS_USED_LOCK('held')").strip() != "NULL"), "a long one")
    refused(db.migrate(), "another process has been migrating this database for 10 s",
            "is not waited for endlessly")
    equal(db.tables(), set(), "and nothing was done beside it")
    locker.stdin.close()
    locker.wait(10)


if __name__ == "__main__":
    run_tests()
