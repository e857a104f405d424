/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h: what the files of the supervisor share; launch.h is what others see.
 *
 * One thread, one poll. Everything that can wait is a descriptor in it: the ranks'
 * pipes and pidfds, the front, signals, the hub. */
#ifndef ETD_SUPERVISOR_H
#define ETD_SUPERVISOR_H

#include <sys/types.h>

#include "dist/run/board.h"
#include "dist/run/launch.h"
#include "dist/run/verdict.h"
#include "dist/wire/packet.h"
#include "dist/wire/wire.h"

enum { ETD_SUP_PENDING = 32, ETD_KEPT = 256, ETD_EARLY = 64 << 10 };
/* Seconds between two looks at the clock, at most, whatever it says: a machine that
 * stands still, or has no time for us, has none for ranks and hub. */
#define ETD_LOOK_LASTS 1.0

/* What a rank's own part of a step is made of, and all of it. */
enum etd_own {
    ETD_OWN_DATA,
    ETD_OWN_HOOKS,
    ETD_OWN_COMPUTE,
    ETD_OWN_ALL,
    ETD_OWN_PARTS,
};

/* One rank, as its supervisor knows it. */
struct etd_sup_rank {
    pid_t pid;                     /* 0: it is not running */
    int pidfd;                     /* readable when it has ended */
    int from;                      /* its packets */
    int link;                      /* answers to it */
    int print[2];                  /* what it prints: standard output, standard error */
    struct etd_bytes in;           /* packets not read yet */
    struct etd_bytes early;        /* printed before there was a directory */
    int file[2];                   /* --stdout, --stderr; -1: none */
    int log;                       /* logs/rank<rank>.txt; -1 */
    int stack;                     /* where it stood: stack.h; -1 */
    bool waits;                    /* for the run to be opened */
    bool ended;                    /* its last word has come */
    struct etd_end end;            /* and was this */
    int status;                    /* of waitpid, when it has ended */
    uint64_t moves;                /* of the board, when it was looked at last */
    double stood;                  /* seconds since that has changed */
    struct et_comm_look look;      /* its collective, when the run hung; and */
    bool stopped;                  /* its process was, by a signal or a debugger */
    double own_ms[ETD_OWN_PARTS];  /* of a step, as it last said; 0: it has not */
    double worked_seconds;         /* of the processor, when it was looked at last */
    unsigned long long read_bytes; /* likewise */
    bool straggles;                /* it is slow, and that has been said */
    /* finished batches when it began to differ from `straggles`; 0: it does not */
    int64_t since_ba;
};

/* A request that is on its way through the ranks. */
struct etd_sup_pending {
    uint64_t id;            /* of the board; 0: free */
    unsigned char name[16]; /* of the command */
    double until;           /* it expires */
};

struct etd_supervisor {
    struct et_ctx *cx;
    const struct etd_launch *l;
    struct et_run *run;                   /* NULL: not open (yet) */
    char directory[ETD_LAUNCH_DIRECTORY]; /* of the run that there was; "" */
    char name[ET_RUN_NAME];
    struct etd_board *board;
    struct etd_sup_rank *rank; /* [l->nproc] */
    int alive;                 /* ranks whose process is there */
    double flushed;            /* when the log was last */
    bool dirty;                /* the log has records that readers do not see yet */

    double clock_at, away; /* of etd_sup_now */
    int signals, front;    /* signalfd; socket, -1: it has left */
    struct etd_bytes to_front;
    uint64_t front_lost; /* packets that it was too slow for */

    int stop_signal;      /* the first that ends the run; 0 */
    int stops;            /* how many came */
    double kill_at;       /* when ranks that are left are killed; 0: they are not */
    double later_kill_at; /* the same for a run that trains by then; 0: never */
    bool stops_start;     /* it was asked to end before it trained */
    bool killed;          /* on request */
    bool hung;
    bool no_rank; /* one could not be started */

    struct et_error refusal; /* why the run could not be opened */

    /* The first failure in time: a rank, and what it did. */
    int failed; /* index; -1 */
    char why[ETD_WHY];

    /* Starting again (supervisor_restart.c). */
    struct etd_crashes crashes;
    int restarts;
    double start_at;            /* the group is started again; 0: it is not */
    struct et_log_entry *entry; /* of the record that is read [ETD_RING_NAMES] */

    struct etd_sup_pending pending[ETD_SUP_PENDING];
    uint64_t next_id;
    int64_t revision; /* of the settings: requests applied */
    struct etd_answer kept[ETD_KEPT];
    int n_kept;

