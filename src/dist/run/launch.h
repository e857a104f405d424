/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h: a run as processes: the one that was called, a supervisor, ranks.
 *
 *     front        shows the run, passes signals on; nothing is lost with it
 *     supervisor   owns the run directory, the log, the ranks (supervisor.c)
 *     rank         trains; what it has to say goes to the supervisor (rank.h)
 *
 * All are forked from the one that was called, once it has read and checked the recipe
 * and before it has any thread: they hold the same recipe, to the byte, also a rank
 * that is started again after the file has changed. */
#ifndef ETD_LAUNCH_H
#define ETD_LAUNCH_H

#include <sys/types.h>

#include "dist/wire/packet.h"
#include "etude/run.h"

struct etd_rank;

enum { ETD_LAUNCH_HOST = 256, ETD_LAUNCH_DIRECTORY = 3072, ETD_WHY = 512 };

/* All text is borrowed, for as long as the run is. */
struct etd_launch {
    int nproc;       /* ranks here */
    int world, base; /* ranks in all; the first one here */
    int node;
    char host[ETD_LAUNCH_HOST]; /* where rank 0 answers */
    int port;                   /* 0: one that is free */
    int listener;               /* the supervisor's: a socket there for rank 0, or -1 */
    const char *out,
        *err;       /* a file for each rank, {rank} and the like filled in; NULL */
    bool restart;   /* after a crash, from the newest checkpoint */
    double timeout; /* seconds without progress; 0: any */
    double grace;   /* seconds to save in after a signal; 0: no limit */
    struct et_run_config config; /* but for resume, resolved, name, threads */
    const char *program;         /* for the hub: /proc/self/exe */
};

/* What a run came to. */
struct etd_end {
    char state[24]; /* "": there never was a run */
    int exit;
    int rank;          /* whose failure it is; -1: nobody's */
    bool began;        /* training did */
    bool said;         /* the rank itself has said why */
    char why[ETD_WHY]; /* a sentence; "" */
    char hint[ETD_WHY];
};

/* Sets the environment of rank NUMBER, from 0, of those here: what torchrun would
 * (rank_env.h). */
void etd_rank_environment(const struct etd_launch *l, int number);
/* And what all ranks of one run know and no stranger, unless it is set. */
void etd_draw_secret(void);

/* ---- the front's end ---- */

struct etd_front;

/* Is FORMAT, of etd_launch's out or err, one whose {fields} are all known? Else *AT is
 * the first that is not, of N bytes. */
bool etd_print_format(const char *format, const char **at, size_t *n);
/* The fields that are known: "{rank} {local_rank} ...". */
extern const char etd_print_fields[];

/* Starts the supervisor, and with it the run. Comes back in several processes: in the
 * front with *FRONT, in each rank with *RANK, which is to train now; and when the run
 * has ended in the supervisor, with neither, which is to exit with *CODE. EIO. */
ET_NODISCARD et_status etd_launch(struct et_ctx *cx, const struct etd_launch *l,
                                  struct etd_front **front, struct etd_rank **rank,
                                  int *code);

/* What the front hears. */
enum etd_news_kind {
    ETD_NEWS_NONE,   /* the time was over, or a signal came */
    ETD_NEWS_OPENED, /* the run has a directory: or it is opened again, to go on */
    ETD_NEWS_LINE,   /* a line of the log */
    ETD_NEWS_OUT,    /* text for standard output, of the end */
    ETD_NEWS_ERR,    /* likewise standard error */
    ETD_NEWS_RAW,    /* bytes that rank 0 printed, as they came; stream 1 or 2 */
    ETD_NEWS_END,    /* it has ended */
    ETD_NEWS_LOST,   /* the supervisor is gone, without a word, and all ranks are */
};
struct etd_news {
    enum etd_news_kind kind;
    int64_t seq;      /* of the last record before it */
    const char *text; /* [n]; borrowed until the next call */
    size_t n;
    int stream;                                              /* RAW */
    enum et_log_level level;                                 /* LINE */
    char directory[ETD_LAUNCH_DIRECTORY], name[ET_RUN_NAME]; /* OPENED */
    struct etd_end end;                                      /* END */
};
/* Waits for at most SECONDS. */
void etd_front_next(struct etd_front *f, double seconds, struct etd_news *out);
/* Waits, after END, until supervisor and ranks are gone; for SECONDS at most. */
void etd_front_wait(struct etd_front *f, double seconds);
/* HANDLER for the signals that a front passes on: INT, TERM, USR1, USR2. They are held
 * back from etd_launch until then. */
void etd_front_catch(void (*handler)(int));
/* Sends signal NUMBER to the supervisor. */
void etd_front_signal(const struct etd_front *f, int number);
int etd_front_fd(const struct etd_front *f); /* readable: there is news */
/* The run goes on without. */
void etd_front_free(struct etd_front **f);

#endif
