/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c: writes the manual pages, as mdoc(7), from the tables that the program itself
 * works with, and the words in man/prose that no table has.
 *
 *     man/pages PROSE_FOLDER OUTPUT_FOLDER FUNCTIONAL_H DIST_H
 *
 * A page is sections in the order that mdoc(7) gives. What is written by hand comes
 * first in a section, what a table says behind it. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "man/mdoc.h"
#include "man/tables.h"

/* What a page is made of. */
struct page {
    const char *name, *summary;
    int section;
    const struct cli_command *command; /* NULL: none */
    void (*synopsis)(const struct page *p, FILE *out);
    void (*description)(const struct page *p, FILE *out);
    void (*body)(FILE *out); /* sections of its own, after DESCRIPTION */
    const char *header;      /* whose functions it is about; NULL: none */
    void (*diagnostics)(const struct page *p, FILE *out);
};

/* ---- what is in more than one section ---- */

static const char *const standard[] = {
    "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "DIAGNOSTICS", NULL,
};

/* Sections that are written elsewhere, or in their place among the standard ones. */
static bool
is_placed(const char *name, size_t n)
{
    for (const char *const *s = standard; *s; s++)
        if (strlen(*s) == n && memcmp(*s, name, n) == 0)
            return true;
    return n == strlen("DESCRIPTION") && memcmp(name, "DESCRIPTION", n) == 0;
}

/* The prose of a section under its heading, if there is any. */
static bool
print_prose(const struct prose *prose, const char *name, FILE *out)
{
    size_t n;
    const char *text = prose_section(prose, name, &n);
    if (!text)
        return false;
    fprintf(out, ".Sh %s\n%.*s", name, (int)n, text);
    return true;
}

static void
print_date(FILE *out)
{
    static const char *const months[] = {
        "January", "February", "March",     "April",   "May",      "June",
        "July",    "August",   "September", "October", "November", "December"};
    const char *given = getenv("SOURCE_DATE_EPOCH"); /* for builds that repeat */
    time_t t = given && *given ? (time_t)strtoll(given, NULL, 10) : time(NULL);
    struct tm day;
    if (!gmtime_r(&t, &day))
        return;
    fprintf(out, ".Dd %s %d, %d\n", months[day.tm_mon], day.tm_mday,
            day.tm_year + 1900);
}

static void
print_references(const struct page *p, const struct prose *prose, FILE *out)
{
    char name[64];
    struct references r = {0};
    references_of(&r, prose);
    if (p->section != 1 || p->command)
        references_add(&r, "etude", 1);
    for (const struct cli_command *m = cli_commands;
         !p->command && p->section == 1 && m->name; m++) {
        snprintf(name, sizeof name, "etude-%s", m->name);
        if (m->run)
            references_add(&r, name, 1);
    }
    fputs(".Sh SEE ALSO\n", out);
    references_print(&r, out);
}

static void
print_page(const struct page *p, const struct prose *prose, FILE *out)
{
    const char *name;
    size_t n;
    fprintf(out, ".\\\" Written by man/pages.c: change the tables, or man/prose.\n");
    print_date(out);
    fputs(".Dt ", out);
    for (const char *c = p->name; *c; c++)
        putc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
    fprintf(out, " %d\n.Os etude %s\n.Sh NAME\n.Nm %s\n.Nd %s\n", p->section,
            PACKAGE_VERSION, p->name, p->summary);
    if (p->synopsis) {
        fputs(".Sh SYNOPSIS\n", out);
        p->synopsis(p, out);
    }
    if (!print_prose(prose, "DESCRIPTION", out)) {
        fputs(".Sh DESCRIPTION\n", out);
        mdoc_sentence(out, p->summary);
    }
    if (p->description)
        p->description(p, out);
    for (int i = 0; (name = prose_name(prose, i, &n)); i++) {
        char title[64];
        snprintf(title, sizeof title, "%.*s", (int)n, name);
        if (!is_placed(name, n))
            print_prose(prose, title, out);
    }
    if (p->body)
        p->body(out);
    if (p->header)
        functional_body(p->header, out);
    for (const char *const *s = standard; *s; s++) {
        if (strcmp(*s, "DIAGNOSTICS") == 0 && p->diagnostics)
            p->diagnostics(p, out);
        else if (!print_prose(prose, *s, out) && strcmp(*s, "EXIT STATUS") == 0 &&
                 p->command)
            fputs(".Sh EXIT STATUS\n.Xr etude 1\nlists the exit statuses.\n", out);
    }
    print_references(p, prose, out);
}

/* ---- pages of commands ---- */

/* One word of a synopsis without brackets: "RECIPE|RUN", "key=value...", "ls". */
static void
print_operand(FILE *out, const char *word, size_t n)
{
    bool repeats = n > 3 && memcmp(word + n - 3, "...", 3) == 0;
    bool literal = word[0] >= 'a' && word[0] <= 'z' && !memchr(word, '=', n);
    char part[128];
    n -= repeats ? 3 : 0;
    const char *macro = literal ? "Cm" : word[0] == '-' ? "Fl" : "Ar";
    fputs(macro, out);
    for (size_t at = word[0] == '-'; at < n;) {
        size_t length = 0;
        while (at + length < n && word[at + length] != '|' && word[at + length] != '=')
            length++;
        snprintf(part, sizeof part, "%.*s", (int)length, word + at);
        putc(' ', out);
        mdoc_word(out, part);
        at += length;
        if (at < n)
            fprintf(out, " Ns %c Ns %s", word[at++], macro);
    }
    if (repeats)
        fputs(" ...", out);
}

