/* config.h -- every setting of millrace, in one table.
 *
 * Sources, later ones win: the default, config.json, the environment, the command line. A wrong
 * key or value in any of them stops the start with an exact message. Secrets are marked in the
 * table and masked wherever a config is shown.
 *
 * A key is written "mysql.url" here, {"mysql": {"url": …}} in the file and
 * MILLRACE_MYSQL_URL in the environment. An empty variable counts as not set. */
#ifndef ENGINE_SETUP_CONFIG_H
#define ENGINE_SETUP_CONFIG_H

#include <sys/socket.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/str.h"

#define CONFIG_SETTINGS_MAX   128
#define CONFIG_FILE_BYTES_MAX (1024 * 1024)
#define CONFIG_FILE_DEFAULT   DEFAULT_CONFIG_FILE /* by meson_options.txt */
#define CONFIG_NODES_MAX      32
#define PERMISSION_MAX        1000 /* workers of a user at the same time */

/* Jobs of one kind that a user may start; 0: any number. */
struct config_limits {
    int64_t minute, day, month;
};

struct config {
    const char *listen;         /* "127.0.0.1:8080", "[::1]:8080", "unix:/run/millrace/http.sock" */
    const char *listen_mode;    /* rights of a unix socket: "0660" */
    const char *metrics_listen; /* an address, of /metrics; "": there is no other */
    const char *data_dir;       /* private stores, sockets, credentials: "var" */
    const char *web_dir;        /* built pages: "web/dist" */
    const char *user;           /* drop to this user when started as root; "" stays */
    int64_t nodes;              /* 0: one per core */
    int64_t drain_ms;
    enum log_level log_level;
    enum log_format log_format;
    bool behind_tls;
    const char *trusted_proxies;    /* "": forwarded addresses mean nothing */
    int64_t new_user_permission;    /* of a user who registers */
    int64_t new_user_balance_cents; /* likewise */
    int64_t new_user_hourly_max;    /* registrations of one address */
    const char *contact;            /* whom users may ask; "": not said */
    int64_t login_address_max;      /* failed log-ins of one address in five minutes */
    bool local_develop_mode;
    bool persist_user_info; /* false: the private Redis keeps nothing; in local_develop_mode only */

    const char *mysql_url;      /* "": the private mariadbd */
    const char *mysql_password; /* for URLs that carry none */
    int64_t mysql_connections;
    int64_t mysql_buffer_bytes; /* private mariadbd; 0: what the machine allows */
    int64_t sample_papers;      /* made up for an empty private mariadbd; 0: none */
    bool demo_accounts;         /* made at the first start on private stores */
    const char *redis_url;      /* "": the private redis-server */
    const char *redis_password;
    bool allow_unsafe_stores; /* store_check.h finds what they lose; false: refused */
    int64_t redis_max_bytes;  /* private redis; 0: 16 GB or what the machine allows */
    const char *ai_url;       /* "": the simulated AI */
    const char *ai_ca_file, *ai_cert_file, *ai_key_file;
    const char *ai_proxy;               /* wire/http_client/http_proxy.h; "": the environment's */
    const char *ai_params, *ai_headers; /* endpoint.h */
    const char *ai_key_header;
    const char *ai_model;
    int64_t ai_temperature_milli;
    int64_t ai_max_tokens;        /* of an answer */
    int64_t ai_timeout_ms;        /* of one call */
    int64_t ai_jobs_share;        /* percent of the rate, while runs want it, too */
    const char *ai_prompt_file;   /* "": the built-in text */
    const char *ai_embedding_url; /* "": no embedding service */
    const char *ai_embedding_model;
    const char *ai_embedding_params, *ai_embedding_headers;
    const char *ai_embedding_key_header;
    int64_t ai_embedding_dimensions; /* 0: as many as the model has */
    int64_t ai_embedding_batch_max, ai_embedding_batch_tokens;
    const char *vectors_store;     /* "embedded", "qdrant"; of these, the others are Qdrant's */
    const char *vectors_url;       /* without collection; not "" with "qdrant" */
    const char *vectors_api_key;   /* "": none */
    const char *vectors_ca_file;   /* "": the system's */
    int64_t vectors_timeout_ms;    /* of one request */
    const char *alert_webhook_url; /* "": alerts are in the log only */
    const char *alert_ca_file;     /* "": the system's */
    int64_t alert_billing_records; /* alert when more than so many wait for MySQL */
    int64_t alert_standing_ms;     /* and when runs stand still for so long */
    int64_t alert_queue_ms;        /* or a job waits for so long */
    struct config_limits limit_training_plan, limit_nutrition_plan, limit_extraction,
        limit_embedding;
    bool pool_sessions; /* users take items of pools; false: API tokens only */
    int64_t plan_training_cents, plan_nutrition_cents, plan_max_tokens;
    int64_t plan_concurrency, plan_deadline_ms;
    int64_t extract_document_cents, extract_concurrency, extract_lease_s, extract_tries;
    int64_t extract_deadline_ms;
    int64_t extract_part_tokens, extract_max_tokens;
    bool extract_json_schema;
    int64_t embedding_post_price;   /* points */
    int64_t embedding_concurrency;  /* of all nodes together */
    int64_t embedding_papers_calls; /* of a node */
    int64_t embedding_content_chars, embedding_posts_max, embedding_queue_max;
    const char *webhook_allow;                    /* addresses besides public ones; address.h */
    const char *webhook_ca_file;                  /* "": the system's */
    int64_t extract_document_mb, extract_user_mb; /* of a document; of all documents of a user */
    int64_t pool_list_bytes_max;                  /* of Redis, for all lists of pools */
    const char *extract_pdf_command, *extract_pdf_url; /* app/extract/pdf.h; "": pdftotext */
    int64_t extract_pdf_seconds, extract_pdf_memory_mb, extract_pdf_pages;
    int64_t http_connections_max;
    int64_t http_body_bytes_max;

