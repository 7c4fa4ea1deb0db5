"""The part of Qdrant's REST API that millrace uses, as schemas that requests and replies must fit.

OPERATIONS is stricter than the server: fields that millrace does not send are none. Where the
published description of the API lies beside the project, in shared/qdrant/openapi.json, all is
compared with that, too; it does not have the aliases.
"""
import dataclasses
import json
import pathlib
import re
import urllib.parse

BESIDE = pathlib.Path(__file__).resolve().parents[3] / "shared" / "qdrant" / "openapi.json"
DESCRIPTION = json.loads(BESIDE.read_text()) if BESIDE.is_file() else None


# --- a checker of JSON schemas, as far as these need one ---

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
BOUNDS = {"uint": (0, 2**64 - 1), "uint64": (0, 2**64 - 1), "uint32": (0, 2**32 - 1),
          "int64": (-2**63, 2**63 - 1)}


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def has_type(kind, value):
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return is_number(value) if kind == "number" else isinstance(value, TYPES[kind])


class Checker:
    def __init__(self, schemas):
        self.schemas = schemas

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[-1]]
        return schema

    def problems(self, schema, value, where="body"):
        schema = self.resolve(schema)
        if set(schema) == {"nullable"}:  # as description's generator writes "or null"
            return [] if value is None else [f"{where}: expected is null"]
        if value is None and (schema.get("nullable") or not schema):
            return []
        for kind in ("anyOf", "oneOf"):
            if kind in schema:
                return self.one_of(schema[kind], kind, value, where)
        found = [p for part in schema.get("allOf", ()) for p in self.problems(part, value, where)]
        if "type" in schema and not has_type(schema["type"], value):
            return found + [f"{where}: expected is {schema['type']}, got {str(value)[:40]}"]
        found += self.value_problems(schema, value, where)
        if isinstance(value, dict):
            found += self.object_problems(schema, value, where)
        if isinstance(value, list):
            found += self.array_problems(schema, value, where)
        return found

    def one_of(self, parts, kind, value, where):
        found = [self.problems(part, value, where) for part in parts]
        fitting = sum(not f for f in found)
        if fitting == 1 or (fitting and kind == "anyOf"):
            return []
        if fitting:
            return [f"{where}: fits {fitting} forms instead of one"]
        return min(found, key=len)

    @staticmethod
    def value_problems(schema, value, where):
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {value!r} is none of {schema['enum']}"
        if is_number(value):
            least, most = BOUNDS.get(schema.get("format"), (None, None))
            least, most = schema.get("minimum", least), schema.get("maximum", most)
            if (least is not None and value < least) or (most is not None and value > most):
                yield f"{where}: {value} is not between {least} and {most}"
        if isinstance(value, str) and schema.get("format") == "uuid" and not UUID.fullmatch(value):
            yield f"{where}: {value!r} is no UUID"
        if isinstance(value, str) and "pattern" in schema:
            if not re.fullmatch(schema["pattern"], value):
                yield f"{where}: {value[:60]!r} does not look like {schema['pattern']}"

    def object_problems(self, schema, value, where):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{where}: {name} is missing"
        more = schema.get("additionalProperties", "properties" not in schema)
        for name, item in value.items():
            if name in schema.get("properties", ()):
                yield from self.problems(schema["properties"][name], item, f"{where}.{name}")
            elif isinstance(more, dict):
                yield from self.problems(more, item, f"{where}.{name}")
            elif not more:  # what is not described is a typing error
                yield f"{where}: there is no {name}"

    def array_problems(self, schema, value, where):
        if schema.get("uniqueItems") and len({json.dumps(v) for v in value}) < len(value):
            yield f"{where}: an item is there twice"
        if len(value) < schema.get("minItems", 0):
            yield f"{where}: has too few items"
        items = schema.get("items", {})
        if items.get("type") == "number" and set(items) <= {"type", "format"}:
            if not all(map(is_number, value)):
                yield f"{where}: has what is no number"
            return
        for i, item in enumerate(value):
            yield from self.problems(items, item, f"{where}[{i}]")


# --- what millrace sends and reads ---

def record(required, optional=None):
    return {"type": "object", "required": list(required), "additionalProperties": False,
            "properties": {**required, **(optional or {})}}


def text(pattern=None):
    return {"type": "string", **({"pattern": pattern} if pattern else {})}


def whole(least=0, most=2**53):
    return {"type": "integer", "minimum": least, "maximum": most}


def many(items, **more):
    return {"type": "array", "items": items, **more}


NUMBERS = many({"type": "number"})
DIGITS = text("0|[1-9][0-9]{0,19}")  # no number: 64 bits
ID = {"type": "string", "format": "uuid"}
TAGS = {"flags": many(whole(0, 31), uniqueItems=True), "journal": whole(0, 65535),
        "year": whole(0, 65535)}
TEXTS = {"postId": whole(most=2**63 - 1), "hide": {"type": "string", "enum": ["0", "1"]},
         "doi": text(), "title": text(), "chunkText": text()}
