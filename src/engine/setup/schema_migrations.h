/* schema_migrations.h -- the files of schema/ as they were when this program was built. */
#ifndef ENGINE_SETUP_SCHEMA_MIGRATIONS_H
#define ENGINE_SETUP_SCHEMA_MIGRATIONS_H

#include <stddef.h>
#include <stdint.h>

struct schema_migration {
    int64_t number; /* from 1, without gaps */
    const char *name;
    const char *checksum; /* SHA-256 of the file, in hex */
    const char *text;     /* SQL for schema_split, with @TEXT@ and @EXACT@ in it */
};

extern const struct schema_migration schema_migrations[];
extern const size_t schema_migration_count;
#endif