    pid_t hub;
    int hub_fd, hub_pidfd;
    bool hub_heard;                   /* this one has said something */
    int hub_failures;                 /* those in a row that ended before */
    char no_hub[ETD_WHY];             /* why it listens nowhere; "" it does */
    double hub_at;                    /* it is started again */
    double files_looked;              /* when they were, and */
    bool events_seen, directory_seen; /* were there (supervisor_files.c) */
    double began_looked;              /* when a start was looked at last */
    double began_stood; /* seconds in which nobody in it has done anything */
    double watched;     /* when the counters were looked at last */
    struct etd_steps steps;
};

/* Returns when the run has ended, with the exit CODE; and in each rank, with *RANK.
 * FRONT is its socket. */
ET_NODISCARD et_status etd_supervise(struct et_ctx *cx, const struct etd_launch *l,
                                     int front, struct etd_rank **rank, int *code);
/* The clock of all that has a time here, in seconds, looked at twice a second at least:
 * what has passed beyond ETD_LOOK_LASTS does not count. */
double etd_sup_now(struct etd_supervisor *s);
/* From now on signal NUMBER does nothing to this process. */
void etd_ignore(int number);

/* supervisor_ranks.c. Forgets the results of the start before. */
void etd_sup_forget_start(struct etd_supervisor *s);
/* True in the child, which is *RANK then, or has failed. */
bool etd_sup_start(struct etd_supervisor *s, struct etd_rank **rank, et_status *status);
void etd_sup_read_packets(struct etd_supervisor *s, int i);
void etd_sup_read_prints(struct etd_supervisor *s, int i, int stream);
/* The process of rank I has ended. */
void etd_sup_reap(struct etd_supervisor *s, int i);
void etd_sup_signal_all(struct etd_supervisor *s, int number);
void etd_sup_close_rank(struct etd_supervisor *s, int i);

/* The text log of rank I is gone: another. */
void etd_sup_open_log(struct etd_supervisor *s, int i);

/* supervisor_files.c: are they still there? */
void etd_sup_look_at_files(struct etd_supervisor *s);

/* print.c: the path of a file of rank NUMBER of those here. */
void etd_print_path(const struct etd_supervisor *s, const char *format, int number,
                    char *out, size_t size);

/* supervisor_front.c */
void etd_sup_tell(struct etd_supervisor *s, enum etd_packet_kind kind, const void *body,
                  size_t n);
void etd_sup_tell_text(struct etd_supervisor *s, enum etd_packet_kind kind, int tag,
                       const char *text, size_t n);
void etd_sup_tell_opened(struct etd_supervisor *s);
void etd_sup_tell_end(struct etd_supervisor *s, const struct etd_end *end);
void etd_sup_flush_front(struct etd_supervisor *s);
/* A line of the supervisor's own: to the run's log, and to the front. */
void etd_sup_say(struct etd_supervisor *s, enum et_log_level level, const char *fmt,
                 ...) ET_PRINTF(3, 4);

/* supervisor_control.c */
/* A packet of the hub. */
void etd_sup_hear(struct etd_supervisor *s);
/* What rank 0 says of a request: "ID STEP APPLIED ANSWER". */
void etd_sup_answered(struct etd_supervisor *s, const char *text);
void etd_sup_expire(struct etd_supervisor *s);

/* supervisor_begin.c: a start that makes no progress. */
void etd_sup_watch_start(struct etd_supervisor *s);
/* No rank trains yet: there is nothing to save. */
bool etd_sup_is_starting(const struct etd_supervisor *s);

/* supervisor_watch.c: hangs; and of a "health" record, whether its rank is a
 * straggler. */
void etd_sup_watch(struct etd_supervisor *s);
/* Seconds without progress that are a hang. */
double etd_sup_timeout(const struct etd_supervisor *s);
/* Rank LONGEST has stood still for SECONDS, that is too long: the run ends, or is
 * started again, and whoever it waits for is named. */
void etd_sup_end_hang(struct etd_supervisor *s, int longest, double seconds);
/* What each rank did last, and is at, into the run's dumps/, which WHY then names for
 * the rank that failed. */
void etd_sup_dump(struct etd_supervisor *s);
/* Where rank I stood when it ended, if it has written that down. */
void etd_sup_dump_stack(struct etd_supervisor *s, int i);
void etd_sup_compare(struct etd_supervisor *s, const struct et_record *r);

#endif
