"""Tasks of extraction over HTTP, for whole-server tests: what is uploaded, and asked for."""
import time
import urllib.parse

from harness import sql, test, wait_for
from screening import server
from sim import Sim

FIELDS = [
    {"name": "dose", "type": "number", "unit": "mg", "required": True},
    {"name": "drugs", "type": "list", "of": "text"},
    {"name": "design", "type": "choice", "choices": ["RCT", "cohort"]},
]


def with_tasks(name, *sim_options, private=False, **settings):
    def wrap(fn):
        @test(name, private)
        def _():
            with Sim(*sim_options) as sim, server(sim, papers=200, **settings) as m:
                fn(m, sim)
    return wrap


def text_of(n):
    return (f"Trial number {n}.\n\nThe dose was {n}.5 mg. Drugs: aspirin, heparin. "
            "The design: RCT.\n")


def upload(api, text, name="a.txt"):
    r = api("POST", f"/api/documents?name={urllib.parse.quote(name)}",
            raw=text.encode() if isinstance(text, str) else text)
    assert r.status in (200, 201), r
    return r.body["document_id"]


def pdf(*pages, trailer=""):
    """A PDF with one line of text on each page."""
    drawn = [f"BT /F1 12 Tf 72 720 Td ({line}) Tj ET".encode() for line in pages]
    return pdf_file([(d, "") for d in drawn], trailer=trailer)


def pdf_of(content, filters=""):
    """A PDF of one page with this content."""
    return pdf_file([(content, filters)])


def pdf_file(pages, trailer=""):
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>",
               f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
               b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for i, (content, filters) in enumerate(pages):
        page = ("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]"
                f" /Contents {5 + 2 * i} 0 R /Resources << /Font << /F1 3 0 R >> >> >>")
        objects += [page.encode(), f"<< /Length {len(content)} {filters} >>\nstream\n".encode()
                    + content + b"\nendstream"]
    out, places = b"%PDF-1.4\n", []
    for i, text in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (i, text)
    xref = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(b"%010d 00000 n \n" % at for at in places)
    return out + (f"trailer << /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\n"
                  f"startxref\n{xref}\n%%EOF\n").encode()


def uploads(api, count, first=1):
    return [upload(api, text_of(i), f"{i}.txt") for i in range(first, first + count)]


def template(api, fields=None, name="Doses"):
    r = api("POST", "/api/templates", {"name": name, "fields": fields or FIELDS})
    assert r.status == 201, r
    return r.body["template_id"]


def submit(api, template_id, documents=None, **more):
    body = {"template_id": template_id, **more}
    if documents is not None:
        body["document_ids"] = documents
    return api("POST", "/api/tasks", body)


def start(api, template_id, documents=None, **more):
    r = submit(api, template_id, documents, **more)
    assert r.status == 202, r
    return r.body["taskId"]


def status(api, task):
    r = api("GET", f"/api/tasks/{task}/status")
    assert r.status == 200, r
    return r.body


def ended(api, task, state="completed", seconds=40):
    return wait_for(lambda: status(api, task)["status"] == state, seconds)


def states(m, task):
    """How many rows are in each state."""
    return {state: int(n) for state, n in sql(
        m, "SELECT state, COUNT(*) FROM extraction_result WHERE id LIKE "
           f"'{task}.%' GROUP BY state ORDER BY state")}


def rows(api, task):
    """Of all pages."""
    return [row for page in api.pages(f"/api/tasks/{task}?limit=100") for row in page["rows"]]


def paid(m, api):
    """How many documents MySQL has payments of."""
    return int(sql(m, f"SELECT COUNT(*) FROM ledger_request WHERE uid = {api.uid}"
                      " AND request_id LIKE 'extract:%'")[0][0])


def money(api):
    """Balance and what is reserved, as they settle."""
    got = lambda: (api.me().body["balance"], api.me().body["reserved"])
    time.sleep(2.2)  # the list of works is shown for two seconds
    seen = [got()]
    wait_for(lambda: time.sleep(0.3) or seen.append(got()) or seen[-1] == seen[-2], 5)
    return seen[-1]
