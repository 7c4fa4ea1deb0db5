#!/usr/bin/env python3
"""Checks what a compiler does not: tidy.py. Prints TAP, one line per rule.

Each rule is a function that yields "file:line: what is wrong"."""
import pathlib
import re
import subprocess
import sys

import guides

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ["base", "loop", "wire", "corpus", "engine", "app", "serve", "tool"]
# The rooms of the engine, from the bottom: each may include those before it.
ENGINE = [
    "setup", "store", "vectors", "people", "money", "papers", "ai", "search", "judge", "runs",
    "chosen", "crew", "jobs", "watch", "api"]
FILES_MAX = 40  # of a folder, besides tests
FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
# What wraps, besides meson.build and scripts without a suffix.
WRAPPED = (".c", ".h", ".S", ".lua", ".py", ".sh", ".md", ".in", ".mjs", ".js", ".ts", ".vue",
           ".css", ".html", ".sql")
# Made by bench/run; inputs that once broke something; and migrations: every database has a
# checksum of the whole file, comments included.
UNWRAPPED = re.compile(r"docs/performance\.md|tests/corpus/.*|schema/\d+_\w+\.sql")
# Rows of tables, links, images and tags, which Markdown cannot break.
UNBREAKABLE = re.compile(r"^\s*\||\]\(|://|</?\w")

BANNED = {
    r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|alloca)\s*\(": "use str, buf or arena",
    r"\b(system|popen|execlp|execvp)\s*\(": "no shell, no search path",
    r"\b(rand|srand|random|drand48)\s*\(": "randomness comes from the loop",
    r"\b(atoi|atol|atof)\s*\(": "use str_to_i64",
    r"\b(sleep|usleep|nanosleep)\s*\(": "use task_sleep",
    r"\btypedef\s+struct\b": "structs are not typedef'd",
    r"\b(mysql_query|mysql_real_query|mysql_escape_string|mysql_real_escape_string)\s*\(":
        "values are bound, never pasted",
}
CLOCK = r"\b(clock_gettime|gettimeofday|time|ftime)\s*\("
CLOCK_HOMES = {"src/base/time.c"}
# What a node does again and again is a row of serve/node/roles.c; retries are loop/backoff.h's.
# These sleep once: while connections end, for the lateness of the loop, until Redis has written its
# file, as the made-up AI, also in its TLS handshakes, before a stream is reset.
SLEEP = r"\btask_sleep\s*\("
SLEEP_HOMES = {
    "src/engine/store/role.c", "src/serve/node/process.c", "src/serve/node/health.c",
    "src/engine/runs/archive_restore.c", "src/tool/sim/sim_call.c",
    "src/wire/http_server/http2_later.c", "src/wire/http_server/http_tls.c"}
# The first parts of the Redis keys in the specification.
KEY = re.compile(r'"(user|session|admin|sys|meta|query|task|progress|result|distill_chunk|'
                 r'billing_queue|download|jobs|api_limit|template|training_plan|nutrition_plan|'
                 r'daily_nutrition|generation_task|titles|contents|contentlist_year_number):')
# A file that reads bytes from outside is named for it, and has a fuzz target.
PARSER = re.compile(r"(_parse|_uri|_url|_verdict|bibtex|csv|^config|^json_read)\.c$")


def tracked():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True,
                           stdout=subprocess.PIPE, check=True).stdout.split("\n")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


FILES = tracked()
CODE = [p for p in FILES if p.suffix in (".c", ".h")]
SOURCE = [p for p in CODE if p.is_relative_to(ROOT / "src")]
PRODUCT = [p for p in SOURCE if not re.search(r"_(test|fuzz)\.c$", p.name)]


def name(path):
    return str(path.relative_to(ROOT))


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def without_comments(path):
    """The code, line by line, with comments and the insides of strings blanked out."""
    text = path.read_text(encoding="utf-8")
    keep_newlines = lambda m: re.sub(r"[^\n]", " ", m[0])
    text = re.sub(r'"(\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*',
                  lambda m: m[0] if m[0][0] == '"' else keep_newlines(m), text, flags=re.S)
    return text.splitlines()