    const char *sources[CONFIG_SETTINGS_MAX]; /* where each setting came from, in table order */
};

/* Reads path (NULL: only defaults and the environment; a missing file is fine when optional
 * is set). env is NULL-terminated like environ and may be NULL. Strings live in a.
 * ERR_INVALID or ERR_IO with the whole message in *why (in a). */
MUST_CHECK int config_load(struct arena *a, const char *path, bool optional, char **env,
                           struct config *out, const char **why);
/* Text of a config file and an environment; what config_load is made of, and what is fuzzed.
 * name is for messages; text.p == NULL: no file. */
MUST_CHECK int config_parse(struct arena *a, const char *name, struct str text, char **env,
                            struct config *out, const char **why);
/* One setting from the command line; source is what messages call it: "--nodes". The key must
 * exist. */
MUST_CHECK int config_set(struct arena *a, struct config *c, const char *key, const char *value,
                          const char *source, const char **why);

/* What is wrong with the settings together, or with the files that they name, in a; NULL: nothing.
 * One sentence that names the setting. Reads the files. */
const char *config_problem(struct arena *a, const struct config *c);

/* One line per setting: key, value (secrets masked), where it came from, what it means. */
void config_show(const struct config *c, struct buf *out);
/* The same table as reference documentation, in Markdown. */
void config_document(struct buf *out);
/* All settings as JSON that config_parse reads back, secrets in clear: for child processes only. */
void config_write(const struct config *c, struct buf *out);

/* Whether the private Redis writes to disk: always, except while debugging (ACC-6). */
static inline bool config_persists(const struct config *c)
{
    return c->persist_user_info || !c->local_develop_mode;
}

/* Vectors are searched by a Qdrant server. */
static inline bool config_uses_qdrant(const struct config *c)
{
    return strcmp(c->vectors_store, "qdrant") == 0;
}

/* A value of "listen" as a socket address. False when it is none. */
bool config_address(struct str listen, struct sockaddr_storage *out, socklen_t *len);
/* The path of a value of "listen" that begins with "unix:"; NULL for all others. */
const char *config_unix_path(const char *listen);
mode_t config_mode(const char *listen_mode); /* of a valid one */
/* url without the password in it. */
const char *config_mask_url(struct arena *a, const char *url);
#endif
