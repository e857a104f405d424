/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c: the table of passes, their order and how they are run. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/graph/passes.h"

const struct eti_pass eti_passes[] = {
#define ETI_PASS(name, needs, undoes) {#name, eti_##name, needs, undoes},
#include "core/graph/passes.def"
#undef ETI_PASS
};
const int eti_n_passes = sizeof eti_passes / sizeof *eti_passes;

/* Of each operation, the steps that have not been removed. */
static void
count_steps(const struct eti_ir *ir, int count[ET_OP_COUNT])
{
    memset(count, 0, ET_OP_COUNT * sizeof *count);
    for (int i = 0; i < ir->n_steps; i++)
        if (ir->step[i].op)
            count[ir->step[i].op->id]++;
}

void
eti_run_passes(struct eti_ir *ir)
{
    int before[ET_OP_COUNT], after[ET_OP_COUNT];
    bool dumps = ir->g->dump & ETI_DUMP_PASSES;
    if (dumps)
        eti_dump_passes(ir);
    for (int i = 0; i < eti_n_passes && !ir->failed; i++) {
        if (dumps)
            count_steps(ir, before);
        eti_passes[i].run(ir);
        if (!dumps || ir->failed)
            continue;
        count_steps(ir, after);
        eti_dump_pass(ir->g, eti_passes[i].name, before, after);
    }
}

/* ---- is the order right? ---- */

/* The word at *AT, and its length; *AT goes behind it. NULL: there is no more. */
static const char *
next_word(const char **at, size_t *n)
{
    const char *word = *at + strspn(*at, " ");
    *n = strcspn(word, " ");
    *at = word + *n;
    return *n > 0 ? word : NULL;
}

static bool
has_word(const char *words, const char *word, size_t n)
{
    const char *w;
    size_t length;
    while ((w = next_word(&words, &length)))
        if (length == n && memcmp(w, word, n) == 0)
            return true;
    return false;
}

/* Does the work of the pass NAME, of N letters, stand when END passes have run? */
static bool
stands(const struct eti_pass *pass, int end, const char *name, size_t n)
{
    for (int i = end - 1; i >= 0; i--) {
        if (has_word(pass[i].undoes, name, n))
            return false;
        if (has_word(pass[i].name, name, n))
            return true;
    }
    return false;
}

int
eti_passes_fault(const struct eti_pass *pass, int n, char *need, size_t n_need)
{
    for (int i = 0; i <= n; i++) {
        const char *needs = i < n ? pass[i].needs : "sort", *word;
        size_t length;
        while ((word = next_word(&needs, &length)))
            if (!stands(pass, i, word, length)) {
                snprintf(need, n_need, "%.*s", (int)length, word);
                return i;
            }
    }
    return -1;
}
