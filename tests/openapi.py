"""Whether a reply of the API is what /openapi.json says it is.

    import openapi
    problems = openapi.problems(document, "GET", "/api/me?x=1", 200, {"success": True, …})

The list is empty when everything fits. Knows the parts of JSON Schema that millrace writes, and
refuses to judge others: a rule that nobody checks would look like one that holds."""
import re

KNOWN = {"$ref", "additionalProperties", "anyOf", "const", "description", "enum", "format", "items",
         "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
         "minProperties", "minimum", "pattern", "properties", "required", "type"}
TYPES = {
    "array": lambda v: isinstance(v, list),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "object": lambda v: isinstance(v, dict),
    "string": lambda v: isinstance(v, str),
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def problems(document, method, path, status, body):
    """What does not fit, one line each. body: parsed JSON; for other replies the type of their
    content as text; ignored for HEAD."""
    template, item = find_path(document, path.split("?")[0])
    if not item:
        return [f"{path}: not in the document"]
    operation = item.get("get" if method == "HEAD" else method.lower())
    if not operation:
        return [f"{method} {template}: not in the document"]
    responses = operation["responses"]
    response = resolve(document, responses.get(str(status), responses.get("default")))
    if status < 400 and str(status) not in responses:
        return [f"{method} {template}: {status} is not in the document"]
    if method == "HEAD":
        return []
    (media, content), = response["content"].items()
    if media != "application/json":
        fits = isinstance(body, str) and body.split(";")[0] == media
        return [] if fits else [f"{method} {template}: {body!r} instead of {media}"]
    found = schema_problems(document, content["schema"], body, "reply")
    return [f"{method} {template} {status}: {text}" for text in found]


def find_path(document, path):
    """The template that a path belongs to; literal segments go before parameters."""
    segments = path.split("/")
    best = None
    for template, item in document["paths"].items():
        pattern = template.split("/")
        if len(pattern) != len(segments):
            continue
        params = [p.startswith("{") for p in pattern]
        if all(param and s or p == s for p, s, param in zip(pattern, segments, params)):
            best = min(best, (params, template), key=lambda b: b[0]) if best else (params, template)
    return (best[1], document["paths"][best[1]]) if best else (None, None)


def resolve(document, node):
    while "$ref" in node:
        at = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        node = at
    return node


def schema_problems(document, schema, value, at):
    """What is wrong with a value, one line each."""
    schema = resolve(document, schema)
    unknown = set(schema) - KNOWN
    if unknown:
        return [f"{at}: the document has rules that are not known here: {sorted(unknown)}"]
    if "anyOf" in schema:
        found = [schema_problems(document, one, value, at) for one in schema["anyOf"]]
        return [] if [] in found else found[0]
    if "const" in schema:
        same = value == schema["const"] and isinstance(value, bool) == isinstance(
            schema["const"], bool)
        return [] if same else [f"{at}: {value!r} instead of {schema['const']!r}"]
    if "type" in schema and not TYPES[schema["type"]](value):
        return [f"{at}: {value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at}: {value!r} is none of {schema['enum']}"]
    if isinstance(value, dict):
        return object_problems(document, schema, value, at)
    if isinstance(value, list):
        return (amount_problems(schema, "Items", len(value), at) +
                [text for n, item in enumerate(value)
                 for text in schema_problems(document, schema["items"], item, f"{at}[{n}]")])
    if isinstance(value, str):
        return amount_problems(schema, "Length", len(value), at) + form_problems(schema, value, at)
    if isinstance(value, int):
        return amount_problems(schema, "imum", value, at)
    return []


def amount_problems(schema, what, amount, at):
    least, most = schema.get("min" + what), schema.get("max" + what)
    found = []
    if least is not None and amount < least:
        found.append(f"{at}: {amount} is less than min{what} {least}")
    if most is not None and amount > most:
        found.append(f"{at}: {amount} is more than max{what} {most}")
    return found


def form_problems(schema, value, at):
    if "pattern" in schema and not re.search(schema["pattern"].replace("$", r"\Z"), value):
        return [f"{at}: {value!r} does not match {schema['pattern']}"]
    if schema.get("format") == "date-time" and not TIME.fullmatch(value):
        return [f"{at}: {value!r} is no time"]
    return []


def object_problems(document, schema, value, at):
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    missing = [name for name in schema.get("required", []) if name not in value]
    found = amount_problems(schema, "Properties", len(value), at)
    found += [f"{at}.{name}: is missing" for name in missing]
    for name, member in value.items():
        if name in properties:
            found += schema_problems(document, properties[name], member, f"{at}.{name}")
        elif others is False:
            found.append(f"{at}.{name}: is not in the document")
        elif isinstance(others, dict):
            found += schema_problems(document, others, member, f"{at}.{name}")
    return found
