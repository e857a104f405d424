/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c: all that short runs tell, number by number. A file of t/train/told:
 *
 *     # what it is about
 *     max_duration: 4ba
 *     optimizer: {name: sgd}
 *     == adam: the largest second moment is kept
 *     optimizer: {name: adam, amsgrad: true}
 *     --
 *     records batch@1-4
 *     loss/train/total 2.3026 2.2981 2.2876 2.2743
 *     weights 120 3.4142 25.71
 *
 * The lines before the first "==" are a recipe, a key on each. A case is that recipe
 * with the lines behind "==" in place of those of the same key; behind "--" stands what
 * its run tells: which records, by kind and batch; of each metric its values in those
 * records, "-" where one lacks it; messages; how many weights there are in the end,
 * their norm, and the sum of their magnitudes times 1 to 7 by turns. What a clock has
 * to do with is "*"; what a device tells of its memory is left out. Cases behind the
 * first have only lines that differ from its, and "- NAME" for each that they lack.
 *
 * Whether the numbers are right is told elsewhere, by formulas and PyTorch's numbers:
 * this tells whether any of them changes. ETUDE_UPDATE=1 writes them anew, as the
 * device "ref" has them, for a person to look at; they are compared with those of
 * "cpu", or the device that ETUDE_DEVICE names. Where the simulated GPU was built,
 * whose host is two batches ahead of it, files that take little of its time are run
 * there, too. */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/device.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"

enum { LINE = 4096, TEXT = 1 << 16, METRICS = 160, RECORDS = 64 };

/* Devices and processors sum in different orders: 1e-6 of a number in a step, which
 * some steps of training make larger. Between instruction sets, those of oneDNN too, no
 * number here differs by a third of this. What is near 0 is the difference of numbers
 * near 1. */
static const double TOLERANCE = 5e-4, NEAR_ZERO = 2e-6;

static struct et_ctx *cx;

/* ---- what a run tells ---- */

struct metric {
    char name[ET_METRIC_NAME];
    uint64_t kinds; /* of records that had it */
    double value[RECORDS];
    bool has[RECORDS];
};

struct stream {
    struct et_sink sink; /* first */
    struct {
        enum et_record_kind kind;
        int64_t ba;
        char text[64];
    } record[RECORDS];
    int n_records, n_metrics, n_messages;
    struct metric metric[METRICS];
    char messages[TEXT];
};

static struct metric *
find_metric(struct stream *s, const char *name)
{
    for (int i = 0; i < s->n_metrics; i++)
        if (strcmp(s->metric[i].name, name) == 0)
            return &s->metric[i];
    if (s->n_metrics == METRICS)
        bail("more than %d metrics", METRICS);
    struct metric *m = &s->metric[s->n_metrics++];
    snprintf(m->name, sizeof m->name, "%s", name);
    return m;
}

static void
keep(struct et_sink *sink, const struct et_record *r)
{
    struct stream *s = (struct stream *)sink;
    if (r->kind == ET_RECORD_LOG) {
        size_t n = strlen(s->messages);
        snprintf(s->messages + n, sizeof s->messages - n, "says.%d@%lld %s\n",
                 ++s->n_messages, (long long)r->ba, r->text);
        return;
    }
    if (s->n_records == RECORDS)
        bail("more than %d records", RECORDS);
    int at = s->n_records++;
    s->record[at].kind = r->kind;
    s->record[at].ba = r->ba;
    snprintf(s->record[at].text, sizeof s->record[at].text, "%s",
             r->text ? r->text : "");
    for (int i = 0; i < r->n; i++) {
        if (strncmp(r->entry[i].name, "memory/", 7) == 0)
            continue; /* each device has its own */
        struct metric *m = find_metric(s, r->entry[i].name);
        m->kinds |= UINT64_C(1) << r->kind;
        m->value[at] = r->entry[i].value;
        m->has[at] = true;
    }
}

/* ---- as text ---- */