def include_direction():
    for path in SOURCE:
        room = path.relative_to(ROOT / "src").parts[0]
        if room not in ROOMS:
            continue
        for number, line in enumerate(lines(path), 1):
            found = re.match(r'#include "([a-z]+)/(.+)"', line)
            if not found or found[1] not in ROOMS:
                continue
            if ROOMS.index(found[1]) > ROOMS.index(room):
                yield f"{name(path)}:{number}: {room} must not include {found[1]}"
            if room == found[1] == "app":
                here = path.relative_to(ROOT / "src" / "app").parts[0]
                if not found[2].startswith(here + "/"):
                    yield f"{name(path)}:{number}: applications do not include each other"


def order_of_engine_rooms():
    for path in SOURCE:
        parts = path.relative_to(ROOT / "src").parts
        if parts[0] != "engine":
            continue
        if len(parts) != 3 or parts[1] not in ENGINE:
            yield f"{name(path)}: the engine has no such room"
            continue
        for number, line in enumerate(lines(path), 1):
            found = re.match(r'#include "engine/([a-z]+)/', line)
            if found and ENGINE.index(found[1]) > ENGINE.index(parts[1]):
                yield f"{name(path)}:{number}: engine/{parts[1]} must not include engine/{found[1]}"


def private_headers_stay_in_their_folder():
    for path in PRODUCT:
        for number, line in enumerate(lines(path), 1):
            found = re.match(r'#include "(.+)/\w+_private\.h"', line)
            if found and ROOT / "src" / found[1] != path.parent:
                yield f"{name(path)}:{number}: private to src/{found[1]}"


def folders_are_not_crowded():
    counts = {}
    for path in PRODUCT:
        if not re.search(r"_fixture\.h$|_harness\.[ch]$", path.name):
            counts[path.parent] = counts.get(path.parent, 0) + 1
    for folder, count in counts.items():
        if count > FILES_MAX:
            yield f"{name(folder)}: {count} files; it wants rooms"


def scripts_stand_beside_their_callers():
    for path in (p for p in FILES if p.suffix == ".lua" and p.is_relative_to(ROOT / "src")):
        called = re.compile(rf"\bscript_{path.stem}\b|\bSCRIPT\w*\([^;]*\b{path.stem}\b")
        callers = {p.parent for p in PRODUCT
                   if p.suffix == ".c" and called.search(p.read_text(encoding="utf-8"))}
        if path.name not in ("generation.lua", "periods.lua") and callers != {path.parent}:
            yield f"{name(path)}: called from {', '.join(map(name, callers)) or 'nowhere'}"


def words_of_engineers():
    """A sentence is about a thing by its code name; personification hides what one searches for."""
    riddles = re.compile(r"\b(whoever|somebody|nobody)\b", re.I)
    for path in PRODUCT + \
                [p for p in FILES if p.suffix == ".md" or p.suffix == ".lua"]:
        for number, line in enumerate(lines(path), 1):
            if riddles.search(line):
                yield f"{name(path)}:{number}: {riddles.search(line)[0]}: name the thing instead"


def only_loop_switches_stacks():
    for path in SOURCE:
        if not path.is_relative_to(ROOT / "src" / "loop"):
            for number, line in enumerate(lines(path), 1):
                if "loop/stack.h" in line or "loop/loop_private.h" in line:
                    yield f"{name(path)}:{number}: private to src/loop"


def key_literals():
    for path in PRODUCT:
        if name(path) == "src/engine/store/keys.c":
            continue
        for number, line in enumerate(without_comments(path), 1):
            if KEY.search(line):
                yield f"{name(path)}:{number}: Redis keys are built in src/engine/store/keys.c"


def banned_calls():
    for path in PRODUCT:
        for number, line in enumerate(without_comments(path), 1):
            code = re.sub(r'"(\\.|[^"\\])*"', '""', line)
            for pattern, why in BANNED.items():
                if re.search(pattern, code):
                    yield f"{name(path)}:{number}: {why}"
            if re.search(CLOCK, code) and name(path) not in CLOCK_HOMES:
                yield f"{name(path)}:{number}: the time comes from the loop"


