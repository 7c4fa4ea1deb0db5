/* sanitize.h -- defines WITH_ASAN under AddressSanitizer; gcc and clang announce it differently. */
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
#endif
#endif
