/* SPDX-License-Identifier: Apache-2.0 */
/* userfile.h: the user's small YAML files: key bindings, themes. */
#ifndef TUI_USERFILE_H
#define TUI_USERFILE_H

#include "core/recipe/value.h"

/* Reads the file PATH as a mapping into ARENA; *OUT is NULL where the file is missing
 * or it is empty (ET_OK). What is wrong goes to ERRORS, and then EINVAL; EIO, ENOMEM.
 * PATH is kept by reference. */
ET_NODISCARD et_status tui_user_file(struct et_ctx *cx, struct eti_arena *arena,
                                     const char *path, struct et_diagnostics *errors,
                                     struct et_value **out);
/* The same of TEXT [N], which PATH names in messages. */
ET_NODISCARD et_status tui_user_text(struct et_ctx *cx, struct eti_arena *arena,
                                     const char *text, size_t n, const char *path,
                                     struct et_diagnostics *errors,
                                     struct et_value **out);

enum { TUI_STAMP = 80 };
/* Text that is another when the file NAME of FOLDER has changed; "" where no such file
 * is. Returns BUF. */
const char *tui_user_stamp(const char *folder, const char *name, char buf[TUI_STAMP]);

#endif
