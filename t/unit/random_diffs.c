/* SPDX-License-Identifier: Apache-2.0 */
/* The lines in which random texts differ: they lead from one text to the other, are no
 * more than are needed, and each stands beside one line of what is around it.
 *
 *     ETUDE_SEED=17 t/unit/random_diffs   the two texts of that seed, and their diff */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/compose/diff.h"
#include "t/tap.h"

enum { MOST = 14 };

struct text {
    char bytes[4 * MOST + 1];
    char line[MOST][4];
    int n;
};

static struct et_ctx *cx;
static uint64_t state;

static int
draw(int n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

static void
write_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

/* The bytes of T are its lines; ENDS: the last one has its end. */
static void
join_lines(struct text *t, bool ends)
{
    size_t used = 0;
    for (int i = 0; i < t->n; i++)
        used += (size_t)snprintf(t->bytes + used, sizeof t->bytes - used, "%s%s",
                                 t->line[i], i + 1 < t->n || ends ? "\n" : "");
}

/* Few different lines, of which some begin like others. */
static void
make_text(struct text *t)
{
    static const char *const lines[] = {"", "a", "ab", "b", "abc"};
    *t = (struct text){.n = draw(MOST + 1)};
    for (int i = 0; i < t->n; i++)
        write_text(t->line[i], sizeof t->line[i], lines[draw(5)]);
    if (t->n > 0 && !t->line[t->n - 1][0])
        write_text(t->line[t->n - 1], sizeof t->line[0], "b");
    bool ends = draw(2);
    join_lines(t, ends);
}

/* A text like FROM, with some lines gone and some new. */
static void
change_text(const struct text *from, struct text *t)
{
    *t = (struct text){0};
    for (int i = 0; i < from->n && t->n < MOST; i++) {
        if (draw(5) == 0)
            continue;
        if (draw(5) == 0)
            write_text(t->line[t->n++], sizeof t->line[0], draw(2) ? "a" : "new");
        if (t->n < MOST)
            write_text(t->line[t->n++], sizeof t->line[0], from->line[i]);
    }
    join_lines(t, true);
}

/* How many lines both texts have, in one order. */
static int
count_common(const struct text *a, const struct text *b)
{
    int length[MOST + 1][MOST + 1] = {{0}};
    for (int i = a->n - 1; i >= 0; i--)
        for (int j = b->n - 1; j >= 0; j--) {
            int down = length[i + 1][j], right = length[i][j + 1];
            length[i][j] = strcmp(a->line[i], b->line[j]) == 0
                               ? length[i + 1][j + 1] + 1
                           : down > right ? down
                                          : right;
        }
    return length[0][0];
}

/* The whole way from A to B: its signs, and whether D shows each. */
struct way {
    char sign[2 * MOST];
    bool shown[2 * MOST];
    int n, i, j; /* lines that are passed of the way, of A and of B */
};

static bool
pass(struct way *w, const struct text *a, const struct text *b, char sign, bool shown)
{
    if (w->n == 2 * MOST || (sign != '+' && w->i == a->n) ||
        (sign != '-' && w->j == b->n) ||
        (sign == ' ' && strcmp(a->line[w->i], b->line[w->j]) != 0))
        return false;
    w->sign[w->n] = sign;
    w->shown[w->n++] = shown;
    w->i += sign != '+';
    w->j += sign != '-';
    return true;
}

static bool
leads_from(const struct text *a, const struct text *b, const struct eti_diff *d,
           struct way *w)
{
    bool good = true;
    *w = (struct way){0};
    for (int k = 0; k < d->n && good; k++) {
        const struct eti_diff_line *l = &d->line[k];
        const int *at = l->sign == '-' ? &w->i : &w->j;
        const struct text *of = l->sign == '-' ? a : b;
        good = l->line >= 1 && l->line <= of->n && strchr("-+ ", l->sign) &&
               l->n == strlen(of->line[l->line - 1]) &&
               memcmp(l->text, of->line[l->line - 1], l->n) == 0;
        while (good && *at < l->line - 1)
            good = pass(w, a, b, ' ', false);
        good = good && *at == l->line - 1 && pass(w, a, b, l->sign, true);
    }
    while (good && (w->i < a->n || w->j < b->n))
        good = pass(w, a, b, ' ', false);
    return good;
}

static bool
shows_what_is_around(const struct way *w)
{
    for (int k = 0; k < w->n; k++) {
        bool beside =
            (k > 0 && w->sign[k - 1] != ' ') || (k + 1 < w->n && w->sign[k + 1] != ' ');
        if (w->sign[k] == ' ' && w->shown[k] != beside)
            return false;
    }
    return true;
}

static bool
try_texts(uint64_t seed, bool shows)
{
    struct text a, b;
    struct eti_diff d;
    struct way w;
    int changes = 0;
    state = seed;
    make_text(&a);
    if (draw(3))
        change_text(&a, &b);
    else
        make_text(&b);
    if (eti_diff_new(cx, a.bytes, strlen(a.bytes), b.bytes, strlen(b.bytes), &d) !=
        ET_OK)
        bail("no diff");
    for (int k = 0; k < d.n; k++)
        changes += d.line[k].sign != ' ';
    bool leads = leads_from(&a, &b, &d, &w);
    bool least = changes == a.n + b.n - 2 * count_common(&a, &b);
    bool good = leads && least && shows_what_is_around(&w);
    if (!good || shows) {
        diag("seed %llu%s%s:\n%s\nand\n%s\ndiffer in", (unsigned long long)seed,
             leads ? "" : ", leads elsewhere", least ? "" : ", more than is needed",
             a.bytes, b.bytes);
        for (int k = 0; k < d.n; k++)
            diag("%c %d %.*s", d.line[k].sign, d.line[k].line, (int)d.line[k].n,
                 d.line[k].text);
    }
    eti_diff_release(&d);
    return good;
}

int
main(void)
{
    const char *from = getenv("ETUDE_SEED");
    uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
    int failed = 0, n = from ? 1 : getenv("ETUDE_LONG") ? 300000 : 5000;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (int i = 0; i < n && failed < 3; i++)
        failed += !try_texts(seed + (uint64_t)i, from != NULL);
    is_int(failed, 0,
           "the diffs of %d pairs of texts are right, and as short as can be", n);
    et_ctx_free(&cx);
    return done();
}
