"""Papers of some journals that are loaded, changed, moved and withdrawn all the time, and that an
admin has embedded, whatever goes on around them; and what the stores have of them in the end.

No user submits these journals: what a run is over must not change here."""
import os
import subprocess
import time
import urllib.parse

from caller import Caller
from checks_papers import TOKEN, Indexed, Paper, Unit, blank
from harness import BIN, environment, folder, sql, wait_for
from points import Eyes, chunks

COLLECTION, WORDS = "papers", "paper_words"
JOURNALS, YEARS = ("FAULT A", "FAULT B", "FAULT C"), range(2019, 2023)
LARGE, LARGE_PAPERS = ("FAULT C", 2024), 1100  # cut into two units
BLOCK_PAPERS = 80  # of the others, at most: one page of a search
LOAD_S = 60  # one that takes longer is given up
PAUSE_S = 1.5
CHANGES = 120  # of one load, at most
KILLED = 0.2  # of all loads
PAGE = 100
WORD, NO_WORD = "catalogued", "zzyzx"  # one that all papers have, and one that none has
SUBJECTS = ("iron and steel", "bread and flour", "bees and honey", "sheep on hills")


def token(random):
    return f"p{random.getrandbits(48):012x}"


def texts_of(random):
    """Title and abstract: a few words, some pages, no abstract, or nothing at all."""
    dice, subject = random.random(), random.choice(SUBJECTS)
    if dice < 0.03:
        return "", ""
    title = f"On {WORD} {subject} {token(random)}"
    sentences = 0 if dice < 0.12 else random.randint(60, 110) if dice < 0.2 else 1
    return title, " ".join(f"Something {WORD} is said of {subject} by {token(random)} at length."
                           for _ in range(sentences))


def entry(number, p):
    fields = {"doi": p.doi, "year": p.year, "author": "Doe, Jane", "title": p.title,
              "abstract": p.abstract}
    return f"@article{{k{number},\n" + ",\n".join(
        f"  {name} = {{{value}}}" for name, value in fields.items() if value) + "\n}\n\n"


