/* scripts.h -- the scripts of engine/lua: steps that Redis does as one. Each says at its top what
 * its keys and arguments are and what it returns. All are safe to repeat. */
#ifndef ENGINE_SCRIPTS_H
#define ENGINE_SCRIPTS_H

#include "wire/redis.h"

extern const struct redis_script script_attempts_forgive;
extern const struct redis_script script_attempts_sweep;
extern const struct redis_script script_attempts_take;
extern const struct redis_script script_audit_look;
extern const struct redis_script script_block_commit;
extern const struct redis_script script_cache_changed;
extern const struct redis_script script_cache_fill;
extern const struct redis_script script_catalog_replace;
extern const struct redis_script script_charge;
extern const struct redis_script script_chunk_put;
extern const struct redis_script script_download_again;
extern const struct redis_script script_download_begin;
extern const struct redis_script script_download_create;
extern const struct redis_script script_download_finish;
extern const struct redis_script script_download_keep;
extern const struct redis_script script_download_push;
extern const struct redis_script script_download_save;
extern const struct redis_script script_download_take;
extern const struct redis_script script_due_drop;
extern const struct redis_script script_keyring_lease;
extern const struct redis_script script_keyring_load;
extern const struct redis_script script_keyring_rest;
extern const struct redis_script script_ledger_apply;
extern const struct redis_script script_ledger_deduct;
extern const struct redis_script script_ledger_let_go;
extern const struct redis_script script_ledger_load;
extern const struct redis_script script_ledger_restore;
extern const struct redis_script script_ledger_trim;
extern const struct redis_script script_lock_drop;
extern const struct redis_script script_lock_keep;
extern const struct redis_script script_sweep_user;
extern const struct redis_script script_session_end;
extern const struct redis_script script_session_fill;
extern const struct redis_script script_session_forget;
extern const struct redis_script script_session_renew;
extern const struct redis_script script_node_beat;
extern const struct redis_script script_run_admit;
extern const struct redis_script script_run_line_up;
extern const struct redis_script script_run_expire;
extern const struct redis_script script_run_recall;
extern const struct redis_script script_run_tell;
extern const struct redis_script script_unit_finish;
extern const struct redis_script script_unit_give_back;
extern const struct redis_script script_unit_take;
extern const struct redis_script script_units_put;
extern const struct redis_script script_workers_claim;
#endif
