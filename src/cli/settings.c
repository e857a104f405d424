/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c: the user's configuration files: where they are, and reading them. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

const char *
cli_user_folder(char *buf, size_t size)
{
    const char *own = getenv("ETUDE_CONFIG_DIR"), *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (own && *own)
        snprintf(buf, size, "%s", own);
    else if (xdg && *xdg)
        snprintf(buf, size, "%s/etude", xdg);
    else
        snprintf(buf, size, "%s/.config/etude", home ? home : "");
    return buf;
}

void
cli_config_paths(const struct cli *c, char path[ETI_LAYERS][PATH_MAX])
{
    char folder[PATH_MAX - 16];
    snprintf(path[ETI_LAYER_SYSTEM], PATH_MAX, "/etc/xdg/etude/config.yaml");
    snprintf(path[ETI_LAYER_PROJECT], PATH_MAX, ".etude/config.yaml");
    if (c->opt.config)
        snprintf(path[ETI_LAYER_USER], PATH_MAX, "%s", c->opt.config);
    else
        snprintf(path[ETI_LAYER_USER], PATH_MAX, "%s/config.yaml",
                 cli_user_folder(folder, sizeof folder));
}

int
cli_config_fail(struct cli *c, et_status status, const struct et_diagnostics *errors)
{
    if (status == ET_ENOMEM)
        return cli_fail_status(c, ETI_STAGE_RECIPE, status);
    cli_fail_list(c, errors, stderr);
    et_error_clear(c->cx);
    return CLI_CONFIG;
}

int
cli_config_load(struct cli *c)
{
    char file[ETI_LAYERS][PATH_MAX];
    const char *path[ETI_LAYERS];
    struct et_diagnostics errors = {0};
    cli_config_paths(c, file);
    for (int i = 0; i < ETI_LAYERS; i++)
        path[i] = file[i];
    if (c->opt.config && access(c->opt.config, F_OK) != 0)
        return cli_fail(c, CLI_E_CONFIG, NULL, "cannot read %s: %s", c->opt.config,
                        strerror(errno));
    et_status status = eti_config_load(c->cx, path, &c->config, &errors);
    return status == ET_OK ? CLI_OK : cli_config_fail(c, status, &errors);
}