class Librarian(Caller):
    """Alone with its journals: so it knows what papers there must be. An admin, too."""

    def __init__(self, world, seed, events):
        super().__init__("librarian", world, seed, events)
        self.top = folder()
        os.makedirs(f"{self.top}/Data")
        sample = f"{world.stores.data}/sample/Data"
        for name in os.listdir(sample):  # else they would be withdrawn
            os.symlink(f"{sample}/{name}", f"{self.top}/Data/{name}")
        self.papers = {}  # DOI: Paper
        self.asked, self.loaded = set(), False
        self.count = {"loads": 0, "failed": 0, "killed": 0, "wishes": 0, "new": 0, "changed": 0,
                      "moved": 0, "withdrawn": 0}
        self.serial = 0

    # --- the folder ---

    def add(self, journal, year):
        self.serial += 1
        doi = f"10.5555/fault.{self.serial}"
        self.papers[doi] = Paper(doi, journal, year, *texts_of(self.random))

    def block(self, journal, year):
        return [p for p in self.papers.values() if (p.journal, p.year) == (journal, year)]

    def write(self, blocks):
        for journal, year in sorted(blocks):
            os.makedirs(f"{self.top}/Data/{journal}", exist_ok=True)
            with open(f"{self.top}/Data/{journal}/{year}.bib", "w", encoding="utf-8") as f:
                f.write("".join(entry(i, p) for i, p in enumerate(self.block(journal, year))))

    def change(self):
        blocks = set()
        for _ in range(self.random.randint(1, CHANGES)):
            p, dice = self.random.choice(list(self.papers.values())), self.random.random()
            to = self.random.choice(JOURNALS), self.random.choice(YEARS)
            blocks |= {(p.journal, p.year), to}
            if dice < 0.55:
                p.title, p.abstract = texts_of(self.random)
                self.count["changed"] += 1
            elif dice < 0.7:
                del self.papers[p.doi]
                self.count["withdrawn"] += 1
            elif len(self.block(*to)) < BLOCK_PAPERS:
                if dice < 0.85:
                    self.add(*to)
                else:
                    p.journal, p.year = to
                self.count["new" if dice < 0.85 else "moved"] += 1
        self.write(blocks)
        self.loaded = False

    def load(self, limit_s=LOAD_S):
        """Whether the corpus is as the folder now."""
        process = subprocess.Popen(
            [BIN, "db", "init", "--data", self.top, "--prune"], cwd=folder(), text=True,
            env=environment(self.world.stores.settings()), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        try:
            said = process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0]
        what = {0: "loads"}.get(process.returncode, "failed" if process.returncode > 0 else
                                "killed")
        self.count[what] += 1
        self.events(self.name, f"a load: {process.returncode} {said[-300:]!r}")
        self.loaded = process.returncode == 0
        return self.loaded

    # --- wishes ---

    def want(self, **body):
        r = self.ask("POST", "/api/admin/embedding/papers", body)
        self.count["wishes"] += 1
        self.events(self.name, f"wants {body}: {r.status if r else None} {r.body if r else ''}")
        return r is not None and r.status == 202

    def want_journal(self, name):
        if self.want(journals=[name]):
            self.asked.add(name)
            return True
        return False

    # --- before, all the time, and the end ---

    def prepare(self, token_):
        """The first load, and a wish."""
        self.token = token_
        for journal in JOURNALS:
            for year in YEARS:
                for _ in range(self.random.randint(3, BLOCK_PAPERS // 2)):
                    self.add(journal, year)
        for _ in range(LARGE_PAPERS):
            self.add(*LARGE)
        self.write({(p.journal, p.year) for p in self.papers.values()})
        assert self.load(), "the first load fails"
        assert self.want_journal(JOURNALS[0])

    def run(self):
        for name in JOURNALS[1:]:
            self.want_journal(name)
        while not self.stopped.wait(self.random.expovariate(1 / PAUSE_S)):
            dice = self.random.random()
            if dice < 0.6:
                self.change()
                kill = self.random.random() < KILLED
                self.load(self.random.uniform(0.05, 1.5) if kill else LOAD_S)
            elif dice < 0.9:
                self.want_journal(self.random.choice(JOURNALS))
            else:
                self.want(**{self.random.choice(("changed", "failed")): True})
        self.over = time.monotonic()

    def settle(self, seconds):
        """The last load, until nothing is left to do of what was asked for before."""
        return wait_for(lambda: self.loaded or self.load(), seconds) and self.at_rest(seconds)

    def ask_all(self, seconds):
        """All journals once more, until nothing is left to do."""
        return all(wait_for(lambda: self.want_journal(name), seconds)
                   for name in JOURNALS) and self.at_rest(seconds)

    def at_rest(self, seconds):
        """What was given up, because its node died each time, is asked for again."""
        def over():
            if any(u.state == "failed" for u in units(self.world.stores)):
                self.want(failed=True)
            return not sql(self.world.stores,
                           "SELECT u.id FROM embedding_unit u JOIN corpus_block b"
                           " ON b.journal = u.journal AND b.year = u.year"
                           " WHERE u.state <> 'completed' OR COALESCE(u.digest <> b.digest, 1)")
        return wait_for(over, seconds)


# --- what there is ---

def listed(names):
    return "(" + ", ".join(f"'{name}'" for name in names) + ")"


def corpus(stores):
    """{DOI: (journal, year)}"""
    return {doi: (journal, int(year)) for doi, journal, year in sql(
        stores, f"SELECT DOI, journal, year FROM paperinfo WHERE journal IN {listed(JOURNALS)}")}


def units(stores):
    return [Unit(journal, int(year), int(slices), state, error, *map(int, counts))
            for journal, year, slices, state, error, *counts in sql(
                stores, "SELECT journal, year, slices, state, COALESCE(error, waits, ''),"
                " papers, bare, done, embedded, refused FROM embedding_unit"
                " WHERE papers > 0 OR state <> 'completed'")]


def indexed(stores, embedder):
    """{owner: Indexed}"""
    there = chunks(stores, embedder, COLLECTION)
    names = {"0": "", **{number: name for number, name in sql(
        stores, "SELECT number, name FROM journal_number")}}
    tags = lambda table, more="": {int(i): (names.get(number), int(year)) for i, number, year in
                                   sql(stores, f"SELECT owner, journal, year FROM {table} {more}")}
    points = tags("point_owner", f"WHERE collection = '{COLLECTION}'")
    words = tags(WORDS)
    return {int(i): Indexed(doi, journal, int(year), int(version), int(space),
                            there.get(int(i), []), points.get(int(i)), words.get(int(i)))
            for i, doi, journal, year, version, space in sql(
                stores, "SELECT owner, doi, journal, year, version, space FROM embedding_paper")}


def answers(servers, token_, papers, random, most):
    """For checks_papers.found: on each machine, the papers of each small block by a word of theirs,
    and by a question that has none; and what is like some of them."""
    found = []
    blocks = sorted({(p.journal, p.year) for p in papers.values()} - {LARGE})
    some = random.sample(sorted(d for d, p in papers.items() if not blank(p)), most)
    for server in servers:
        eyes, by_block, alike, reasons = Eyes(server, token_), {}, {}, set()
        query = lambda more: urllib.parse.urlencode({"kind": "paper", "limit": PAGE, **more})
        ask = lambda path, **more: eyes.search(f"/api/search{path}?{query(more)}", reasons, "doi")
        for journal, year in blocks:
            for q in (WORD, NO_WORD):
                by_block[journal, year, q] = ask("", q=q, journal=journal, year_from=year,
                                                 year_to=year)
        for doi in some:
            alike[doi] = ask("/like", doi=doi)
            own = TOKEN.findall(papers[doi].title)[0]
            by_block[doi, "", own] = ask("", q=own, limit=1)
        found.append((f"admin at {server.port}", by_block, alike, reasons))
    return found
