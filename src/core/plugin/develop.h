/* SPDX-License-Identifier: Apache-2.0 */
/* develop.h: plugins under development. */
#ifndef ETI_PLUGIN_DEVELOP_H
#define ETI_PLUGIN_DEVELOP_H

#include "etude/plugin.h"

/* Warns of the plugin under development that has COMPONENT, as et_plugins_load does,
 * for a caller that muted it; NULL: of each that is under development. */
void eti_plugins_warn(const struct et_plugins *plugins,
                      const struct et_component *component);

#endif
