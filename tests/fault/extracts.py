"""Documents and tasks of extraction that users have, cancel, try again and edit, whatever goes on
around them; the webhook that is told of them; and what the stores have of them in the end."""
import base64
import json
import os

import receiver
from checks_extract import Call, Document, Extraction
from harness import sql

FIELD = "dose"  # that is edited
TEMPLATES = (("Doses", [{"name": FIELD, "type": "number", "unit": "mg", "required": True},
                        {"name": "drugs", "type": "list", "of": "text"}]),
             ("Papers", [{"name": FIELD, "type": "number"}, {"name": "catalyst", "type": "text"}]))
SETTINGS = {"MILLRACE_EXTRACT_LEASE_S": "3",  # shorter than a node is frozen
            **{f"MILLRACE_LIMIT_EXTRACTION_{span}": "0" for span in ("MINUTE", "DAY", "MONTH")}}
OPEN_MAX = 4  # tasks of one user at a time
DOCUMENTS_MIN = 110
PDFS = os.path.exists("/usr/bin/pdftotext")
NEW_PDFS = 6 if PDFS else 0  # that no task has read yet
PDF_PAGES = 40
FEW, MANY = (5, 60), (105, 150)  # documents of a task; the second has two priorities
HOOK_FAILS = 0.1
# The simulated AI leaves required fields out. Of a document in parts, that is found at the end.
OWN_ERRORS = (f"{FIELD} was found in no part",)


def text_of(n):
    return f"Trial number {n}.\n\nThe dose was {n}.5 mg. Drugs: aspirin, heparin.\n".encode()


