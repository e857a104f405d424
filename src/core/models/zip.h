/* SPDX-License-Identifier: Apache-2.0 */
/* zip.h: where the members of a zip archive lie, of archives whose members are stored
 * as they are, such as torch.save writes. */
#ifndef ETI_MODELS_ZIP_H
#define ETI_MODELS_ZIP_H

#include "core/data/file.h"

struct eti_zip_member {
    const char *name;  /* the archive's */
    int64_t at, bytes; /* of the file */
    uint32_t crc;      /* CRC-32 of those bytes, by the directory */
};

struct eti_zip {
    struct et_ctx *cx;
    struct eti_zip_member *v; /* owned; sorted by name, which comes once */
    int64_t n;
    char *names; /* owned */
};

/* Reads the directory of F and holds it against each member's own header. EFORMAT: it
 * is no zip archive, lies, or has a member that is compressed or encrypted; EIO. On
 * failure *OUT is empty; release in any case. */
ET_NODISCARD et_status eti_zip_read(struct et_ctx *cx, const struct eti_file *f,
                                    struct eti_zip *out);
void eti_zip_release(struct eti_zip *z);
/* The member called NAME, or NULL. */
const struct eti_zip_member *eti_zip_find(const struct eti_zip *z, const char *name);
/* The bytes of M, at most LIMIT, which are those its CRC-32 is of; ends with et_free.
 */
ET_NODISCARD et_status eti_zip_load(const struct eti_zip *z, const struct eti_file *f,
                                    const struct eti_zip_member *m, int64_t limit,
                                    struct eti_bytes *out);

#endif
