/* db_verify.h -- does Redis hold what MySQL holds? */
#ifndef TOOL_DB_DB_VERIFY_H
#define TOOL_DB_DB_VERIFY_H

#include "engine/papers/block.h"

struct verify_result {
    int64_t papers, bad_blocks;
};

/* Fetches and unpacks every block and compares the digest of its papers with corpus_block's. Says on
 * standard error which ones differ. */
MUST_CHECK int db_verify(struct task *t, struct sql_pool *sql, struct blocks *blocks,
                         struct verify_result *out);
#endif