static bool
varies(const char *name)
{
    static const char *const begin[] = {"throughput/",  "time/train",  "time/val",
                                        "time/total",   "wall_clock/", "time/remaining",
                                        "system/",      "cpu/",        "gpu/",
                                        "time/seconds", "disk/"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

static void
print_records(const struct stream *s, FILE *out)
{
    fputs("records", out);
    for (int i = 0, n; i < s->n_records; i += n) {
        for (n = 1; i + n < s->n_records &&
                    s->record[i + n].kind == s->record[i].kind &&
                    s->record[i + n].ba == s->record[i].ba + n;)
            n++;
        fprintf(out, " %s@%lld", et_record_name(s->record[i].kind),
                (long long)s->record[i].ba);
        if (n > 1)
            fprintf(out, "-%lld", (long long)s->record[i + n - 1].ba);
        if (s->record[i].text[0])
            fprintf(out, ":%s", s->record[i].text);
    }
    fputc('\n', out);
}

static void
print_metric(const struct stream *s, const struct metric *m, FILE *out)
{
    fputs(m->name, out);
    for (int i = 0; i < s->n_records; i++)
        if (m->kinds >> s->record[i].kind & 1) {
            if (!m->has[i])
                fputs(" -", out);
            else if (varies(m->name))
                fputs(" *", out);
            else if (isnan(m->value[i])) /* whose sign is nobody's choice */
                fputs(" nan", out);
            else
                fprintf(out, " %.6g", m->value[i]);
        }
    fputc('\n', out);
}

static void
print_weights(struct recipe_run *r, FILE *out)
{
    size_t bytes;
    float *w = recipe_params(r, &bytes);
    double squares = 0, weighted = 0;
    for (size_t i = 0; i < bytes / sizeof *w; i++) {
        squares += (double)w[i] * w[i];
        weighted += fabs((double)w[i]) * (double)(i % 7 + 1);
    }
    fprintf(out, "weights %zu %.6g %.6g\n", bytes / sizeof *w, sqrt(squares), weighted);
    free(w);
}

/* What the run of RECIPE tells on DEVICE; for free(). */
static char *
told(const char *recipe, const char *device)
{
    static struct stream s;
    struct recipe_run r;
    struct recipe_choice choice = {.device = device, .workers = -1};
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        bail("no memory");
    memset(&s, 0, sizeof s);
    s.sink.write = keep;
    recipe_prepare(&r, cx, recipe, &choice);
    r.parts.config.sink = &s.sink;
    recipe_start(&r);
    recipe_fit(&r);
    print_records(&s, out);
    for (int i = 0; i < s.n_metrics; i++)
        print_metric(&s, &s.metric[i], out);
    fputs(s.messages, out);
    print_weights(&r, out);
    fclose(out);
    recipe_close(&r);
    return text;
}

/* ---- compared ---- */

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
    const char *v[METRICS + 2 * RECORDS];
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

/* What a case tells on "ref", less what the FIRST tells, for free(). */
static char *
written_anew(const char *recipe, const struct lines *first)
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    struct lines got = cut(told(recipe, "ref"));
    if (!f)
        bail("no memory");
    write_own(&got, first, f);
    fclose(f);
    free(got.text);
    return text;
}

/* A case: does it tell on DEVICE what is WANTed, or written ANEW? FIRST: what the
 * first case of the file tells; filled where that is this one. */
static void
run_case(const char *name, const char *recipe, const char *device, const char *want,
         struct lines *first, FILE *anew)
{
    char *text = anew ? written_anew(recipe, first) : strdup(want);
    if (anew)
        fprintf(anew, "%s", text);
    struct lines own = cut(text), got = cut(told(recipe, device));
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

/* The cases of the file NAME in the sources ROOT on DEVICE; with ONLY the first, and
 * the one of that title. */
static void
run_file(const char *root, const char *name, const char *device, const char *only)
{
    static char common[TEXT], own[TEXT], want[TEXT], recipe[TEXT];
    char line[LINE], title[LINE] = "", path[LINE], both[2 * LINE + 4];
    snprintf(path, sizeof path, "%s/t/train/told/%s", root, name);
    char *text = read_text(path), *written;
    const char *at = text, *before = text;
    size_t n;
    FILE *anew = open_memstream(&written, &n);
    bool updates = getenv("ETUDE_UPDATE") != NULL && strcmp(device, "cpu") == 0;
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
        if (!only || !first.text || strcmp(only, title) == 0) {
            snprintf(both, sizeof both, "%s on %s: %s", name, device, title);
            run_case(both, recipe, device, want, &first, updates ? anew : NULL);
        } else
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

static const char *const on_simulator[] = {"optim.txt", "sched.txt", "trainer.txt",
                                           "transforms.txt"};

static int
is_text(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');
    return dot && strcmp(dot, ".txt") == 0;
}

/* Files of t/train/told by name, or one of them and the title of its case. */
int
main(int argc, char **argv)
{
    const char *root = getenv("ET_SRCDIR");
    char folder[LINE];
    struct dirent **file;
    root = root ? root : ".";
    snprintf(folder, sizeof folder, "%s/t/train/told", root);
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    int n = scandir(folder, &file, is_text, alphasort);
    if (n < 1)
        bail("no files in %s", folder);
    bool has_cpu = have_device(cx, "cpu");
    for (int i = 0; i < n; i++) {
        if (has_cpu && (argc < 2 || strcmp(argv[1], file[i]->d_name) == 0))
            run_file(root, file[i]->d_name, test_device("cpu"),
                     argc > 2 ? argv[2] : NULL);
        free(file[i]);
    }
    for (size_t i = 0; argc < 2 && i < sizeof on_simulator / sizeof *on_simulator; i++)
        if (has_cpu && have_device(cx, "gpusim"))
            run_file(root, on_simulator[i], "gpusim", NULL);
    free(file);
    et_ctx_free(&cx);
    return done();
}