def loops_are_roles():
    for path in PRODUCT:
        if path.is_relative_to(ROOT / "src" / "loop") or name(path) in SLEEP_HOMES or \
                re.search(r"_(test|harness|fixture)|^heart_", path.name):
            continue
        for number, line in enumerate(without_comments(path), 1):
            if re.search(SLEEP, line):
                yield f"{name(path)}:{number}: a row of serve/node/roles.c, or loop/backoff.h"


def audit_log_grows_only():
    """Nobody can edit what admins did: rows are inserted, and that is all."""
    for path in PRODUCT:
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(
                r"\b(UPDATE|REPLACE|DELETE|TRUNCATE|ALTER|DROP)\b[^;]{0,40}\badmin_audit\b", text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{name(path)}:{line}: rows of admin_audit stay as they are"


def sql_runs_on_every_server():
    """MySQL 9.6 has moved MD5 and SHA1 into a component; SHA2 is on MySQL 8, 9 and MariaDB."""
    lost = re.compile(r"\b(MD5|SHA1?)\s*\(", re.I)
    for path in PRODUCT + [p for p in FILES if p.suffix == ".sql"]:
        for number, line in enumerate(without_comments(path), 1):
            text = line if path.suffix == ".sql" else " ".join(
                re.findall(r'"(?:\\.|[^"\\])*"', line))
            for found in lost.finditer(text):
                yield f"{name(path)}:{number}: {found[1]}() is not on every SQL server; use SHA2()"


def parsers_are_fuzzed():
    fuzzed = {p.name for p in SOURCE if p.name.endswith("_fuzz.c")}
    for path in PRODUCT:
        targets = {path.stem + "_fuzz.c", path.stem.rsplit("_", 1)[0] + "_fuzz.c"}
        if PARSER.search(path.name) and not targets & fuzzed:
            yield f"{name(path)}: reads outside bytes and has no {path.stem}_fuzz.c"


def registered_tests():
    """A test or fuzz target that no meson.build names would never run."""
    builds = "\n".join(p.read_text() for p in FILES if p.name == "meson.build")
    for path in SOURCE:
        if re.search(r"_(test|fuzz)\.c$", path.name) and f"'{path.name}'" not in builds:
            yield f"{name(path)}: not in its meson.build"
    for path in FILES:
        if path.is_relative_to(ROOT / "tests" / "server") and path.name.startswith("test_"):
            if f"'{path.name}'" not in builds:
                yield f"{name(path)}: not in tests/meson.build"


def sizes():
    for path in CODE:
        text = lines(path)
        if len(text) > FILE_LINES_MAX:
            yield f"{name(path)}: {len(text)} lines; split it"
        start = None
        for number, line in enumerate(text, 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start > FUNCTION_LINES_MAX:
                    yield f"{name(path)}:{start}: a function of {number - start} lines"
                start = None


def wraps(path):
    if UNWRAPPED.fullmatch(name(path)):
        return False
    if not path.suffix and path.name[0] != ".":
        return path.read_bytes().startswith(b"#!")
    return path.suffix in WRAPPED or path.name == "meson.build"


def lines_fit_in_100_columns():
    for path in filter(wraps, FILES):
        prose = path.suffix in (".md", ".in")
        for number, line in enumerate(lines(path), 1):
            if len(line) > COLUMNS_MAX and not (prose and UNBREAKABLE.search(line)):
                yield f"{name(path)}:{number}: {len(line)} columns"


def clang_format():
    done = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *map(str, CODE)],
                          stderr=subprocess.PIPE, text=True)
    for line in done.stderr.splitlines():
        if "error:" in line:
            yield line.replace(str(ROOT) + "/", "")


def anchors(path):
    """What links to sections of a page end with."""
    for line in lines(path):
        if line.startswith("#"):
            yield re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")


def links():
    for path in FILES:
        if path.suffix != ".md":
            continue
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", text):
            number = text.count("\n", 0, found.start()) + 1
            target = path.parent / found[1] if found[1] else path
            if "://" in found[0] or found[1].startswith("mailto:"):
                continue
            if not target.exists():
                yield f"{name(path)}:{number}: no such file: {found[1]}"
            elif found[2] and target.suffix == ".md" and found[2] not in anchors(target):
                yield f"{name(path)}:{number}: no such section: {found[1]}#{found[2]}"


