/* store.h -- private stores for tests: real servers in a directory of their own, gone with the
 * test. A missing program fails the test; nothing is ever skipped. These calls block. */
#ifndef TESTS_STORE_H
#define TESTS_STORE_H

#include <stdbool.h>
#include <sys/types.h>

struct store_redis {
    char dir[64];
    char url_unix[128];      /* "unix:/…/redis.sock" */
    char url_tcp[64];        /* "redis://127.0.0.1:port" */
    const char *socket_path; /* within url_unix */
    int port;
    pid_t pid; /* 0: not running */
};

int store_free_port(void); /* of TCP, on loopback */

/* Makes the directory, picks a port and starts the server; returns once it answers. extra: further
 * arguments ("--requirepass", "secret", …, NULL) or NULL. Stops the program when it cannot. */
void store_redis_start(struct store_redis *s, const char *const *extra);
/* Starts it again after a kill, in the same place, and does not wait for it. */
void store_redis_spawn(struct store_redis *s, const char *const *extra);
void store_redis_await(const struct store_redis *s); /* until it accepts connections */
void store_redis_kill(struct store_redis *s);        /* as power cuts do; may be started again */
void store_redis_stop(struct store_redis *s);        /* and removes the directory */

/* Sends one line, as typed by hand, on a connection of its own; true when the answer is no
 * error. The first bytes of the answer are put into answer (n > 0: NUL-terminated). */
bool store_redis_say(const struct store_redis *s, const char *line, char *answer, size_t n);
#endif
