#include "wire/http_server/http_type.h"

#include "tests/tap.h"

static void is(const char *name, const char *type)
{
    is_str(str_of(http_type_of(str_of(name))), str_of(type), "%s", name);
}

int main(void)
{
    is("index.html", "text/html; charset=utf-8");
    is("assets/app-3f2a.js", "text/javascript; charset=utf-8");
    is("STYLE.CSS", "text/css; charset=utf-8");
    is("logo.svg", "image/svg+xml; charset=utf-8");
    is("font.woff2", "font/woff2");
    is("data.json", "application/json");
    is("favicon.ico", "image/vnd.microsoft.icon");
    is("archive.tar.zst", "application/octet-stream");
    is("noending", "application/octet-stream");
    is(".html", "application/octet-stream");
    return tap_done();
}
