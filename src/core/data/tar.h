/* SPDX-License-Identifier: Apache-2.0 */
/* tar.h: what lies where in a tar file. */
#ifndef ETI_DATA_TAR_H
#define ETI_DATA_TAR_H

#include "core/data/file.h"

/* A file that is read member by member. Set F, zero the rest to begin. */
struct eti_tar {
    const struct eti_file *f; /* borrowed */
    int64_t at;               /* of the next header */
};

struct eti_tar_member {
    char name[ETI_PATH_MAX];
    bool is_file;          /* and no folder, link or device */
    int64_t offset, bytes; /* of its contents, which lie within the file */
};

/* The next member, or *GOT false at the end: two blocks of zeros, or the file's own.
 * EFORMAT: no tar file, or a damaged one; ENOTSUP: a compressed one; EIO. WHY lacks the
 * file's name but for EIO. */
ET_NODISCARD et_status eti_tar_next(struct eti_tar *t, struct eti_tar_member *out,
                                    bool *got, struct et_error *why);

#endif
