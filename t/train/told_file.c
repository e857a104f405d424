/* SPDX-License-Identifier: Apache-2.0 */
/* told_file.c: see told_file.h. */
#include "config.h"

#include "t/train/told_file.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "t/train/told.h"

enum { LINE = 4096, TEXT = 1 << 16, LINES = 288 };

/* Devices and processors sum in different orders: 1e-6 of a number in a step, which
 * some steps of training make larger. Between instruction sets, those of oneDNN too, no
 * number here differs by a third of this. What is near 0 is the difference of numbers
 * near 1. */
static const double TOLERANCE = 5e-4, NEAR_ZERO = 2e-6;

/* The word at *AT into WORD; *AT goes behind it. False: the line has ended. */
static bool
next_word(const char **at, char word[LINE])
{
    *at += strspn(*at, " ");
    size_t n = strcspn(*at, " ");
    snprintf(word, LINE, "%.*s", (int)n, *at);
    *at += n;
    return n > 0;
}

static bool
agree(const char *got, const char *want)
{
    char *end_a, *end_b;
    double a = strtod(got, &end_a), b = strtod(want, &end_b);
    if (end_a == got || *end_a || end_b == want || *end_b)
        return strcmp(got, want) == 0;
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
        return strcmp(got, want) == 0;
    return fabs(a - b) <= NEAR_ZERO + TOLERANCE * fmax(fabs(a), fabs(b));
}

/* Is GOT, a line, what was WANTed? Else *X and *Y: the words that differ. */
static bool
lines_agree(const char *got, const char *want, char x[LINE], char y[LINE])
{
    bool more, more_wanted;
    do {
        more = next_word(&got, x);
        more_wanted = next_word(&want, y);
        if (more != more_wanted || (more && !agree(x, y)))
            return false;
    } while (more);
    return true;
}

/* ---- what a case tells, and what it shares with the first of its file ---- */

struct lines {
    char *text; /* owned: cut into lines */
    const char *v[LINES];
    int n;
};

static struct lines
cut(char *text)
{
    struct lines l = {.text = text};
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        if (l.n == (int)(sizeof l.v / sizeof *l.v))
            bail("more than %d lines", l.n);
        l.v[l.n++] = at;
    }
    return l;
}

static bool
is_message(const char *line)
{
    return strncmp(line, "says.", 5) == 0;
}

/* The line of L that begins with the word that LINE begins with; NULL: none does. */
static const char *
find_line(const struct lines *l, const char *line)
{
    size_t n = strcspn(line, " ") + 1;
    for (int i = 0; i < l->n; i++)
        if (strncmp(l->v[i], line, n) == 0)
            return l->v[i];
    return NULL;
}

/* Does OWN say that it has no such LINE as the first case has? */
static bool
lacks(const struct lines *own, const char *line)
{
    size_t n = strcspn(line, " ");
    for (int i = 0; i < own->n; i++)
        if (strncmp(own->v[i], "- ", 2) == 0 && strlen(own->v[i]) == n + 2 &&
            strncmp(own->v[i] + 2, line, n) == 0)
            return true;
    return false;
}

/* The test: GOT is OWN, and what the FIRST case tells besides. */
static void
compare(const struct lines *got, const struct lines *own, const struct lines *first,
        const char *name)
{
    char x[LINE], y[LINE];
    const char *fault = NULL, *line = "";
    for (int i = 0; i < got->n && !fault; i++) {
        const char *want = find_line(own, line = got->v[i]);
        if (!want && !is_message(line) && !lacks(own, line))
            want = find_line(first, line);
        snprintf(y, sizeof y, "nothing of it");
        if (!want || !lines_agree(line, want, x, y))
            fault = want ? x : line;
    }
    for (int k = 0; k < 2; k++) {
        const struct lines *from = k == 0 ? own : first;
        for (int i = 0; i < from->n && !fault; i++)
            if (strncmp(line = from->v[i], "- ", 2) != 0 && !find_line(got, line) &&
                (k == 0 || (!is_message(line) && !lacks(own, line)))) {
                fault = "nothing of it";
                snprintf(y, sizeof y, "%s", line);
            }
    }
    ok(!fault, "%s", name);
    if (fault)
        diag("%.*s: %s, not %s", (int)strcspn(line, " "), line, fault, y);
}

