/* sanitize.h -- defines WITH_ASAN under AddressSanitizer; gcc and clang announce it differently.
 * POISON makes any use of n bytes at p an error there, and nothing elsewhere. */
#ifndef BASE_SANITIZE_H
#define BASE_SANITIZE_H

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif

#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif
#endif
