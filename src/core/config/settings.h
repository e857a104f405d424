/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h: the user's configuration: what holds for all runs of a person or a
 * machine.
 *
 * Three files, each above the one before: the system's, the user's, the project's (that
 * of the folder one works in). A project's file comes with the project, as recipes do:
 * what gives recipes rights (env, plugins) only the other two may say, and only where
 * nobody else can write to them. */
#ifndef ETI_SETTINGS_H
#define ETI_SETTINGS_H

#include "etude/diagnostic.h"
#include "etude/option.h"

enum eti_color { ETI_COLOR_AUTO, ETI_COLOR_ALWAYS, ETI_COLOR_NEVER };
enum eti_show {
    ETI_SHOW_AUTO,
    ETI_SHOW_TUI,
    ETI_SHOW_BAR,
    ETI_SHOW_PLAIN,
    ETI_SHOW_JSON,
    ETI_SHOW_NONE,
};
enum eti_motion { ETI_MOTION_ON, ETI_MOTION_OFF };
enum eti_plot { ETI_PLOT_AUTO, ETI_PLOT_BRAILLE, ETI_PLOT_BLOCK, ETI_PLOT_ASCII };
/* Their words, NULL-terminated; options of the command line have the same. */
extern const char *const eti_color_names[];
extern const char *const eti_show_names[];

/* The settings, in the order of the table. */
struct eti_config_ui {
    int plot; /* enum eti_plot */
    bool mouse;
    int motion;  /* enum eti_motion */
    char *theme; /* auto, a shipped one, or that of themes/NAME.yaml */
};
/* What an hour of computing costs, for comparisons. */
enum eti_price_of { ETI_PRICE_OF_RANK, ETI_PRICE_OF_MACHINE, ETI_PRICE_OF_RUN };
struct eti_config_price {
    double hour; /* NaN: not said */
    int of;      /* enum eti_price_of */
    char *currency;
};
struct eti_settings {
    int color;    /* enum eti_color */
    int progress; /* enum eti_show */
    struct eti_config_ui ui;
    struct eti_config_price price;
    struct et_texts env; /* names that ${env:NAME} may use; v ends with a NULL */
    const struct et_value *plugins; /* as written: read ETI_CONFIG.PLUGIN */
};
extern const struct et_option eti_config_table[];
enum { ETI_OPT_TRUST = 1 << 16 }; /* flag of a row: gives recipes a right */

/* One line of the allow-list. */
struct eti_config_plugin {
    const char *name;
    char *path;                   /* absolute */
    char *sha256;                 /* 64 digits, lower case; NULL with DEVELOP alone */
    bool develop;                 /* its bytes may change */
    const struct et_value *value; /* where it was written */
};

struct eti_config {
    struct eti_settings set;
    struct eti_config_plugin *plugin;
    int n_plugins;
};

enum eti_layer { ETI_LAYER_SYSTEM, ETI_LAYER_USER, ETI_LAYER_PROJECT, ETI_LAYERS };
const char *eti_layer_name(enum eti_layer layer); /* "system" */

/* PATH [ETI_LAYERS]: the files; NULL or one that is not there: nothing is said. What is
 * wrong goes to ERRORS, all of it; then EINVAL, or EIO for a file that cannot be
 * read. */
ET_NODISCARD et_status eti_config_load(struct et_ctx *cx, const char *const *path,
                                       struct eti_config **out,
                                       struct et_diagnostics *errors);
void eti_config_free(struct eti_config **config);

/* The setting at PATH ("ui.plot") as YAML on one line, and where it was set; *TEXT is
 * NULL for one that is not known (ET_OK). ORIGIN [SIZE]. Caller frees *TEXT with
 * et_free. */
ET_NODISCARD et_status eti_config_get(const struct eti_config *config, const char *path,
                                      char **text, char *origin, size_t size);
/* Calls FN for every setting in order, its path first. */
void eti_config_each(const struct eti_config *config,
                     void (*fn)(void *data, const char *path,
                                const struct et_option *row),
                     void *data);
/* Are these bytes a configuration? As eti_config_load, for one layer of that NAME. */
ET_NODISCARD et_status eti_config_check(struct et_ctx *cx, const char *text,
                                        size_t size, const char *name,
                                        enum eti_layer layer,
                                        struct et_diagnostics *errors);

#endif
