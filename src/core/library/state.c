/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: see state.h. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "core/library/state.h"

enum eti_state_kind
eti_state_kind_of(const char *state)
{
    static const struct {
        const char *word;
        enum eti_state_kind kind;
    } states[] = {
#define STATE(word, kind) {word, ETI_STATE_##kind},
        ETI_STATE_MAP(STATE)
#undef STATE
    };
    for (size_t i = 0; state && i < sizeof states / sizeof *states; i++)
        if (strcmp(state, states[i].word) == 0)
            return states[i].kind;
    return ETI_STATE_UNKNOWN;
}

char
eti_state_sign(enum eti_state_kind kind)
{
    static const char signs[ETI_STATE_KINDS] = {
        [ETI_STATE_ACTIVE] = '*', [ETI_STATE_WAITING] = 'o', [ETI_STATE_DONE] = '+',
        [ETI_STATE_HALTED] = 'p', [ETI_STATE_BROKEN] = 'x',  [ETI_STATE_UNKNOWN] = '?',
    };
    return signs[kind];
}
