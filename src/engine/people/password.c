#include "engine/people/password.h"

#include <crypt.h>
#include <stdlib.h>

#include "loop/offload.h"
#include "loop/sync.h"

#define SALT_BYTES 16
#define HASH_BYTES 60 /* "$2b$12$", 22 characters of salt, 31 of the digest */

/* Takes the place of hashes that are none, so that the answer takes as long. */
static const struct str unusable = {"$2b$12$abcdefghijklmnopqrstuu5LXoJwYWuNr0F.uDCSMV6a6QvXZyBqK",
                                    HASH_BYTES};

enum lane {
    LANE_OLD, /* the account exists */
    LANE_NEW, /* a registration */
    LANES,
};
static const size_t waiting_max[LANES] = {PASSWORD_WAITING_MAX, PASSWORD_NEW_WAITING_MAX};

struct passwords {
    struct sem turn; /* one at a time, of both lanes */
    size_t waiting[LANES];
    uint64_t hashed;
};

struct passwords *passwords_new(void)
{
    struct passwords *p = check_memory(calloc(1, sizeof *p));
    sem_init(&p->turn, 1);
    return p;
}

void passwords_free(struct passwords *p)
{
    check(p->waiting[LANE_OLD] == 0 && p->waiting[LANE_NEW] == 0);
    free(p);
}

uint64_t passwords_hashed(const struct passwords *p)
{
    return p->hashed;
}

/* What a helper thread gets. Its memory is no task's, because it is wiped: 32 KB of bcrypt's
 * state. */
struct job {
    char password[PASSWORD_BYTES_MAX + 1];
    char setting[HASH_BYTES + 1];
    char hash[HASH_BYTES + 1]; /* "": the library refused */
    struct crypt_data data;
};

static struct job *job_new(struct str password, struct str setting)
{
    struct job *j = check_memory(calloc(1, sizeof *j));
    check(setting.n < sizeof j->setting);
    if (password.n)
        memcpy(j->password, password.p,
               password.n < PASSWORD_BYTES_MAX ? password.n : PASSWORD_BYTES_MAX);
    memcpy(j->setting, setting.p, setting.n);
    return j;
}

static void job_free(struct job *j)
{
    explicit_bzero(j, sizeof *j);
    free(j);
}

static void run_bcrypt(void *arg)
{
    struct job *j = arg;
    const char *got = crypt_rn(j->password, j->setting, &j->data, sizeof j->data);
    if (got && strlen(got) == HASH_BYTES)
        memcpy(j->hash, got, HASH_BYTES);
}

static int take_turn(struct task *t, struct passwords *p, enum lane lane)
{
    if (sem_try(&p->turn))
        return 0;
    if (p->waiting[lane] == waiting_max[lane])
        return task_fail(t, ERR_BUSY, "%zu %s wait to be looked at; try again later",
                         waiting_max[lane], lane == LANE_NEW ? "registrations" : "passwords");
    p->waiting[lane]++;
    int err = sem_get(t, &p->turn);
    p->waiting[lane]--;
    return err;
}

static int run(struct task *t, struct passwords *p, enum lane lane, struct job *j)
{
    int err = take_turn(t, p, lane);
    if (err)
        return err;
    err = offload(t, run_bcrypt, j);
    sem_put(&p->turn);
    if (!err)
        p->hashed++;
    return err;
}

static bool has_nul(struct str s)
{
    return s.n && memchr(s.p, '\0', s.n);
}

static int make_hash(struct task *t, struct passwords *p, enum lane lane, struct str password,
                     struct str *hash)
{
    if (has_nul(password))
        return task_fail(t, ERR_INVALID, "the password contains a NUL byte");
    if (password.n > PASSWORD_BYTES_MAX)
        return task_fail(t, ERR_INVALID, "the password is longer than %d bytes",
                         PASSWORD_BYTES_MAX);
    char salt[SALT_BYTES], setting[CRYPT_GENSALT_OUTPUT_SIZE];
    loop_secret(task_loop(t), salt, sizeof salt);
    check(crypt_gensalt_rn("$2b$", PASSWORD_COST, salt, sizeof salt, setting, sizeof setting));
    struct job *j = job_new(password, str_of(setting));
    int err = run(t, p, lane, j);
    if (!err && !*j->hash)
        err = task_fail(t, ERR_INTERNAL, "the library does not know bcrypt");
    if (!err)
        *hash = str_dup(task_arena(t), str_of(j->hash));
    job_free(j);
    return err;
}

int password_hash(struct task *t, struct passwords *p, struct str password, struct str *hash)
{
    return make_hash(t, p, LANE_OLD, password, hash);
}

int password_hash_new(struct task *t, struct passwords *p, struct str password, struct str *hash)
{
    return make_hash(t, p, LANE_NEW, password, hash);
}

/* "$2b$12$" and 53 characters; 2x is not among them, it is for hashes that were made wrongly. */
static bool is_hash(struct str s)
{
    static const char alphabet[] =
        "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if (s.n != HASH_BYTES || has_nul(s) || memcmp(s.p, "$2", 2) != 0 || !strchr("aby", s.p[2]) ||
        s.p[3] != '$' || s.p[6] != '$')
        return false;
    int64_t cost;
    if (!str_to_i64(str_from(s.p + 4, 2), &cost) || cost < 4 || cost > PASSWORD_COST_MAX)
        return false;
    for (size_t i = 7; i < HASH_BYTES; i++)
        if (!strchr(alphabet, s.p[i]))
            return false;
    return true;
}

int password_verify(struct task *t, struct passwords *p, struct str password, struct str hash,
                    bool *right)
{
    bool possible =
        hash.p && is_hash(hash) && !has_nul(password) && password.n <= PASSWORD_BYTES_MAX;
    struct job *j = job_new(password, possible ? hash : unusable);
    int err = run(t, p, LANE_OLD, j);
    if (!err)
        *right = possible && str_eq_secret(str_of(j->hash), hash);
    job_free(j);
    return err;
}
