#include "engine/setup/stores.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/file.h"

#define SECRET_BYTES_MAX 256

const char *stores_mysql_url(struct arena *a, const char *data_dir)
{
    return arena_printf(a, "unix:%s/run/mariadb.sock?user=%s&database=%s", data_dir,
                        STORES_MYSQL_USER, STORES_MYSQL_DATABASE);
}

static int read_secret(struct arena *a, const char *data_dir, const char *store, const char **out,
                       const char **why)
{
    const char *path = arena_printf(a, "%s/secret/%s", data_dir, store);
    struct str text;
    int err = file_read(a, path, SECRET_BYTES_MAX, &text);
    if (err || text.n == 0) {
        int number = err == ERR_IO ? errno : 0;
        *why = arena_printf(a, "%s: %s; %s", path,
                            number ? strerror(number)
                            : err  ? "is no password"
                                   : "is empty",
                            number == EACCES ? "run this as root, or as the user of the server"
                                             : "has \"millrace serve\" been started here?");
        return number == EACCES ? ERR_FORBIDDEN : ERR_NOT_FOUND;
    }
    *out = str_z(a, str_cut(&text, '\n'));
    return 0;
}

int stores_find(struct arena *a, const struct config *c, struct stores *out, const char **why)
{
    struct stores s = {
        .redis_url = c->redis_url,
        .redis_password = *c->redis_password ? c->redis_password : NULL,
        .mysql_url = c->mysql_url,
        .mysql_password = *c->mysql_password ? c->mysql_password : NULL,
    };
    char dir[PATH_MAX];
    int err = 0;
    if ((!*c->redis_url || !*c->mysql_url) && !realpath(c->data_dir, dir)) {
        err = errno == EACCES ? ERR_FORBIDDEN : ERR_NOT_FOUND;
        *why = arena_printf(a, "data_dir %s: %s", c->data_dir, strerror(errno));
        return err;
    }
    if (!*c->redis_url) {
        s.redis_url = arena_printf(a, "unix:%s/run/redis.sock", dir);
        err = read_secret(a, dir, "redis", &s.redis_password, why);
    }
    if (!err && !*c->mysql_url) {
        s.mysql_url = stores_mysql_url(a, dir);
        err = read_secret(a, dir, "mariadb", &s.mysql_password, why);
    }
    if (!err)
        *out = s;
    return err;
}
