/* SPDX-License-Identifier: Apache-2.0 */
/* complete.h: what the files that complete command lines share.
 *
 * The scripts that `etude completion` prints know nothing themselves: they ask the
 * program, as `etude __complete WORD...`, the last word being the one to complete. It
 * answers with lines: a candidate, a tab and what it is; or :files, :folders, :recipes,
 * which the shell completes. A candidate that ends in = or . wants no blank behind
 * it. */
#ifndef ET_CLI_COMPLETE_H
#define ET_CLI_COMPLETE_H

#include "cli/cli.h"

/* A command line being typed. */
struct cli_typed {
    struct cli *c;    /* of no command; its folder has been entered */
    const char *word; /* being typed; a candidate begins with it */
    size_t fixed;     /* bytes of it that belong before what is completed: "--color=" */
    const struct cli_command *command; /* NULL: none is named yet */
    const char **operand; /* before it, the command and key=value left out */
    int n_operands;
    const char **setting; /* the key=value before it */
    int n_settings;
    bool module_mode;
    bool ended;                   /* by --: no word is an option any more */
    const struct et_option *keys; /* what settings set; NULL: a recipe */
};

/* Prints TEXT, with what it is, if it goes on as the word does. */
void cli_candidate(const struct cli_typed *t, const char *text, const char *what);
/* Reads the user's configuration, which allows plugins, unless it has been. */
void cli_complete_config(const struct cli_typed *t);
/* The components of KIND, those of allowed plugins too. */
void cli_complete_components(const struct cli_typed *t, enum et_kind kind);
/* Keys, or after a = the values of one. BARE: without the = behind. */
void cli_complete_keys(const struct cli_typed *t, bool bare);
/* Facts of the run that is the first operand; NULL: none of that name is known here.
 * The caller owns them. */
struct json_t *cli_complete_run(const struct cli_typed *t);
/* Keys that may change while that run is under way. */
void cli_complete_changes(const struct cli_typed *t);

#endif
