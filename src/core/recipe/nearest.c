/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c: did you mean ...?
 *
 * Distance: Damerau-Levenshtein in its restricted form (optimal string alignment):
 * insertions, deletions, substitutions and swaps of neighbours cost 1 each. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "etude/option.h"

enum { LONGEST = 48 };

static int
min3(int a, int b, int c)
{
    int least = a < b ? a : b;
    return least < c ? least : c;
}

static int
distance(const char *a, int n, const char *b, int m)
{
    int rows[3][LONGEST + 1]; /* two before, before, now */
    for (int j = 0; j <= m; j++)
        rows[1][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[2];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] = min3(rows[1][j] + 1, now[j - 1] + 1,
                          rows[1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min3(now[j], now[j], rows[0][j - 2] + 1);
        }
        memmove(rows[0], rows[1], 2 * sizeof rows[0]);
    }
    return rows[1][m];
}

/* Does NAME, as num_classes, have the N letters of WORD as a word of its own? */
static bool
has_word(const char *name, const char *word, size_t n)
{
    for (const char *at = name; (at = strstr(at, word)) != NULL; at++)
        if ((at == name || at[-1] == '_') && (at[n] == '_' || !at[n]))
            return true;
    return false;
}

/* The one name that has WORD as a word of its own. */
static const char *
find_word(const char *word, size_t length, const char *const *names, int n)
{
    const char *found = NULL;
    for (int i = 0; i < n && length > 2; i++) {
        if (!has_word(names[i], word, length))
            continue;
        if (found)
            return NULL;
        found = names[i];
    }
    return found;
}

const char *
et_nearest(const char *word, const char *const *names, int n)
{
    if (!word || (n > 0 && !names))
        return NULL;
    size_t length = strlen(word);
    if (length > LONGEST)
        return NULL;
    int best = 1 + (length < 3 ? 1 : (int)length / 3); /* a third may be wrong */
    const char *nearest = NULL;
    for (int i = 0; i < n; i++) {
        size_t m = strlen(names[i]);
        if (m > LONGEST)
            continue;
        int d = distance(word, (int)length, names[i], (int)m);
        if (d < best && d < (int)length) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest ? nearest : find_word(word, length, names, n);
}