static void
command_synopsis(const struct page *p, FILE *out)
{
    const char *at = p->command->synopsis;
    do {
        fprintf(out, ".Nm \"etude %s\"\n.Op Ar option ...\n", p->command->name);
        for (at += strspn(at, " "); *at && strncmp(at, "| ", 2) != 0;
             at += strspn(at, " ")) {
            size_t n = strcspn(at, " ");
            bool optional = *at == '[' && at[n - 1] == ']';
            fputs(optional ? ".Op " : ".", out);
            print_operand(out, at + optional, n - 2 * optional);
            at += n;
            if (*at == ' ' && at[-(int)n] == '-') { /* an option and its value */
                at++;
                n = strcspn(at, " ");
                putc(' ', out);
                print_operand(out, at, n);
                at += n;
            }
            putc('\n', out);
        }
        at += strspn(at, "| ");
    } while (*at);
}

static void
command_description(const struct page *p, FILE *out)
{
    table_options(out, "command", NULL, p->command->name);
    table_options(out, "recipe", "Changes to the recipe:", p->command->name);
    table_options(out, "launch", "Launch:", p->command->name);
    fputs(".Pp\nOptions that every command takes are in\n.Xr etude 1 .\n", out);
}

/* etude-config(1) also lists what may be set. */
static void
config_description(const struct page *p, FILE *out)
{
    table_settings(out);
    command_description(p, out);
}

/* ---- etude(1) ---- */

static void
program_synopsis(const struct page *p, FILE *out)
{
    (void)p;
    fputs(".Nm\n.Op Ar option ...\n.Ar command\n.Op Ar argument ...\n"
          ".Nm\n.Op Ar option ...\n.Ar recipe.yaml\n.Op Ar key Ns = Ns Ar value ...\n",
          out);
}

static void
program_description(const struct page *p, FILE *out)
{
    (void)p;
    table_commands(out);
    fputs(".Ss Options of every command\n", out);
    table_options(out, "global", NULL, NULL);
}

static void
program_diagnostics(const struct page *p, FILE *out)
{
    (void)p;
    table_errors(out);
}

/* ---- etude-functional(3), etude-dist(3) ---- */

static void
header_synopsis(const struct page *p, FILE *out)
{
    const char *name = strrchr(p->header, '/');
    fprintf(out, ".In etude/%s\n", name ? name + 1 : p->header);
}

/* ---- all pages ---- */

static void
write_page(const struct page *p, const char *prose_folder, const char *folder)
{
    char path[4096];
    struct prose prose;
    snprintf(path, sizeof path, "%s/%s.%d.mdoc", prose_folder, p->name, p->section);
    prose_read(&prose, path);
    snprintf(path, sizeof path, "%s/%s.%d", folder, p->name, p->section);
    FILE *out = fopen(path, "we");
    if (out)
        print_page(p, &prose, out);
    if (!out || ferror(out) || fclose(out) != 0) {
        fprintf(stderr, "pages: cannot write %s: %s\n", path, strerror(errno));
        exit(1);
    }
    prose_release(&prose);
}

int
main(int argc, char **argv)
{
    const struct page pages[] = {
        {
            .name = "etude",
            .section = 1,
            .summary = "train neural networks from a terminal",
            .synopsis = program_synopsis,
            .description = program_description,
            .diagnostics = program_diagnostics,
        },
        {
            .name = "etude-functional",
            .section = 3,
            .summary = "training methods as functions, for loops of one's own",
            .synopsis = header_synopsis,
            .header = argc == 5 ? argv[3] : NULL,
        },
        {
            .name = "etude-dist",
            .section = 3,
            .summary = "a program of your own as one of several ranks",
            .synopsis = header_synopsis,
            .header = argc == 5 ? argv[4] : NULL,
        },
        {
            .name = "etude-recipe",
            .section = 5,
            .summary = "a training run as one YAML file",
            .body = table_recipe,
        },
        {
            .name = "etude-keys",
            .section = 5,
            .summary = "keys and colours of the workbench",
            .body = table_keys,
        },
        {
            .name = "etude-algorithms",
            .section = 7,
            .summary = "training methods and the other parts of a recipe",
            .body = table_components,
        },
        {
            .name = "etude-python",
            .section = 7,
            .summary = "train, look at runs and predict from Python",
        },
        {
            .name = "etude-events",
            .section = 7,
            .summary = "what a run says to those who watch it",
            .body = table_operations,
        },
    };
    if (argc != 5) {
        fprintf(stderr,
                "usage: pages PROSE_FOLDER OUTPUT_FOLDER FUNCTIONAL_H DIST_H\n");
        return CLI_USAGE;
    }
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        write_page(&pages[i], argv[1], argv[2]);
    for (const struct cli_command *m = cli_commands; m->name; m++) {
        char name[64];
        struct page p = {
            .name = name,
            .section = 1,
            .summary = m->summary,
            .command = m,
            .synopsis = command_synopsis,
            .description =
                m->run == cli_config ? config_description : command_description,
        };
        snprintf(name, sizeof name, "etude-%s", m->name);
        if (m->run)
            write_page(&p, argv[1], argv[2]);
    }
    return 0;
}
