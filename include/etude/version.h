/* SPDX-License-Identifier: Apache-2.0 */
/* version.h: which Etude a program is compiled with, and which it runs with. */
#ifndef ETUDE_VERSION_H
#define ETUDE_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Of these headers. */
#define ET_VERSION_MAJOR 0
#define ET_VERSION_MINOR 1
#define ET_VERSION_PATCH 0
#define ET_VERSION       "0.1.0"

/* As one number, for "#if ET_VERSION_NUMBER >= 1002003" (1.2.3). */
#define ET_VERSION_NUMBER                                                              \
    (ET_VERSION_MAJOR * 1000000 + ET_VERSION_MINOR * 1000 + ET_VERSION_PATCH)

/* Of the library that the program runs with: "0.1.0", and as one number. */
const char *et_version(void);
int et_version_number(void);

#ifdef __cplusplus
}
#endif
#endif
