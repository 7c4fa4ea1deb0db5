"""Folders of papers, and databases that `millrace db init` loads them into."""
import contextlib
import hashlib
import json
import os
import pathlib
import subprocess

from harness import BIN, Millrace, environment, folder, ok, run, sql, test

TABLES = {
    "contentlist": "*", "contentlist_year_number": "*",
    "paperinfo": "DOI, SHA2(Bib, 256), journal, year", "info_tag": "*", "info_paper_with_tag": "*",
    "corpus_file": "journal, file, bytes, changed_ns, digest",
    "corpus_block": "journal, year, papers, digest",
    "corpus_bare": "*",
    "api_list": "*", "zstd_dictionary": "id, sequence, papers, SHA2(dictionary, 256)"}


MIGRATIONS = sorted((pathlib.Path(__file__).parents[2] / "schema").glob("*.sql"))
# @TEXT@ and @EXACT@ of a migration, for MariaDB and for MySQL.
COLLATIONS = {True: ("utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_nopad_bin"),
              False: ("utf8mb4_0900_ai_ci", "utf8mb4_0900_bin")}


class Database:
    """One of many on the MariaDB, or MySQL, of a server."""
    count = 0

    def __init__(self, server):
        Database.count += 1
        self.server, self.name = server, f"db{Database.count}"
        sql(server, f"DROP DATABASE IF EXISTS {self.name}; CREATE DATABASE {self.name}", "mysql")
        self.env = {"MILLRACE_MYSQL_URL": f"unix:{server.sql_socket}?user=root"
                                          f"&database={self.name}"}

    def migrate_by_hand(self, count):
        """Makes the tables of an older millrace, which had so many migrations."""
        text, exact = COLLATIONS["MariaDB" in self.ask("SELECT VERSION()")[0][0]]
        self.ask("CREATE TABLE schema_migration (number INT NOT NULL PRIMARY KEY,"
                 " name VARCHAR(64) NOT NULL, checksum CHAR(64) NOT NULL,"
                 " applied_at DATETIME(3) NULL) DEFAULT CHARSET=ascii")
        for path in MIGRATIONS[:count]:
            number, _, name = path.stem.partition("_")
            statements = path.read_text(encoding="utf-8")
            self.ask(statements.replace("@TEXT@", text).replace("@EXACT@", exact))
            checksum = hashlib.sha256(path.read_bytes()).hexdigest()
            self.ask("INSERT INTO schema_migration VALUES"
                     f" ({int(number)}, '{name}', '{checksum}', NOW(3))")

    def ask(self, statement):
        return sql(self.server, statement, self.name)

    def init(self, top, *args, timeout=120, status=0):
        """Runs it and gives (what was printed, its report)."""
        report = os.path.join(folder(), "report.json")
        done = run("db", "init", "--data", str(top), "--report", report, *args, env=self.env,
                   timeout=timeout)
        ok(done.returncode == status, "db init succeeds" if status == 0 else "db init fails",
           done.stdout[-2000:], done.stderr[-2000:])
        with open(report, encoding="utf-8") as f:
            return done.stdout + done.stderr, json.load(f)

    def launch(self, top):
        return subprocess.Popen([BIN, "db", "init", "--data", str(top)], env=environment(self.env),
                                cwd=folder(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)

    @contextlib.contextmanager
    def locked(self, table):
        """While it lasts, whatever needs this table waits."""
        client = subprocess.Popen(
            ["mariadb", "--no-defaults", "-uroot", "-S", self.server.sql_socket,
             "-N", "--unbuffered", self.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        client.stdin.write(f"LOCK TABLES {table} WRITE; SELECT 'locked';\n")
        client.stdin.flush()
        assert client.stdout.readline() == "locked\n"
        try:
            yield
        finally:
            client.stdin.close()
            client.wait(10)

    def dump(self):
        """Everything that was loaded, in the order of the primary keys."""
        return {name: self.ask(f"SELECT {columns} FROM {name} ORDER BY 1, 2")
                for name, columns in TABLES.items()}

    def stored(self):
        if not self.ask("SHOW TABLES LIKE 'paperinfo'"):
            return 0
        return int(self.ask("SELECT COUNT(*) FROM paperinfo")[0][0])

    def counted(self, table):
        """Rows of a table by the statistics that MariaDB keeps over a restart."""
        return int(self.ask("SELECT n_rows FROM mysql.innodb_table_stats WHERE database_name ="
                            f" '{self.name}' AND table_name = '{table}'")[0][0])

    def papers(self):
        return {doi: json.loads(bib.replace("\\\\", "\\")) for doi, bib in
                self.ask("SELECT DOI, Bib FROM paperinfo")}


def with_server(name):
    def wrap(fn):
        @test(name)
        def _():
            with Millrace(env={"MILLRACE_NODES": "1"}) as m:
                fn(m)
    return wrap


def sample(papers=3000, seed=1):
    top = pathlib.Path(folder())
    done = run("sample", "--papers", str(papers), "--seed", str(seed), str(top / "s"))
    assert done.returncode == 0, done.stderr
    return top / "s"


def entry(key, doi=None, year=2020, title="A title", abstract="An abstract.", more=""):
    fields = [f"title = {{{title}}}", f"year = {{{year}}}", f"abstract = {{{abstract}}}"]
    fields += [f"doi = {{{doi}}}"] if doi else []
    fields += [more] if more else []
    return f"@article{{{key},\n  " + ",\n  ".join(fields) + "\n}"


def tree(files):
    """A data folder from {path: text or bytes}."""
    top = pathlib.Path(folder())
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return top


def counts(report):
    return {k: v for k, v in report["papers"].items() if v and k not in ("bare", "made_up")}


def same_tables(got, want, name):
    """Says which table differs, and where first."""
    for table in TABLES:
        if got[table] != want[table]:
            pairs = [(a, b) for a, b in zip(got[table], want[table]) if a != b][:2]
            return ok(False, f"{name}: {table}", len(got[table]), len(want[table]), *pairs)
    return ok(True, name)


# --- what is asked about loads ---

CHANGES = "SELECT journal, year, load_no, doi, kind, net FROM corpus_change ORDER BY 1, 2, 3, 4"
BLOCKS = "SELECT journal, year, papers, load_no, since FROM corpus_block ORDER BY 1, 2"
LOADS = "SELECT load_no, ended_at IS NOT NULL, added, changed, withdrawn FROM corpus_load"
