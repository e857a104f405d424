/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_text.h: what a text must be before libfyaml is shown it. */
#ifndef ETI_YAML_TEXT_H
#define ETI_YAML_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/recipe/value.h"

/* Is TEXT [N bytes] at most MOST bytes of UTF-8, with no controls but tabs and line
 * ends? libfyaml takes any bytes. What is wrong is added to ERRORS. */
bool eti_yaml_check_bytes(const char *text, size_t n, const struct eti_source *source,
                          size_t most, struct et_diagnostics *errors);
/* Has TEXT nothing that libfyaml looks at again for each byte of it: from the beginning
 * of empty space, and of lines that begin with %, whose 119,000 bytes take 10 s?
 * Likewise. */
bool eti_yaml_check_runs(const char *text, size_t n, const struct eti_source *source,
                         struct et_diagnostics *errors);
/* Where TEXT may be nested too deeply: brackets opened less those closed, wherever they
 * stand. N if nowhere. */
size_t eti_yaml_find_deep(const char *text, size_t n);

#endif
