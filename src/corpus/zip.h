/* zip.h -- writes a ZIP file entry by entry, compressed, into a buffer that may be drained at any
 * time. Sizes and checksums stand behind each entry, so nothing must be known in advance. Without
 * ZIP64: the file and each of its entries stay below 4 GB. For xlsx.c. */
#ifndef CORPUS_ZIP_H
#define CORPUS_ZIP_H

#include "base/str.h"

struct buf;
struct zip;

#define ZIP_BYTES_MAX UINT32_MAX

struct zip *zip_new(struct buf *out); /* borrows out until zip_end or zip_free */
void zip_free(struct zip *z);         /* NULL is fine */

/* Whether so many bytes can still be added, and after them ZIP_SLACK more for what ends the file,
 * so that it stays below most, and below 4 GB in any case. */
#define ZIP_SLACK (1 << 20)
bool zip_fits(const struct zip *z, uint64_t bytes, uint64_t most);

void zip_begin(struct zip *z, struct str name); /* at most 65,535 entries */
void zip_add(struct zip *z, struct str bytes);
void zip_end_entry(struct zip *z);
void zip_end(struct zip *z); /* the directory; nothing may follow */
#endif