def pages_in_chinese_say_the_same():
    """A page that is there in two languages has the same sections, commands, code and links."""
    for page in guides.TWINS:
        yield from guides.differences(page)
    listed = {guides.twin(page) for page in guides.TWINS}
    for path in FILES:
        if path.name.endswith(".zh-CN.md") and name(path) not in listed:
            yield f"{name(path)}: not in TWINS of tests/guides.py"


def leftovers():
    for path in FILES:
        if path == pathlib.Path(__file__) or path.suffix in (".png", ".svg"):
            continue
        try:
            text = lines(path)
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text, 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
                yield f"{name(path)}:{number}: left over: {line.strip()[:60]}"


LITERAL = r'"(?:[^"\\]|\\.)*"'
LOGGED = re.compile(r"\blog_(?:warn|error)\(\s*[^,]+,\s*((?:%s|PRI\w+|\s)+)" % LITERAL)
COMPLAINT = re.compile(r"\.complaint\s*=\s*((?:%s|\s)+)" % LITERAL)
CONVERSION = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")

LOCKING = re.compile(r'"[^"\n]*(?:FOR UPDATE|LOCK IN SHARE MODE)')
NUMBERED = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+) \((?:(?!CREATE TABLE).)*?AUTO_INCREMENT",
                      re.S)


def log_lines(text):
    """Lines that it may log as warn or error, as docs/messages.md writes them; not those that have
    no words of their own."""
    for found in LOGGED.findall(text) + COMPLAINT.findall(text):
        line = "".join(part[1:-1] for part in re.findall(LITERAL, found)).replace('\\"', '"')
        line = CONVERSION.sub("…", line).strip()
        if re.search(r"\w|: …", line):
            yield line


def log_lines_are_explained():
    page = ROOT / "docs" / "messages.md"
    told = [row[1] for row in (re.match(r"\| (?:warn|error) \| `(.+?)` \| .+ \|$", line)
                               for line in lines(page)) if row]
    logged = {}
    for path in PRODUCT:
        if path.suffix == ".c" and path.name != "heart_world.c":
            for line in log_lines("\n".join(lines(path))):
                logged.setdefault(line, path)
    for line in logged.keys() - set(told):
        yield f"{name(logged[line])}: docs/messages.md does not say what to do about: {line}"
    for line in set(told) - logged.keys():
        yield f"docs/messages.md: nothing logs: {line}"


def locks_and_numbers_hold_on_galera():
    """Whoever adds one thinks about two nodes that do not see each other's locks."""
    page = "\n".join(lines(ROOT / "docs" / "galera.md"))
    for path in PRODUCT:
        if path.suffix == ".c" and LOCKING.search("\n".join(lines(path))) and \
                f"`{path.name}`" not in page:
            yield f"{name(path)}: docs/galera.md does not say why its locks are enough on Galera"
    for path in FILES:
        if name(path).startswith("schema/") and path.suffix == ".sql":
            for table in NUMBERED.findall(path.read_text(encoding="utf-8")):
                if f"`{table}" not in page:
                    yield f"{name(path)}: docs/galera.md does not say what depends on {table}'s ids"


RULES = [
    include_direction, order_of_engine_rooms, private_headers_stay_in_their_folder,
    folders_are_not_crowded, scripts_stand_beside_their_callers, words_of_engineers,
    only_loop_switches_stacks, key_literals, banned_calls, loops_are_roles,
    audit_log_grows_only, sql_runs_on_every_server, parsers_are_fuzzed,
    registered_tests, sizes, lines_fit_in_100_columns, clang_format, links,
    pages_in_chinese_say_the_same, leftovers, log_lines_are_explained,
    locks_and_numbers_hold_on_galera]


def main():
    failed = 0
    for number, rule in enumerate(RULES, 1):
        found = list(rule())
        failed += bool(found)
        print(f"{'not ' if found else ''}ok {number} - tidy: {rule.__name__.replace('_', ' ')}")
        for text in found:
            print("#", text)
    print(f"1..{len(RULES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
