/* SPDX-License-Identifier: Apache-2.0 */
/* state.h: the states of a run, as people read them. */
#ifndef ETI_STATE_H
#define ETI_STATE_H

/* What they have in common: a sign and, on terminals with colours, a colour. */
enum eti_state_kind {
    ETI_STATE_ACTIVE,  /* it works */
    ETI_STATE_WAITING, /* it will, or will again */
    ETI_STATE_DONE,    /* it reached its end */
    ETI_STATE_HALTED,  /* ended before, on demand, with a checkpoint */
    ETI_STATE_BROKEN,  /* ended before, by a fault */
    ETI_STATE_UNKNOWN, /* no word of it */
    ETI_STATE_KINDS
};

/* word, kind. The words are those of run.json. */
#define ETI_STATE_MAP(X)                                                               \
    X("running", ACTIVE)                                                               \
    X("evaluating", ACTIVE)                                                            \
    X("checkpointing", ACTIVE)                                                         \
    X("queued", WAITING)                                                               \
    X("starting", WAITING)                                                             \
    X("paused", WAITING)                                                               \
    X("stopping", WAITING)                                                             \
    X("finished", DONE)                                                                \
    X("reached-target", DONE)                                                          \
    X("stopped", HALTED)                                                               \
    X("preempted", HALTED)                                                             \
    X("failed", BROKEN)                                                                \
    X("diverged", BROKEN)                                                              \
    X("oom", BROKEN)                                                                   \
    X("hung", BROKEN)                                                                  \
    X("crashed", BROKEN)                                                               \
    X("killed", BROKEN)                                                                \
    X("lost contact", UNKNOWN)

/* The kind of STATE; UNKNOWN for NULL and for words that are not in the table. */
enum eti_state_kind eti_state_kind_of(const char *state);
/* "*", "o", "+", "p", "x" or "?". */
char eti_state_sign(enum eti_state_kind kind);

#endif
