#include "wire/http_server/http_type.h"

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".webmanifest", "application/manifest+json"},
    {".wasm", "application/wasm"},
    {".svg", "image/svg+xml; charset=utf-8"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".avif", "image/avif"},
    {".ico", "image/vnd.microsoft.icon"},
    {".woff2", "font/woff2"},
    {".woff", "font/woff"},
    {".ttf", "font/ttf"},
    {".otf", "font/otf"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/markdown; charset=utf-8"},
    {".csv", "text/csv; charset=utf-8"},
    {".bib", "application/x-bibtex; charset=utf-8"},
    {".ris", "application/x-research-info-systems; charset=utf-8"},
    {".xml", "application/xml; charset=utf-8"},
    {".yaml", "application/yaml; charset=utf-8"},
    {".yml", "application/yaml; charset=utf-8"},
    {".pdf", "application/pdf"},
    {".zip", "application/zip"},
    {".mp4", "video/mp4"},
    {".webm", "video/webm"},
};

const char *http_type_of(struct str name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct str ending = str_of(types[i].ending);
        if (name.n > ending.n && str_ieq(str_from(name.p + (name.n - ending.n), ending.n), ending))
            return types[i].type;
    }
    return "application/octet-stream";
}
