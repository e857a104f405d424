/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h: the tables of the program as lists of mdoc(7). */
#ifndef ETUDE_MAN_TABLES_H
#define ETUDE_MAN_TABLES_H

#include <stdio.h>

/* The options of GROUP that COMMAND takes (NULL: any), under TITLE (NULL: none). */
void table_options(FILE *out, const char *group, const char *title,
                   const char *command);
/* The commands, by group. */
void table_commands(FILE *out);
/* Section DIAGNOSTICS: the numbers of errors. */
void table_errors(FILE *out);
/* The user's settings. */
void table_settings(FILE *out);
/* Section KEYS: those of a recipe. */
void table_recipe(FILE *out);
/* Sections of keys, and of the roles that a theme colours. */
void table_keys(FILE *out);
/* Sections of what CMD can ask of a run, the options it sets, and why it is refused. */
void table_operations(FILE *out);
/* A section for each kind of component. */
void table_components(FILE *out);
/* Section FUNCTIONS: those of the header at PATH, with its comments. */
void functional_body(const char *path, FILE *out);

#endif
