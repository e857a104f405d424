/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h: the screen Workers: this machine and others, and attaching to a run. */
#ifndef TUI_WORKERS_H
#define TUI_WORKERS_H

#include <jansson.h>
#include <limits.h>

#include "dist/worker/host.h"
#include "dist/worker/target.h"
#include "tui/app.h"
#include "tui/job.h"
#include "tui/userfile.h"

/* FOLDER: of the user's files (workers.yaml); NULL: none is known. Opens the screen if
 * need be. */
ET_NODISCARD et_status tui_workers_setup(struct tui_app *app, const char *folder);

/* The same folder; "" where none is known. */
const char *tui_workers_folder(struct tui_app *app);

/* Finds what TEXT names: a run of this machine, RUN@WORKER, or an address. ENOENT; what
 * etd_target_parse and tui_source_hub say. */
ET_NODISCARD et_status tui_workers_find(struct tui_app *app, const char *text,
                                        struct tui_source **out);

/* What is said of this machine where no service listens on it. */
#define TUI_WORKER_ALONE "runs here need no worker; `etude worker serve` lets others in"

enum workers_state {
    WORKER_ASKED,
    WORKER_READY,
    WORKER_OLD,
    WORKER_REFUSED,
    WORKER_LOST
};

/* One line: a worker, and what it said last. */
struct workers_row {
    char name[64], address[ETD_ADDRESS], key[ETD_KEY_TEXT], since[16];
    enum workers_state state;
    char why[200]; /* it is not ready; "" */
    char host[64], version[32], role[16];
    int64_t cores, gpus; /* gpus -1: not known */
    bool is_alone;       /* it is this machine, and no service listens on it */
    double rtt_ms;
    bool is_tested; /* by t: */
    struct etd_host_facts host_facts;
    double bandwidth; /* bytes a second */
    double next;      /* monotonic: when it is asked again */
    double heard;     /* monotonic: when it answered last; 0: never */
    struct tui_job job;
};

enum { WORKERS_MOST = 33, WORKERS_FIRST = 3 /* line of the first */ };

struct workers {
    struct tui_app *app;
    char folder[PATH_MAX];
    struct workers_row *row; /* [WORKERS_MOST] */
    int n;
    struct tui_list list;
    int form_y;        /* line of the form that attaches; 0: there is no room for it */
    char problem[200]; /* of workers.yaml */
    char stamp[TUI_STAMP]; /* of that file, as it was read */
    struct tui_field address;
    bool is_typing;
    char fault[160]; /* of the address */
    struct tui_job
        job; /* of what was asked for last: add, remove, keygen, runs, test */
    enum {
        WORKERS_NOTHING,
        WORKERS_ADD,
        WORKERS_REMOVE,
        WORKERS_KEYS,
        WORKERS_RUNS,
        WORKERS_TEST
    } doing;
    char doing_to[64];
    json_t *runs;                  /* of the worker that was opened */
    char public_key[ETD_KEY_TEXT]; /* of this machine, once it was asked for */
};

/* NULL: there is no row. */
struct workers_row *tui_workers_selected(struct workers *w);
bool tui_workers_is_local(const struct workers_row *r);
/* A text of an answer; "" where it has none. */
const char *tui_workers_text(const json_t *all, const char *key);
/* Begins to ask R. */
void tui_workers_ask(struct workers *w, struct workers_row *r);
/* Puts into R what `worker list NAME --json` said, or its error, NOW. */
void tui_workers_take(struct workers_row *r, double now);
/* The same of `worker test --json`. */
void tui_workers_take_test(struct workers_row *r, const json_t *all);
/* For struct tui_screen. */
void tui_workers_draw(struct tui_app *app, void *self, const struct tui_pane *p);

#endif
