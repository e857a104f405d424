/* SPDX-License-Identifier: Apache-2.0 */
/* desk.h: a run of a recipe that is asked for something on its way. */
#ifndef ETUDE_T_TRAIN_DESK_H
#define ETUDE_T_TRAIN_DESK_H

#include "t/train/recipe_run.h"

enum {
    BATCHES = 12,
    ROOM = 32,
    DESK_WAIT = 100000, /* seconds of its clock for which a run that is paused waits */
};

/* A request, and the finished batches from which on it is there. */
struct ask {
    int64_t at;
    const char *text;
};

/* Who asks, and is answered. */
struct desk {
    struct et_control control; /* first */
    const struct ask *ask;
    int n, next;
    int waits;         /* how often the run has waited */
    int64_t waited_at; /* after how many batches */
    int n_done, n_refused;
    int64_t step[ROOM]; /* that requests were applied at */
    char answer[ROOM][ET_REQUEST_ANSWER];
    enum et_log_level level;
    int64_t now;
};

struct result {
    double loss[BATCHES];
    int64_t batches;
    enum et_outcome outcome;
    double seconds;                      /* that it has trained */
    char command[ROOM][ET_REQUEST_TEXT]; /* texts of its records, with their batch */
    int64_t ba[ROOM];
    int n_commands;
    char states[256];
    char warned[256];   /* the last line of its log that is a warning */
    void *params;       /* for free() */
    size_t bytes, peak; /* of the parameters; of the device's memory */
};

struct how {
    const char *text; /* of the recipe: of 12 batches */
    const struct ask *ask;
    int n;
    int64_t stop;  /* interrupted after so many batches; 0: never */
    int64_t every; /* saved after so many batches; 0: at the end */
    bool saved, resumed;
    const struct et_request *replay;
    int n_replay;
    size_t memory_limit; /* bytes; 0: none */
    int64_t spoil;       /* the loss of this batch, from 1, is no number; 0: of none */
    bool goes_back;      /* then to the newest checkpoint */
};

/* Trains on the device "cpu" or bails out. Checkpoints go to a folder of the test. */
struct desk desk_train(struct et_ctx *cx, const struct how *how, struct result *out);
void desk_clear(void);
bool same_params(const struct result *a, const struct result *b);
/* How many losses, from the first on, are the same bits. */
int same_losses(const struct result *a, const struct result *b);

#endif
