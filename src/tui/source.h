/* SPDX-License-Identifier: Apache-2.0 */
/* source.h: where what is shown of a run comes from: its directory (source_dir.c), or a
 * hub far away. Screens know only this. */
#ifndef TUI_SOURCE_H
#define TUI_SOURCE_H

#include <jansson.h>

#include "dist/worker/target.h"
#include "tui/theme.h"

enum tui_link {
    TUI_LINK_CONNECTING, /* nobody has answered yet */
    TUI_LINK_LIVE,       /* records come as they are made */
    TUI_LINK_ENDED,      /* there will be no more */
    TUI_LINK_STALE,      /* nothing for some seconds */
    TUI_LINK_LOST,       /* lost contact; it is tried again */
};

/* A line that a rank wrote, or that says what happened. */
struct tui_log_line {
    double t; /* NaN: not said */
    int rank;
    int level;        /* enum et_log_level; -1: printed, without one */
    const char *word; /* what stands in the level's place: "eval"; NULL: its name */
    const char *text; /* borrowed until the next; not made visible */
};

struct tui_source;
struct tui_source_class {
    void (*free)(struct tui_source *s);
    /* Takes in what there is, for at most SECONDS, records up to the one of seq UNTIL
     * (0: no such end). Did anything change? */
    bool (*advance)(struct tui_source *s, double seconds, int64_t until);
    /* Bytes of history that are in, and of all. */
    void (*progress)(const struct tui_source *s, int64_t *done, int64_t *all);
    /* (optional) Works for at most SECONDS at showing what can be had of a long history
     * before all of it is in: newest values, and series that get finer. Did anything
     * change? */
    bool (*preview)(struct tui_source *s, double seconds);
    /* (optional) The next line of the ranks' logs that is new; false: no line is. NULL:
     * their logs cannot be read. */
    bool (*line)(struct tui_source *s, struct tui_log_line *out);
    /* Why the run cannot be steered; NULL: it can. */
    const char *(*refusal)(const struct tui_source *s);
    /* Asks for TEXT, "pause" or "set optimizer.lr 0.05" (control.h), or "kill"; what
     * came of it is an event of the run. A status with a sentence. */
    et_status (*request)(struct tui_source *s, const char *text);
    /* Why no note can be made; NULL: it can. */
    const char *(*mute)(const struct tui_source *s);
    /* A note of TEXT at this moment. A status with a sentence. */
    et_status (*annotate)(struct tui_source *s, const char *text);
    /* (optional) Has it no answer, or not all of its history yet? */
    bool (*waits)(const struct tui_source *s);
    /* (optional) Tries again at once. */
    void (*retry)(struct tui_source *s);
};
enum { TUI_LITTLE = 64 << 10 }; /* bytes of history that nobody waits for */
/* What each begins with. */
struct tui_source {
    const struct tui_source_class *class;
    struct et_ctx *cx;
    const struct etd_model *model; /* borrowed; never NULL; advance may change it */
    json_t *facts;                 /* core/library/facts.h; owned */
    char place[64]; /* the worker where it runs; "": it is this machine */
    enum tui_link link;
    double heard;         /* monotonic: when it was last heard of */
    double retry;         /* monotonic: of the next attempt, while disconnected */
    const char *why;      /* it is stale; NULL: nobody knows */
    int asked;            /* requests without an answer */
    char lease[ETD_WORD]; /* who has taken the run; "" nobody */
    bool is_holder;       /* this viewer has */
    double rtt_ms;        /* NaN: not known, or it is no other machine */
    char notice[256]; /* what the user should be told now; who shows it empties it */
    enum tui_role notice_role;
    char problem[1024]; /* what could not be read; "" */
    bool is_refused;    /* PROBLEM is what the other side said: nothing is damaged */
    char code[ETD_LABEL], said[ETD_TEXT]; /* by the other side, when it refused, or the
                                             line broke off last: "NO_RUN"; "" */
};

/* The run in DIRECTORY, of which FACTS are known (its reference is taken also on
 * failure). ENOENT, EIO, EFORMAT. */
ET_NODISCARD et_status tui_source_dir(struct et_ctx *cx, json_t *facts,
                                      struct tui_source **out);
/* The run at TARGET, on another machine or behind its hub; *OUT has it as soon as it
 * answers. EINVAL, EIO. */
ET_NODISCARD et_status tui_source_hub(struct et_ctx *cx,
                                      const struct etd_target *target,
                                      struct tui_source **out);
void tui_source_free(struct tui_source **s);
/* Is there so much history still to come that what is shown will change by it? */
bool tui_source_is_loading(const struct tui_source *s);

/* ---- source_hub.c: asking a hub; also for a run whose log is read ---- */

/* Sends TEXT to the hub of CLIENT: see request and annotate above. */
ET_NODISCARD et_status tui_hub_request(struct tui_source *s, struct etd_client *client,
                                       const char *text);
ET_NODISCARD et_status tui_hub_annotate(struct tui_source *s, struct etd_client *client,
                                        const char *text);
/* Puts answers that have come into S->notice; and who has taken the run. */
bool tui_hub_answers(struct tui_source *s, struct etd_client *client);

#endif