/* What of GOT the FIRST case does not tell, as a file has it. */
static void
write_own(const struct lines *got, const struct lines *first, FILE *out)
{
    for (int i = 0; i < got->n; i++) {
        const char *same = is_message(got->v[i]) ? NULL : find_line(first, got->v[i]);
        if (!same || strcmp(same, got->v[i]) != 0)
            fprintf(out, "%s\n", got->v[i]);
    }
    for (int i = 0; i < first->n; i++)
        if (!is_message(first->v[i]) && !find_line(got, first->v[i]))
            fprintf(out, "- %.*s\n", (int)strcspn(first->v[i], " "), first->v[i]);
}

/* ---- the files ---- */

/* The line at *AT, without its end; *AT goes behind it. False: the text has ended. */
static bool
next_line(const char **at, char line[LINE])
{
    if (!**at)
        return false;
    size_t n = strcspn(*at, "\n");
    if (n >= LINE)
        bail("a line is longer than %d bytes", LINE);
    memcpy(line, *at, n);
    line[n] = '\0';
    *at += n + ((*at)[n] == '\n');
    return true;
}

static void
append(char text[TEXT], const char *line)
{
    size_t n = strlen(text);
    if (snprintf(text + n, TEXT - n, "%s\n", line) >= (int)(TEXT - n))
        bail("a case is longer than %d bytes", TEXT);
}

/* Does OWN, lines of a recipe, have the key that LINE begins with? */
static bool
has_key(const char *own, const char *line)
{
    char other[LINE];
    size_t n = strcspn(line, ":") + 1;
    while (next_line(&own, other))
        if (strncmp(other, line, n) == 0)
            return true;
    return false;
}

/* LINE with the folder of the sources in the place of each $SRC. */
static void
append_filled(char text[TEXT], const char *line, const char *root)
{
    char filled[LINE] = "";
    const char *at = line, *next;
    size_t n;
    for (; (next = strstr(at, "$SRC")); at = next + 4) {
        n = strlen(filled);
        snprintf(filled + n, LINE - n, "%.*s%s", (int)(next - at), at, root);
    }
    n = strlen(filled);
    snprintf(filled + n, LINE - n, "%s", at);
    append(text, filled);
}

/* The recipe of a case: what of COMMON it does not have itself, and its OWN lines. */
static void
make_recipe(const char *common, const char *own, const char *root, char recipe[TEXT])
{
    char line[LINE];
    *recipe = '\0';
    while (next_line(&common, line))
        if (*line != '#' && !has_key(own, line))
            append_filled(recipe, line, root);
    while (next_line(&own, line))
        append_filled(recipe, line, root);
}

/* What FILE's writer tells of a case, less what the FIRST tells, for free(). */
static char *
written_anew(const struct told_file *file, const char *recipe,
             const struct lines *first)
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    struct lines got = cut(file->write(file, recipe));
    if (!f)
        bail("no memory");
    write_own(&got, first, f);
    fclose(f);
    free(got.text);
    return text;
}

/* How many batches TEXT, which a run told, is about. */
static int
n_batches(const char *text)
{
    int n = 0, first, last;
    for (const char *at = text; (at = strstr(at, " batch@")) && at < strchr(text, '\n');
         at++) {
        int found = sscanf(at, " batch@%d-%d", &first, &last);
        n += found == 2 ? last - first + 1 : found == 1;
    }
    return n;
}

/* The first line at TEXT or behind it that has nothing to do with a clock. */
static const char *
fixed_line(const char *text)
{
    while (*text && told_varies(text))
        text += strcspn(text, "\n") + 1;
    return text;
}

/* The run is told as WHOLE by one that is stopped and resumed, too: each case after
 * another of its batches, every third after the last. */