PAYLOAD = {"owner": DIGITS, "version": DIGITS, "chunkIndex": whole(0, 2**32 - 1), **TAGS}
ANY = record({"any": many({"anyOf": [text(), whole()]}, uniqueItems=True, minItems=1)})
RANGE = record({"gte": whole(), "lte": whole()})
FILTER = {"$ref": "filter"}
SCHEMAS = {
    "condition": {"anyOf": [record({"key": text(), "match": ANY}),
                            record({"key": text(), "range": RANGE}),
                            record({"has_id": many(ID, uniqueItems=True, minItems=1)}), FILTER]},
    "filter": record({}, {kind: many({"$ref": "condition"}, minItems=1)
                          for kind in ("must", "must_not", "should")}),
}
CHANGED = record({"operation_id": whole(), "status": {"type": "string", "enum": ["completed"]}})
ALIAS = {"anyOf": [record({"delete_alias": record({"alias_name": text()})}),
                   record({"create_alias": record({"alias_name": text(),
                                                   "collection_name": text()})})]}
HIT = record({"id": ID, "version": whole(), "score": {"type": "number"},
              "payload": record(PAYLOAD)})
QUERY = record({"query": NUMBERS, "limit": whole(1, 32000), "with_payload": many(text()),
                "with_vector": {"type": "boolean", "enum": [False]}},
               {"filter": FILTER, "params": record({"exact": {"type": "boolean"}})})
CREATE = record({"vectors": record({"size": whole(1, 4096),
                                    "distance": {"type": "string", "enum": ["Cosine"]}})},
                {"metadata": record({"model": text()})})
POINT = record({"id": ID, "vector": NUMBERS, "payload": record(PAYLOAD, TEXTS)})


@dataclasses.dataclass
class Operation:
    name: str  # the method of qdrant.Store
    method: str
    pattern: str
    query: str  # exactly this
    body: dict  # None: there is none
    result: dict


YES = {"type": "boolean"}
COLLECTION = "/collections/{collection_name}"
OPERATIONS = [
    Operation("rename", "POST", "/collections/aliases", "", record({"actions": many(ALIAS)}), YES),
    Operation("create", "PUT", COLLECTION, "", CREATE, YES),
    Operation("delete", "DELETE", COLLECTION, "", None, YES),
    Operation("info", "GET", COLLECTION, "", None, {"type": "object"}),
    Operation("index", "PUT", COLLECTION + "/index", "wait=true",
              record({"field_name": text(),
                      "field_schema": {"type": "string", "enum": ["keyword", "integer"]}}),
              CHANGED),
    Operation("upsert", "PUT", COLLECTION + "/points", "wait=true",
              record({"points": many(POINT, minItems=1)}), CHANGED),
    Operation("remove", "POST", COLLECTION + "/points/delete", "wait=true",
              record({"filter": FILTER}), CHANGED),
    Operation("payload", "POST", COLLECTION + "/points/payload", "wait=true",
              record({"filter": FILTER, "payload": record(TAGS, TEXTS)}), CHANGED),
    Operation("count", "POST", COLLECTION + "/points/count", "",
              record({"exact": {"type": "boolean"}}), record({"count": whole()})),
    Operation("query", "POST", COLLECTION + "/points/query", "", QUERY,
              record({"points": many(HIT)})),
]
OWN = Checker(SCHEMAS)
PUBLISHED = Checker(DESCRIPTION["components"]["schemas"]) if DESCRIPTION else None


def find(method, path):
    """The operation, and the name of the collection."""
    for operation in OPERATIONS:
        found = re.fullmatch(operation.pattern.replace("{collection_name}", "([a-z_]+_[0-9]+)"),
                             path)
        if found and method == operation.method:
            return operation, found.group(1) if found.groups() else None
    return None, None


def published(operation):
    """What the description says of it; None: nothing, or there is no description."""
    methods = DESCRIPTION["paths"].get(operation.pattern, {}) if DESCRIPTION else {}
    return methods.get(operation.method.lower())


def request_problems(operation, query, body):
    if query != operation.query:
        return [f"expected is the query {operation.query!r}, got {query!r}"]
    if operation.body is None:
        return [] if body is None else ["a body where none is expected"]
    found = OWN.problems(operation.body, body)
    known = published(operation)
    if known:
        schema = known["requestBody"]["content"]["application/json"]["schema"]
        found += PUBLISHED.problems(schema, body)
        names = {p["name"] for p in known["parameters"] if p["in"] == "query"}
        found += [f"there is no parameter {name}" for name, _ in urllib.parse.parse_qsl(query)
                  if name not in names]
    return found


def reply_problems(operation, status, body):
    fine = 200 <= status < 300
    found = OWN.problems(operation.result, body["result"], "result") if fine else []
    known = published(operation)
    if known:
        reply = known["responses"]["200" if fine else "4XX"]
        found += PUBLISHED.problems(reply["content"]["application/json"]["schema"], body)
    return found