def pdf_of(n):
    """With so many pages that pdftotext works on it for a while."""
    lines = [f"The dose was {n}.5 mg. Drugs: aspirin."] + [
        f"Page {i} tells of other things, at some length." for i in range(2, PDF_PAGES + 1)]
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(lines)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>",
               f"<< /Type /Pages /Kids [{kids}] /Count {len(lines)} >>",
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for i, line in enumerate(lines):
        drawn = "BT /F1 12 Tf 14 TL 72 720 Td " + f"({line}) Tj T* " * (1 if i == 0 else 40) + "ET"
        objects += ["<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]"
                    f" /Contents {5 + 2 * i} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
                    f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream"]
    out, places = b"%PDF-1.4\n", []
    for i, text in enumerate(objects, 1):
        places.append(len(out))
        out += f"{i} 0 obj\n{text}\nendobj\n".encode()
    xref = b"".join(b"%010d 00000 n \n" % at for at in places)
    return (out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode() + xref +
            f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\n"
            f"startxref\n{len(out)}\n%%EOF\n".encode())


class Extracts:
    """Those of a person, who is alone with them: so it knows what they may be."""

    def __init__(self, person):
        self.person, self.random = person, person.random
        self.templates = []  # ids, as TEMPLATES
        self.values = {}  # document: what its text has
        self.pdfs = []  # of them, those that no task has
        self.uploading = None  # (number, whether it is a PDF), until it is surely there
        self.papers = []  # (query, DOI)
        self.tasks = {}  # id: last status that was surely seen
        self.accepted = {}  # id: documents or DOIs
        self.secrets = {}
        self.failed = set()  # closed tasks with errors
        self.opened = {}  # id: (times that it was surely tried again, perhaps)
        self.unanswered = None
        self.cancelled = set()  # surely
        self.known = {}  # (task, place): {version: values that it may have}
        self.tried_last = set()  # tasks, when nothing dies any more
        self.repeats = self.stale = self.edits = 0

    def open(self):
        return [i for i, status in self.tasks.items() if status == "processing"]

    # --- before ---

    def prepare(self, qid):
        """True: there are templates, documents, papers of this run, which is archived, and a task
        that is completed."""
        for name, fields in TEMPLATES[len(self.templates):]:
            r = self.person.ask("POST", "/api/templates", {"name": name, "fields": fields})
            if not r or r.status != 201:
                return False
            self.templates.append(r.body["template_id"])
        while len(self.values) < DOCUMENTS_MIN:
            self.upload()
        self.papers = [(qid, doi) for doi, relevant in self.person.results(qid) if relevant]
        if len(self.papers) <= 10:
            return False
        if not self.tasks:
            self.submit()
        for task in self.open():
            self.look(task)
        return "completed" in self.tasks.values()

    # --- all the time ---

    def upload(self):
        """What has no answer yet is repeated: the same bytes are one document."""
        self.uploading = self.uploading or (self.random.getrandbits(31),
                                            len(self.pdfs) < NEW_PDFS)
        n, pdf = self.uploading
        r = self.person.ask("POST", f"/api/documents?name={n}.{'pdf' if pdf else 'txt'}",
                            raw=pdf_of(n) if pdf else text_of(n))
        if r and r.status in (200, 201):
            self.uploading = None
            if r.body["document_id"] in self.values:
                self.person.problem(f"document {r.body['document_id']} has two texts")
            self.values[r.body["document_id"]] = n + 0.5
            if pdf:
                self.pdfs.append(r.body["document_id"])
        elif r and r.status < 500:
            self.person.problem(f"document {n} is refused: {r.status} {r.body}")

    def choose(self):
        """What a task is about: a template, and documents or papers."""
        low, high = MANY if self.random.random() < 0.25 else FEW
        count = self.random.randint(low, high)
        if self.papers and self.random.random() < 0.4:
            qid, _ = self.papers[0]
            dois = [doi for _, doi in self.papers]
            return {"template_id": self.templates[1], "query_id": qid,
                    "dois": self.random.sample(dois, min(count, len(dois)))}
        new, self.pdfs = self.pdfs, []
        ids = self.random.sample(sorted(self.values), min(count, len(self.values)))
        return {"template_id": self.templates[0], "document_ids": sorted({*ids, *new})}

    def submit(self):
        """A request that has no answer yet is repeated: it makes one task, whatever was lost."""
        self.repeats += self.unanswered is not None
        if not self.unanswered:
            self.unanswered = {**self.choose(), "request_id": f"{self.random.getrandbits(64):016x}"}
            if self.random.random() < 0.8:
                self.unanswered["webhook"] = self.person.world.hook.url
        r = self.person.ask("POST", "/api/tasks", self.unanswered)
        if not r or r.status >= 500:
            return
        asked, self.unanswered = self.unanswered, None
        if r.status == 202:
            task = r.body["taskId"]
            self.tasks.setdefault(task, "processing")
            self.accepted[task] = {*asked.get("document_ids", []), *asked.get("dois", [])}
            self.secrets[task] = r.body.get("webhook_secret")
            self.person.events(self.person.name, f"submitted {task}, {r.body['total']} documents")
        elif r.status == 402:
            self.person.pay(r, 3)
        else:
            self.person.problem(f"a task is refused: {r.status} {r.body}")

    def look(self, task):
        r = self.person.ask("GET", f"/api/tasks/{task}/status")
        if not r or r.status != 200:
            return
        before, now, progress = self.tasks[task], r.body["status"], r.body["progress"]
        self.tasks[task] = now
        if before != "processing" and before != now and not (
                before == "completed" and self.opened.get(task, (0, 0))[1]):
            self.person.problem(f"task {task} was {before}, and is {now}")
        done, total = progress["success"] + progress["failed"], len(self.accepted[task])
        if progress["total"] != total or done > total or (now == "completed" and done != total):
            self.person.problem(f"task {task} of {total} documents is {now}: {progress}")
        (self.failed.add if now == "completed" and progress["failed"] else
         self.failed.discard)(task)

    def cancel(self, task):
        r = self.person.ask("POST", f"/api/tasks/{task}/cancel", {})
        said = f"{r.status} {r.body.get('progress')}" if r else None
        self.person.events(self.person.name, f"cancels {task}: {said}")
        if r and r.status == 200:
            self.cancelled.add(task)
            self.tasks[task] = "cancelled"
            self.failed.discard(task)
            if r.body["status"] != "cancelled":
                self.person.problem(f"task {task} was cancelled, and is {r.body}")

    def retry(self, task):
        """Of one that was closed. Whether that was acknowledged."""
        sure, perhaps = self.opened.get(task, (0, 0))
        r = self.person.ask("POST", f"/api/tasks/{task}/retry", {})
        self.person.events(self.person.name, f"retry {task}: {r.status if r else None}")
        if r is None or r.status >= 500 or (r.status == 200 and perhaps):
            self.opened[task] = sure, perhaps + 1
            self.tasks[task] = "processing"  # or not: it is looked at
        elif r.status == 200:
            self.opened[task] = sure + 1, perhaps
            self.tasks[task] = "processing"
        elif r.status == 402:
            self.person.pay(r, 3)
        else:
            self.tasks[task] = "processing"  # an earlier request has done it
        if r and r.status in (200, 409):
            self.failed.discard(task)
        return r is not None and r.status == 200

    def edit(self, task):
        """A row is read and written; now and then a version too late."""
        r = self.person.ask("GET", f"/api/tasks/{task}?limit=3")
        rows = [x for x in r.body["rows"] if x["values"]] if r and r.status == 200 else []
        if not rows:
            return
        row = self.random.choice(rows)
        version, value, place = row["version"], row["values"][FIELD]["value"], row["place"]
        known = self.known.setdefault((task, place), {})
        if value not in known.setdefault(version, {value}):
            self.person.problem(f"{task}.{place} version {version} has {value!r}, expected is one"
                                f" of {known[version]}")
        known[version] = {value}
        first = min(known)
        latest = max((v for v, values in known.items() if "" not in values), default=version)
        if latest > first and self.random.random() < 0.3:
            version = latest - 1  # surely not the last any more
            self.stale += 1
        value = self.random.getrandbits(31) + 0.25
        r = self.person.ask("PUT", f"/api/tasks/{task}/rows/{place}",
                            {"version": version, "field": FIELD, "value": value})
        if r and r.status == 200:
            self.edits += 1
            if version < latest or r.body["version"] != version + 1:
                self.person.problem(f"{task}.{place}: version {version} was edited, {latest} was"
                                    f" there, and is {r.body['version']} now")
            known[version + 1] = {value}
        elif r is None or r.status >= 500:  # "": or it is not there
            known.setdefault(version + 1, {""}).add(value)

    def step(self):
        """One of the things that can be done now."""
        can = []
        if self.uploading or len(self.pdfs) < NEW_PDFS:
            can += [self.upload] * 3
        if self.unanswered or len(self.open()) < OPEN_MAX:
            can += [self.submit] * 3
        if self.open():
            task = self.random.choice(self.open())
            can += [lambda: self.look(task)] * 5
            if self.random.random() < 0.2:
                can += [lambda: self.cancel(task)]
        if self.failed:
            failed = self.random.choice(sorted(self.failed))
            can += [lambda: self.retry(failed)] * 2
        if closed := sorted(i for i, s in self.tasks.items() if s == "completed"):
            few = self.random.choice(closed[:3])  # so that rows are edited again
            can += [lambda: self.edit(few)] * 3
        if can:
            self.random.choice(can)()

    def settle(self):
        """True: nothing is open any more, and what failed was tried again."""
        if self.uploading:
            self.upload()
        if self.unanswered:
            self.submit()
        for task in self.open():
            self.look(task)
        for task in sorted(self.failed - self.tried_last):
            if self.retry(task):
                self.tried_last.add(task)
        return not (self.uploading or self.unanswered or self.open() or
                    self.failed - self.tried_last)


# --- the webhook ---

class Hook(receiver.Receiver):
    """Refuses some calls: these are repeated."""

    def __init__(self, certificate, random):
        super().__init__(certificate, length=0)
        self.statuses = Refusals(random)


class Refusals:
    """As a list of statuses that never ends; made by one thread at a time, or nearly so."""

    def __init__(self, random):
        self.random, self.count = random, 0

    def pop(self, _):
        refused = self.random.random() < HOOK_FAILS
        self.count += refused
        return 500 if refused else 204


def calls(hook, secrets):
    found = []
    for headers, body in list(hook.got):
        said = json.loads(body)
        secret = secrets.get(said["task_id"])
        found.append(Call(headers["Webhook-Id"], said["task_id"], said["success"], said["failed"],
                          body, bool(secret) and receiver.signed(secret, headers, body)))
    return found


def hurry(stores):
    """What was refused is tried again now. True: nothing waits to be told."""
    sql(stores, "UPDATE webhook_delivery SET due_at = UTC_TIMESTAMP(3) WHERE state = 'pending'")
    return not sql(stores, "SELECT id FROM webhook_delivery WHERE state = 'pending'")


# --- the end ---

def decoded(text):
    return json.loads(base64.b64decode(text)) if text else None


def payments(stores):
    """{id of a document: cents of each payment}"""
    found = {}
    for request, cents in sql(
            stores, "SELECT q.request_id, b.cents FROM ledger_request q JOIN billing_log b"
            " ON b.uid = q.uid AND b.number = q.number AND b.kind = 'deduction'"
            " AND b.source = 'redis' WHERE q.request_id LIKE 'extract:%'"):
        found.setdefault(request.removeprefix("extract:"), []).append(int(cents))
    return found


def spent(stores):
    """{uid: cents}"""
    found = {}
    for i, cents in payments(stores).items():
        uid = int(i.partition("-")[0])
        found[uid] = found.get(uid, 0) + sum(cents)
    return found


def edits(stores):
    """{number of a row: [(version, value)]}"""
    found = {}
    for row, version, became in sql(
            stores, "SELECT result, version, REPLACE(TO_BASE64(became), '\\n', '')"
                    f" FROM extraction_edit WHERE field = '{FIELD}' ORDER BY number"):
        found.setdefault(row, []).append((int(version), decoded(became)["value"]))
    return found


def tasks(stores):
    paid, changed, by_number, found = payments(stores), edits(stores), {}, []
    for number, i, uid, status, closed, total, webhook in sql(
            stores, "SELECT number, id, uid, status, closed, total_count, webhook IS NOT NULL"
                    " FROM extraction_task"):
        x = Extraction(i, int(uid), status, int(closed), int(total), webhook == "1", {})
        by_number[number] = x
        found.append(x)
    for number, i, task, place, source, state, error, version, cents, result in sql(
            stores, "SELECT number, id, task, place, COALESCE(document_id, doi), state,"
                    " COALESCE(error, ''), version, cents,"
                    " REPLACE(TO_BASE64(COALESCE(result, '')), '\\n', '') FROM extraction_result"):
        values = decoded(result) or {}
        by_number[task].rows[int(place)] = Document(
            state, error, int(version), int(cents), paid.get(i, []), source,
            values.get(FIELD, {}).get("value"), changed.get(number, []))
    return found


def reserved(stores):
    return [row[0] for row in sql(stores, "SELECT id FROM job_reserve WHERE queue = 'extract'")]
