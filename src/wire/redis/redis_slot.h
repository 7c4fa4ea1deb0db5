/* redis_slot.h -- which of the slots of a Redis Cluster a key is in.
 *
 * CRC16 (XMODEM) of the key's hash tag: what is between the first { and the first } after it, if
 * that is not empty; else of all of the key. */
#ifndef WIRE_REDIS_SLOT_H
#define WIRE_REDIS_SLOT_H

#include "base/str.h"

#define REDIS_SLOTS 16384

struct str redis_hash_tag(struct str key); /* part of key, or all of it */
unsigned redis_slot(struct str key);
#endif