static void
resume(const struct told_file *file, const char *name, const char *recipe,
       const char *whole)
{
    static int nth;
    int n = n_batches(whole), at = nth++, stop;
    if (n == 0)
        return;
    stop = at % 3 == 0 ? n : 1 + at / 3 % n;
    char *got = file->tell_in_two(file, recipe, stop);
    if (!got)
        return;
    const char *a = fixed_line(got), *b = fixed_line(whole);
    for (size_t size; *a && *b; a = fixed_line(a + size), b = fixed_line(b + size)) {
        size = strcspn(a, "\n") + 1;
        if (strncmp(a, b, size) != 0)
            break;
    }
    ok(!*a && !*b, "%s, resumed after batch %d", name, stop);
    if (*a || *b)
        diag("%.*s\n  instead of\n%.*s", (int)strcspn(a, "\n"), a,
             (int)strcspn(b, "\n"), b);
    free(got);
}

/* A case: does it tell what is WANTed, or written ANEW? FIRST: what the first case of
 * the file tells; filled where that is this one. */
static void
run_case(const struct told_file *file, const char *title, const char *recipe,
         const char *want, struct lines *first, FILE *anew)
{
    char name[2 * LINE];
    snprintf(name, sizeof name, "%s on %s: %s", file->name, file->where, title);
    char *text = anew ? written_anew(file, recipe, first) : strdup(want);
    if (anew)
        fprintf(anew, "%s", text);
    char *says = file->tell(file, recipe);
    if (!says)
        bail("%s: nothing is told", name);
    if (file->tell_in_two)
        resume(file, name, recipe, says);
    struct lines own = cut(text), got = cut(says);
    compare(&got, &own, first, name);
    free(got.text);
    if (!first->text)
        *first = own;
    else
        free(own.text);
}

static char *
read_text(const char *path)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = fopen(path, "r");
    if (!f || getdelim(&text, &n, '\0', f) < 0)
        bail("cannot read %s", path);
    fclose(f);
    return text;
}

static const char *
source_folder(void)
{
    const char *root = getenv("ET_SRCDIR");
    return root ? root : ".";
}

void
told_file_run(const struct told_file *file)
{
    const char *root = source_folder();
    static char common[TEXT], own[TEXT], want[TEXT], recipe[TEXT];
    char line[LINE], title[LINE] = "", path[LINE];
    snprintf(path, sizeof path, "%s/%s/%s", root, file->folder, file->name);
    char *text = read_text(path), *written;
    const char *at = text, *before = text;
    size_t n;
    FILE *anew = open_memstream(&written, &n);
    bool updates = getenv("ETUDE_UPDATE") != NULL && file->write;
    struct lines first = {0};
    if (!anew)
        bail("no memory");
    *common = '\0';
    while (strncmp(at, "== ", 3) != 0 && next_line(&at, line)) {
        append(common, line);
        fprintf(anew, "%s\n", line);
    }
    while (next_line(&at, line)) {
        snprintf(title, sizeof title, "%s", line + 3);
        fprintf(anew, "%s\n", line);
        *own = *want = '\0';
        while (strncmp(at, "--\n", 3) != 0 && next_line(&at, line))
            append(own, line);
        fprintf(anew, "%s--\n", own);
        next_line(&at, line);
        for (before = at; strncmp(at, "== ", 3) != 0 && next_line(&at, line);)
            append(want, line);
        make_recipe(common, own, root, recipe);
        if (!file->only || !first.text || strcmp(file->only, title) == 0)
            run_case(file, title, recipe, want, &first, updates ? anew : NULL);
        else
            fprintf(anew, "%.*s", (int)(at - before), before);
    }
    fclose(anew);
    FILE *f = updates ? fopen(path, "w") : NULL;
    if (updates && (!f || fputs(written, f) < 0 || fclose(f) != 0))
        bail("cannot write %s", path);
    free(written);
    free(first.text);
    free(text);
}

static int
is_text(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');
    return dot && strcmp(dot, ".txt") == 0;
}

void
told_files_run(struct told_file *file, int argc, char **argv)
{
    char folder[LINE];
    struct dirent **entry;
    snprintf(folder, sizeof folder, "%s/%s", source_folder(), file->folder);
    int n = scandir(folder, &entry, is_text, alphasort);
    if (n < 1)
        bail("no files in %s", folder);
    file->only = argc > 2 ? argv[2] : NULL;
    for (int i = 0; i < n; i++) {
        file->name = entry[i]->d_name;
        if (argc < 2 || strcmp(argv[1], file->name) == 0)
            told_file_run(file);
        free(entry[i]);
    }
    free(entry);
    file->name = NULL;
}
